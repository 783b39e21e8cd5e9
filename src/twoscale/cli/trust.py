"""What `predict` proves of its fields, and how it improves them: certificates and polishing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from twoscale.cli.display import print_table, say
from twoscale.cli.quiet import is_quiet
from twoscale.errors import TwoscaleError
from twoscale.files import check_target, is_file
from twoscale.problems import describe_problem
from twoscale.runtime.timing import now
from twoscale.trust import Certificate, Polished, certify, polish
from twoscale.trust.given import elliptic
from twoscale.trust.polish import check_amount

if TYPE_CHECKING:
    from twoscale.surrogate import Surrogate

_COMPARED = 16  # fields that the solver is also started from zero for


@dataclass
class Assessor:
    """Certifies predicted fields part by part, after polishing them if that was asked for."""

    surrogate: Surrogate
    steps: int | None = None
    tolerance: float | None = None
    parts: list[Certificate] = field(default_factory=list)
    taken: list[np.ndarray] = field(default_factory=list)
    starts: list[dict[str, Any]] = field(default_factory=list)  # the table of two starts

    def __post_init__(self) -> None:
        elliptic(self.surrogate.problem)
        if self.polishes:
            check_amount(self.steps, self.tolerance)

    @property
    def polishes(self) -> bool:
        return self.steps is not None or self.tolerance is not None

    def assess(self, predicted: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """Return the fields to be written for some samples; remember what is proven of them."""
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
        """Polish some fields from the prediction and from zero, and keep the time of both."""
        for name, start in (("prediction", fields), ("zero", torch.zeros_like(fields))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fields that are written tell the same
                self._polish(start[:1], given[:1])  # a first call also loads libraries
                began = now()
                polished = self._polish(start, given)
            self.starts.append(
                {
                    "start": name,
                    "fields": len(fields),
                    "steps": float(polished.steps.mean()),
                    "milliseconds": 1000 * (now() - began) / len(fields),
                    "relative_error_upper": _largest(polished.certificate),
                }
            )

    def record(self) -> dict[str, Any]:
        """Return what is written beside the fields: arrays with a number per sample."""
        assert self.surrogate.problem is not None
        arrays: dict[str, Any] = Certificate.joined(self.parts).as_dict()
        if self.taken:
            arrays["steps"] = np.concatenate(self.taken)
        return {"problem": describe_problem(self.surrogate.problem), **arrays}

    def summary(self, path: Path) -> dict[str, Any]:
        """Return what is printed as JSON."""
        largest = _largest(Certificate.joined(self.parts))
        content: dict[str, Any] = {"file": str(path), "relative_error_upper": largest}
        return {"certificate": content, **({"polish": self.starts} if self.starts else {})}

    def show(self, path: Path) -> None:
        """Print the largest error, and the table of both starts; a quiet command prints neither."""
        if is_quiet():
            return
        upper = Certificate.joined(self.parts).relative_error_upper
        say(
            f"proven: relative error in the energy norm at most {np.max(upper):.2g}, median "
            f"{np.median(upper):.2g}; the bounds of each field are in {path}"
        )
        if self.starts:
            _print_starts(self.starts)


def _largest(certificate: Certificate) -> float:
    return float(certificate.relative_error_upper.max())


def _print_starts(starts: list[dict[str, Any]]) -> None:
    say(
        "polishing is the equation's own solver, preconditioned conjugate gradients, not learning; "
        f"the same solver from two starts, on {starts[0]['fields']} fields, its certificate "
        "included, the prediction not:"
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


def certificate_path(out: Path) -> Path:
    """Return where the certificate of predicted fields goes: beside them."""
    return out.with_suffix(".json") if out.suffix == ".npy" else out.with_name(f"{out.name}.json")


def check_beside(out: Path, *, assessed: bool, overwrite: bool) -> Path:
    """Return where the certificate goes, or raise if a file there must stay.

    Fields that come without a certificate must not lie beside that of the fields they replace.
    """
    path = certificate_path(out)
    if assessed:
        check_target(path, overwrite=overwrite, may_replace=is_file)
    elif out.exists() and path.exists():
        raise TwoscaleError(
            f"{path} holds bounds of the fields that would be replaced: pass --certify as well, or "
            "choose another path"
        )
    return path
