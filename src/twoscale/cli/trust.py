"""What `predict` says and proves of its fields, and how it improves them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from twoscale.cli.terminal import is_quiet, print_table, say
from twoscale.errors import TwoscaleError
from twoscale.files import check_target
from twoscale.problems import describe_problem
from twoscale.runtime.progress import now
from twoscale.runtime.texts import percent
from twoscale.surrogate.assessment import Flags
from twoscale.trust import Certificate, Polished, certify, polish
from twoscale.trust.certificate import elliptic
from twoscale.trust.polish import check_amount

if TYPE_CHECKING:
    from twoscale.surrogate import Surrogate

_COMPARED = 16  # fields that the solver is also started from zero for


@dataclass(frozen=True)
class PartTrust:
    """What was found of some predicted fields; what was not asked for is None."""

    flags: Flags | None = None
    radius: np.ndarray | None = None
    certificate: Certificate | None = None
    steps: np.ndarray | None = None
    starts: Sequence[dict[str, Any]] = ()  # the table of two starts


@dataclass(frozen=True)
class TrustRequest:
    """What is asked to be known of predicted fields, and how they are improved.

    Inputs unlike the training inputs are always pointed out. With a `level` there are radii, with
    `certifies` certificates, with `steps` or a `tolerance` fields are polished before.
    """

    surrogate: Surrogate
    level: float | None = None
    certifies: bool = False
    steps: int | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.polishes:
            check_amount(self.steps, self.tolerance)
        if self.polishes or self.certifies:
            elliptic(self.surrogate.problem)
        if self.level is None:
            return
        if self.polishes:
            raise TwoscaleError(
                "--assess speaks of predictions, not of polished fields, which have certificates: "
                "drop one of them"
            )
        self.surrogate.check_level(self.level)

    @property
    def polishes(self) -> bool:
        return self.steps is not None or self.tolerance is not None

    @property
    def writes(self) -> bool:
        """Say whether something is written beside the fields."""
        return self.level is not None or self.certifies or self.polishes

    def predict(
        self, given: dict[str, Any], *, compares: bool = False
    ) -> tuple[np.ndarray, PartTrust]:
        """Return the fields to be written, and what is known of them.

        `given` are arguments of `Surrogate.predict`. A part that `compares` has the table of two
        starts if fields are polished.
        """
        predicted, found = self._assessed(given)
        if not (self.polishes or self.certifies):
            return predicted, found
        fields = torch.from_numpy(predicted).to(self.surrogate.device)
        inputs = torch.from_numpy(np.array(given["inputs"], dtype=np.float64)).to(fields.device)
        if not self.polishes:
            certificate = certify(fields, inputs, self.surrogate.problem)
            return predicted, replace(found, certificate=certificate)
        starts = self._two_starts(fields[:_COMPARED], inputs[:_COMPARED]) if compares else ()
        polished = self._polished(fields, inputs, steps=self.steps, tolerance=self.tolerance)
        proven = replace(found, certificate=polished.certificate, steps=polished.steps)
        return polished.fields.cpu().numpy(), replace(proven, starts=starts)

    def _assessed(self, given: dict[str, Any]) -> tuple[np.ndarray, PartTrust]:
        if self.level is None:
            if self.surrogate.trust_ is None:
                return self.surrogate.predict(**given), PartTrust()
            predicted, flags = self.surrogate.predict_flagged(**given)
            return predicted, PartTrust(flags)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of this part alone; `show` speaks of all samples
            found = self.surrogate.assess(**given, level=self.level, certificate=False)
        return found.fields, PartTrust(found.flags, found.radius)

    def _polished(self, fields: torch.Tensor, inputs: torch.Tensor, **amount: Any) -> Polished:
        return polish(fields, inputs, self.surrogate.problem, **amount)

    def _two_starts(self, fields: torch.Tensor, inputs: torch.Tensor) -> list[dict[str, Any]]:
        """Polish some fields from the prediction, and from zero to the same error; time both."""
        amount: dict[str, Any] = {"steps": self.steps, "tolerance": self.tolerance}
        rows = []
        for name, start in (("prediction", fields), ("zero", torch.zeros_like(fields))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fields that are written tell the same
                self._polished(start[:1], inputs[:1], **amount)  # loads libraries
                began = now()
                polished = self._polished(start, inputs, **amount)
            reached = _largest(polished.certificate)
            rows.append(
                {
                    "start": name,
                    "fields": len(fields),
                    "steps": float(polished.steps.mean()),
                    "milliseconds": 1000 * (now() - began) / len(fields),
                    "relative_error_upper": reached,
                }
            )
            if self.tolerance is None and 0 < reached < 1:
                amount = {"steps": None, "tolerance": reached}
        return rows


class PredictionTrust:
    """What is known of all predicted fields, whose numbers are written to `path`."""

    def __init__(self, asked: TrustRequest, parts: Sequence[PartTrust], path: Path) -> None:
        self.asked, self.path = asked, path
        self.flags = _joined(Flags.joined, [part.flags for part in parts])
        self.radius = _joined(np.concatenate, [part.radius for part in parts])
        self.certificate = _joined(Certificate.joined, [part.certificate for part in parts])
        self.steps = _joined(np.concatenate, [part.steps for part in parts])
        self.starts = [row for part in parts for row in part.starts]

    def record(self) -> dict[str, Any]:
        """Return what is written beside the fields: arrays with a number per sample."""
        found: dict[str, Any] = {}
        if self.radius is not None:
            found = {"level": self.asked.level, "radius": self.radius}
        if self.flags is not None:
            found |= self.flags.as_dict()
        if self.certificate is not None:
            assert self.asked.surrogate.problem is not None
            found["problem"] = describe_problem(self.asked.surrogate.problem)
            found |= self.certificate.as_dict()
        if self.steps is not None:
            found["steps"] = self.steps
        return found

    def summary(self) -> dict[str, Any]:
        """Return what is printed as JSON."""
        content: dict[str, Any] = {"assessment": str(self.path)} if self.asked.writes else {}
        if self.flags is not None:
            content["outside"] = self.flags.reasons()
        if self.radius is not None:
            content |= {"level": self.asked.level, "mean_radius": float(self.radius.mean())}
        if self.certificate is not None:
            content["relative_error_upper"] = _largest(self.certificate)
        return content | ({"polish": self.starts} if self.starts else {})

    def show(self) -> None:
        """Print what was found, and the table of both starts; a quiet command prints neither."""
        if self.flags is not None:
            self.flags.warn()
        if is_quiet():
            return
        if self.radius is not None:
            say(
                f"relative L2 error, at level {self.asked.level:g}: at most "
                f"{percent(np.median(self.radius))} for the median field, "
                f"{percent(np.max(self.radius))} for the worst"
            )
        if self.certificate is not None:
            upper = self.certificate.relative_error_upper
            say(
                f"proven: relative error in the energy norm at most {np.max(upper):.2g}, median "
                f"{np.median(upper):.2g}"
            )
        if self.asked.writes:
            say(f"numbers of each field are in {self.path}")
        if self.starts:
            _print_starts(self.starts)


def _joined(join: Callable[[list[Any]], Any], parts: Sequence[Any]) -> Any:
    """Return what was found of all parts, None where nothing was asked for."""
    return None if not parts or parts[0] is None else join(list(parts))


def _largest(certificate: Certificate) -> float:
    return float(certificate.relative_error_upper.max())


def _print_starts(starts: list[dict[str, Any]]) -> None:
    say(
        "polishing is the equation's own solver, preconditioned conjugate gradients, not learning; "
        f"the same solver from two starts to the same error, on {starts[0]['fields']} fields, its "
        "certificate included, the prediction not:"
    )
    numbers = {"steps": ".3g", "milliseconds": ".3g", "relative_error_upper": ".2g"}
    rows = [
        [one["start"], *(f"{one[name]:{digits}}" for name, digits in numbers.items())]
        for one in starts
    ]
    print_table(("start", "steps", "ms per field", "proven error"), rows)


def check_beside(out: Path, *, writes: bool, overwrite: bool) -> Path:
    """Return where the numbers of fields go, or raise if a file there must stay.

    Fields that come without such numbers must not lie beside those of the fields they replace.
    """
    path = out.with_suffix(".json") if out.suffix == ".npy" else out.with_name(f"{out.name}.json")
    if writes:
        check_target(path, overwrite=overwrite)
    elif path.exists():
        raise TwoscaleError(
            f"{path} speaks of other fields at {out}: pass --assess or --certify as well, or "
            "choose another path"
        )
    return path
