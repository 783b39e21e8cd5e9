"""What `predict` says and proves of its fields, and how it improves them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from twoscale.cli.terminal import is_quiet, print_table, say
from twoscale.errors import TwoscaleError
from twoscale.files import check_target
from twoscale.problems import describe_problem
from twoscale.runtime.texts import percent
from twoscale.runtime.timing import now
from twoscale.surrogate.assessment import Flags
from twoscale.trust import Certificate, Polished, certify, polish
from twoscale.trust.certificate import elliptic
from twoscale.trust.polish import check_amount

if TYPE_CHECKING:
    from twoscale.surrogate import Surrogate

_COMPARED = 16  # fields that the solver is also started from zero for


@dataclass
class Assessor:
    """Predicts fields part by part, and remembers how far they can be trusted.

    Inputs unlike the training inputs are always pointed out. With a `level` there are radii, with
    `certifies` certificates, with `steps` or a `tolerance` fields are polished before.
    """

    surrogate: Surrogate
    level: float | None = None
    certifies: bool = False
    steps: int | None = None
    tolerance: float | None = None
    parts: list[Certificate] = field(default_factory=list)
    taken: list[np.ndarray] = field(default_factory=list)
    starts: list[dict[str, Any]] = field(default_factory=list)  # the table of two starts
    radii: list[np.ndarray] = field(default_factory=list)
    flags: list[Flags] = field(default_factory=list)

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

    def predict(self, given: dict[str, Any]) -> np.ndarray:
        """Return the fields to be written for some inputs, arguments of `Surrogate.predict`."""
        predicted = self._assess(given)
        if self.polishes or self.certifies:
            return self._prove(predicted, given["inputs"])
        return predicted

    def apart(self) -> Assessor:
        """Return one that remembers nothing yet, for inputs that another process works on."""
        return replace(self, parts=[], taken=[], radii=[], flags=[])

    def take(self, other: Assessor) -> None:
        """Remember what another one found of the inputs that follow."""
        for name in ("parts", "taken", "radii", "flags"):
            getattr(self, name).extend(getattr(other, name))

    def _assess(self, given: dict[str, Any]) -> np.ndarray:
        if self.level is None:
            if self.surrogate.trust_ is None:
                return self.surrogate.predict(**given)
            predicted, flags = self.surrogate.predict_flagged(**given)
            self.flags.append(flags)
            return predicted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of this part alone; `show` speaks of all samples
            found = self.surrogate.assess(**given, level=self.level, certificate=False)
        self.radii.append(found.radius)
        self.flags.append(found.flags)
        return found.fields

    def _prove(self, predicted: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """Return fields, polished if that was asked for; remember what is proven of them."""
        fields = torch.from_numpy(predicted).to(self.surrogate.device)
        given = torch.from_numpy(np.array(inputs, dtype=np.float64)).to(self.surrogate.device)
        if not self.polishes:
            self.parts.append(certify(fields, given, self.surrogate.problem))
            return predicted
        if not self.starts:
            self._compare(fields[:_COMPARED], given[:_COMPARED])
        polished = self._polish(fields, given)
        self.parts.append(polished.certificate)
        self.taken.append(polished.steps)
        return polished.fields.cpu().numpy()

    def _polish(self, fields: torch.Tensor, given: torch.Tensor) -> Polished:
        problem = self.surrogate.problem
        return polish(fields, given, problem, steps=self.steps, tolerance=self.tolerance)

    def _compare(self, fields: torch.Tensor, given: torch.Tensor) -> None:
        """Polish some fields from the prediction, and from zero to the same error; time both."""
        amount: dict[str, Any] = {"steps": self.steps, "tolerance": self.tolerance}
        for name, start in (("prediction", fields), ("zero", torch.zeros_like(fields))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fields that are written tell the same
                polish(start[:1], given[:1], self.surrogate.problem, **amount)  # loads libraries
                began = now()
                polished = polish(start, given, self.surrogate.problem, **amount)
            reached = _largest(polished.certificate)
            self.starts.append(
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

    def record(self) -> dict[str, Any]:
        """Return what is written beside the fields: arrays with a number per sample."""
        found: dict[str, Any] = {}
        if self.level is not None:
            found = {"level": self.level, "radius": np.concatenate(self.radii)}
        if self.flags:
            found |= Flags.joined(self.flags).as_dict()
        if self.parts:
            assert self.surrogate.problem is not None
            found["problem"] = describe_problem(self.surrogate.problem)
            found |= Certificate.joined(self.parts).as_dict()
        if self.taken:
            found["steps"] = np.concatenate(self.taken)
        return found

    def summary(self, path: Path) -> dict[str, Any]:
        """Return what is printed as JSON."""
        content: dict[str, Any] = {"assessment": str(path)} if self.writes else {}
        if self.flags:
            content["outside"] = Flags.joined(self.flags).reasons()
        if self.radii:
            content |= {
                "level": self.level,
                "mean_radius": float(np.concatenate(self.radii).mean()),
            }
        if self.parts:
            content["relative_error_upper"] = _largest(Certificate.joined(self.parts))
        return content | ({"polish": self.starts} if self.starts else {})

    def show(self, path: Path) -> None:
        """Print what was found, and the table of both starts; a quiet command prints neither."""
        if self.flags:
            Flags.joined(self.flags).warn()
        if is_quiet():
            return
        if self.radii:
            radius = np.concatenate(self.radii)
            say(
                f"relative L2 error, at level {self.level:g}: at most {percent(np.median(radius))} "
                f"for the median field, {percent(np.max(radius))} for the worst"
            )
        if self.parts:
            upper = Certificate.joined(self.parts).relative_error_upper
            say(
                f"proven: relative error in the energy norm at most {np.max(upper):.2g}, median "
                f"{np.median(upper):.2g}"
            )
        if self.writes:
            say(f"numbers of each field are in {path}")
        if self.starts:
            _print_starts(self.starts)


def predicted_elsewhere(assessor: Assessor, given: dict[str, Any]) -> tuple[np.ndarray, Assessor]:
    """Return the fields of some inputs, and what was found of them without the surrogate."""
    own = assessor.apart()
    fields = own.predict(given)
    own.surrogate = None  # type: ignore[assignment]
    return fields, own


def _largest(certificate: Certificate) -> float:
    return float(certificate.relative_error_upper.max())


def _print_starts(starts: list[dict[str, Any]]) -> None:
    say(
        "polishing is the equation's own solver, preconditioned conjugate gradients, not learning; "
        f"the same solver from two starts to the same error, on {starts[0]['fields']} fields, its "
        "certificate included, the prediction not:"
    )
    rows = [
        [
            one["start"],
            f"{one['steps']:.3g}",
            f"{one['milliseconds']:.3g}",
            f"{one['relative_error_upper']:.2g}",
        ]
        for one in starts
    ]
    print_table(("start", "steps", "ms per field", "proven error"), rows)


def assessment_path(out: Path) -> Path:
    """Return where the numbers of predicted fields go: beside them."""
    return out.with_suffix(".json") if out.suffix == ".npy" else out.with_name(f"{out.name}.json")


def check_beside(out: Path, *, writes: bool, overwrite: bool) -> Path:
    """Return where the numbers of fields go, or raise if a file there must stay.

    Fields that come without such numbers must not lie beside those of the fields they replace.
    """
    path = assessment_path(out)
    if writes:
        check_target(path, overwrite=overwrite)
    elif path.exists():
        raise TwoscaleError(
            f"{path} speaks of other fields at {out}: pass --assess or --certify as well, or "
            "choose another path"
        )
    return path
