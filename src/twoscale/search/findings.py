"""What is known of a fitted surrogate, and which share of its error has which cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twoscale.domain.space import Space

PERFECT = 1e-6  # relative error: about the limit of single precision


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
