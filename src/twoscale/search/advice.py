"""What is known of a fitted surrogate, which share of its error has which cause, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from twoscale.domain.space import Space
from twoscale.domain.symmetries import symmetry_group
from twoscale.runtime.texts import percent
from twoscale.search.space import VARIANCES, chains, cost_of

PERFECT = 1e-6  # relative error: about the limit of single precision
_FULL = 1e-9  # share of variance below which no longer code is asked for
_NOTABLE = 0.1  # of the squared error: a smaller share gets no advice
_WORTH = 0.9  # of the error: twice the samples help if the error falls below
_UNEVEN = 2.0  # times the smallest: a channel's error that is worth a look
_ROUGH = 1.5  # times the error's jumps inside of patches: seams that show
_LATE = 0.95  # of all epochs: the loss was still falling
_FEW = 30  # test samples: below, the error itself is uncertain


SHARED_BORDERS = "conforming"
"""The method whose patches share their borders, so that it has no seams in value."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What is known of a fitted surrogate; errors are means of the fields' relative L2 errors.

    Parameters
    ----------
    error, training_error, oracle
        Of predictions on held-out fields; of predictions on training fields; of the nearest fields
        that the code can express. The latter two are None where they are not known.
    method, settings
        The method and all its settings.
    inputs, outputs
        The spaces of both sides.
    output_code
        The length of the output code; None without one.
    symmetries
        Symmetries that the training fields were multiplied by, or that are declared.
    known_symmetries
        Symmetries of the equation, where it is known.
    half_error
        The error after learning from half of the samples.
    accelerated, searched
        Whether a GPU was used, and whether a search chose the method.
    short_of_time, interrupted
        Whether a search ended before it had tried all it wanted to.
    tried_longer, tried_predictors
        Whether a search has tried longer codes; the predictors that it has tried.
    tunable
        Whether it can be fine-tuned on the assembled field, and has not been.
    epochs
        The epoch whose weights were kept, and the number of all epochs.
    seam_ratio
        Jumps of the error's slope at patch borders, divided by those inside of patches.
    outliers
        Numbers of samples with an error far above all others.
    channels
        The error of each channel, by its name.
    tested
        The number of test samples.
    """

    error: float
    training_error: float | None
    oracle: float | None
    method: str
    settings: Mapping[str, Any]
    inputs: Space
    outputs: Space
    output_code: int | None = None
    symmetries: str = "none"
    known_symmetries: str = "none"
    half_error: float | None = None
    accelerated: bool = False
    searched: bool = False
    short_of_time: bool = False
    interrupted: bool = False
    tried_longer: bool = False
    tried_predictors: Sequence[str] = ()
    tunable: bool = False
    epochs: tuple[int, int] | None = None
    seam_ratio: float | None = None
    outliers: Sequence[int] = ()
    channels: Mapping[str, float] = field(default_factory=dict)
    tested: int | None = None

    @property
    def shares(self) -> dict[str, float]:
        return error_shares(self.error, self.training_error, self.oracle)


def error_shares(
    error: float, training_error: float | None, oracle: float | None
) -> dict[str, float]:
    """Return the shares of the squared error by their cause; they add up to one.

    representation
        The oracle error: the code cannot express it.
    data
        Overfitting: held-out minus training error; zero where the latter is not known.
    predictor
        The rest, which is not learned even on training fields.
    """
    whole = max(error, PERFECT) ** 2
    representation = min(1.0, (oracle or 0.0) ** 2 / whole)
    gap = 0.0 if training_error is None else (error**2 - training_error**2) / whole
    data = min(max(0.0, gap), 1.0 - representation)
    predictor = 1.0 - representation - data
    return {"representation": representation, "data": data, "predictor": predictor}


MEANINGS = {
    "representation": "the code cannot express it",
    "predictor": "not learned, not even on training fields",
    "data": "overfitting: learned on training fields only",
}
"""What a share of the squared error is, by its cause."""


def shares_text(shares: Mapping[str, float]) -> str:
    """Return the shares of the squared error in words, the largest first."""
    ordered = sorted(shares, key=lambda name: -shares[name])
    parts = [f"{name} {100 * shares[name]:.0f} % ({MEANINGS[name]})" for name in ordered]
    return f"Shares of the squared error: {', '.join(parts)}."


@dataclass(frozen=True)
class Suggestion:
    """A sentence on what would help, and what to run.

    To run is a fit with other `settings` or another `method`, a fine-tuning on an `objective`, a
    `search`, or a `check` of the data. Some suggestions have nothing to run.
    """

    text: str
    settings: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    objective: str = ""
    search: bool = False
    check: bool = False


def advise(found: Findings) -> list[Suggestion]:
    """Return what would help, the most promising first."""
    if found.error <= PERFECT:
        return [Suggestion("The error is at the limit of single precision: nothing is left to do.")]
    if found.error >= 1:
        return [
            Suggestion(
                "Predictions are no better than fields of zeros. Check the data first: twoscale "
                "check names constant fields, duplicates and wrong axes.",
                check=True,
            )
        ]
    first = list(limits(found))
    if not found.searched and not any(one.search for one in first):
        first.append(Suggestion("A search may find a better method and predictor.", search=True))
    return [*first, *_of_samples(found)]


def limits(found: Findings) -> Iterator[Suggestion]:
    """Yield what would help: time, if it was short; then by share of the error, largest first."""
    if found.short_of_time:
        yield Suggestion("A longer budget may help.", search=True)
    elif found.interrupted:
        yield Suggestion("A search without interruption may find a better surrogate.", search=True)
    shares = found.shares
    for part in sorted(shares, key=lambda name: -shares[name]):
        if shares[part] > _NOTABLE:
            yield from {
                "representation": _longer_code,
                "predictor": _other_predictor,
                "data": _more_samples,
            }[part](found)


def _longer_code(found: Findings) -> Iterator[Suggestion]:
    if found.tried_longer:
        yield Suggestion("The representation limits the error, but longer codes were no better.")
        return
    longer = _longer_settings(found)
    if not longer:
        yield Suggestion("The representation limits the error: another method may express more.")
        return
    settings = ", ".join(f"{name}={value}" for name, value in longer.items())
    yield Suggestion(
        f"The representation limits the error: a code longer than {found.output_code} would "
        f"help; set {settings}.",
        longer,
    )


def _longer_settings(found: Findings) -> dict[str, str]:
    """Return the settings of a longer code; none if the code has all of the variance."""
    settings, kind = found.settings, chains().get(found.method)
    if (kind is not None and kind.sized) or settings.get("code_size") is not None:
        values = prod(found.outputs.shape)
        return {"code_size": str(min(2 * (found.output_code or 1), values))}
    return _longer_variances(settings)


def _longer_variances(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return twice the coarse modes, and a tenth of the variance that each stage loses.

    Nothing if the code has all of the variance.
    """
    longer = {}
    if "coarse_components" in settings:
        longer["coarse_components"] = str(2 * settings["coarse_components"])
    lost = {name: 1 - settings[name] for name in VARIANCES if settings.get(name) is not None}
    return longer | {
        name: f"{1 - share / 10:.12g}" for name, share in lost.items() if share > _FULL
    }


def _other_predictor(found: Findings) -> Iterator[Suggestion]:
    if late := _trained_too_short(found):
        yield late
    used, *tried = (
        cost_of(name) for name in (str(found.settings["predictor"]), *found.tried_predictors)
    )
    coded = "input_variance" in found.settings
    if not found.searched:
        yield Suggestion(
            "Another predictor may learn more: a search tries several and keeps the best.",
            search=True,
        )
    elif used.linear and all(kind.linear for kind in tried):
        longer = ", or a longer input code" if coded else ""
        yield Suggestion(f"A nonlinear predictor would help{longer}.")
    elif used.linear and coded:
        yield Suggestion("A longer input code would help: nonlinear predictors were no better.")
    else:
        how = "trained for longer" if found.accelerated else "trained on a GPU"
        yield Suggestion(f"A larger network would help, {how}.", search=True)


def _trained_too_short(found: Findings) -> Suggestion | None:
    if found.epochs is None or "epochs" not in found.settings:
        return None
    best, epochs = found.epochs
    if best < _LATE * epochs - 1:
        return None
    return Suggestion(
        f"The validation loss was still falling at the end ({epochs} epochs): train for longer.",
        {"epochs": str(2 * int(found.settings["epochs"]))},
    )


def _more_samples(found: Findings) -> Iterator[Suggestion]:
    yield Suggestion(_twice_the_samples(found))
    known = "symmetries" in found.settings
    if found.symmetries != "none" or not found.inputs.channels or not known:
        return
    if found.known_symmetries != "none":
        images = len(_group(found.known_symmetries, found))
        yield Suggestion(
            f"The equation has symmetries: with symmetries=problem each sample counts as {images}.",
            {"symmetries": "problem"},
        )
        return
    yield _symmetries(found)


def _group(name: str, found: Findings) -> Sequence[Any]:
    return symmetry_group(name, found.inputs.grid, found.outputs.grid)


def _symmetries(found: Findings) -> Suggestion:
    """Return how symmetries are declared, and how many training fields they make of one."""
    square, mirrors = (len(_group(name, found)) for name in ("square", "mirrors"))
    if square == mirrors:
        return Suggestion(
            "If a mirrored input has the mirrored solution, set symmetries=mirrors: "
            f"each sample then counts as {mirrors}.",
            {"symmetries": "mirrors"},
        )
    return Suggestion(
        "If a turned or mirrored input has the turned or mirrored solution, set "
        f"symmetries=square or symmetries=mirrors: each sample then counts as {square} or "
        f"{mirrors}.",
        {"symmetries": "square"},
    )


def _twice_the_samples(found: Findings) -> str:
    """Return the error that twice the samples should give, by the error with half of them.

    The squared error above the oracle's falls by the same factor with every doubling:
    doubled² = oracle² + (error² - oracle²)² / (half² - oracle²).
    """
    if not found.half_error:
        return "More samples would help: the error on training fields is smaller."
    fixed = (found.oracle or 0.0) ** 2
    learnable, by_half = max(0.0, found.error**2 - fixed), found.half_error**2 - fixed
    factor = learnable / by_half if by_half > learnable else 1.0
    doubled = (fixed + learnable * factor) ** 0.5
    half = f"with half of the samples the error is {percent(found.half_error)}"
    if doubled > _WORTH * found.error:
        return f"More samples would help little: {half}."
    return (
        f"More samples would help: {half}, so twice as many should give about {percent(doubled)}."
    )


def _of_samples(found: Findings) -> Iterator[Suggestion]:
    """Yield what the errors of samples, channels and seams say."""
    if found.seam_ratio is not None and found.seam_ratio > _ROUGH:
        yield from _smoother_seams(found, found.seam_ratio)
    if found.outliers:
        numbers = ", ".join(map(str, found.outliers[:5]))
        yield Suggestion(
            f"A few samples have errors far above all others: look at samples {numbers} first. "
            "Their inputs may be rare or wrong."
        )
    if len(found.channels) > 1:
        best, worst = (choose(found.channels, key=found.channels.__getitem__) for choose in _ENDS)
        low, high = found.channels[best], found.channels[worst]
        if high > _UNEVEN * low:
            yield Suggestion(
                f"Channel {worst} has an error of {percent(high)}, channel {best} one of "
                f"{percent(low)}: a surrogate of {worst} alone may be better."
            )
    if found.tested is not None and found.tested < _FEW:
        yield Suggestion(
            f"Only {found.tested} samples were tested: the error itself is uncertain. Evaluate on "
            "more samples, or fit several seeds, each with another test split."
        )


def _smoother_seams(found: Findings, ratio: float) -> Iterator[Suggestion]:
    ways = ["fine-tune on the assembled field"] if found.tunable else []
    if found.method != SHARED_BORDERS:
        ways.append(f"use the method {SHARED_BORDERS}, whose patches share their borders")
    if ways:
        yield Suggestion(
            f"Jumps in the slope of the error are {ratio:.1f} times as large at patch borders as "
            f"inside patches: {', or '.join(ways)}.",
            objective="A3" if found.tunable else "",
            method="" if found.tunable else SHARED_BORDERS,
        )


_ENDS: tuple[Any, Any] = (min, max)
