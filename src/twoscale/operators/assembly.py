"""The parts of a surrogate together: what is described, saved, and built into an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError
from twoscale.operators.operators import FieldOperator, LatentOperator, RefinedOperator
from twoscale.parts import build, check_registered, describe
from twoscale.predictors import CodePredictor
from twoscale.representation import Representation, WholeField


@dataclass(frozen=True)
class Assembly:
    """The parts of a surrogate: input representation, predictor, output representation.

    Parameters
    ----------
    inputs, predictor, outputs
        The three parts.
    correction
        A predictor on fields that maps the predicted field to a better one; none by default.
    symmetries
        One of `SYMMETRIES`, "none" by default: their images multiply the training fields.
    average_symmetries
        Whether predictions are averaged over the images of the input. False by default.

    Examples
    --------
    >>> from twoscale.predictors import Affine
    >>> parts = Assembly(WholeField(), Affine(), WholeField())
    >>> Assembly.from_description(parts.describe()).predictor
    Affine()
    """

    inputs: Representation
    predictor: CodePredictor
    outputs: Representation
    correction: CodePredictor | None = None
    symmetries: str = "none"
    average_symmetries: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("inputs", Representation), ("outputs", Representation)):
            _check_kind(name, getattr(self, name), kind)
        _check_kind("predictor", self.predictor, CodePredictor)
        for part in (self.inputs, self.predictor, self.outputs, self.correction):
            check_registered(part)
        if self.outputs.affine is not self.outputs:
            raise TwoscaleError(
                f"transforms are for inputs, got outputs={self.outputs!r}: fit on transformed "
                "outputs, and undo the transform of predictions"
            )
        if self.correction is not None:
            _check_kind("correction", self.correction, CodePredictor)
            if not self.correction.reads_fields:
                raise TwoscaleError(
                    f"a correction maps fields to fields, and {self.correction!r} maps codes: "
                    "use Refinement, Encoder or FNO"
                )
        if self.symmetries not in SYMMETRIES:
            raise TwoscaleError(
                f"symmetries must be one of {', '.join(SYMMETRIES)}, got '{self.symmetries}'"
            )
        if self.average_symmetries and self.symmetries == "none":
            raise TwoscaleError(
                "average_symmetries=true needs symmetries to average over, got symmetries=none: "
                "set symmetries=square, mirrors or shifts, or leave the average out"
            )

    @property
    def trains_on_fields(self) -> bool:
        """Say whether a network is trained on fields: in memory, or in a scratch file."""
        return self.predictor.reads_fields or self.correction is not None

    @property
    def data_parallel(self) -> bool:
        """Say whether several processes can train the surrogate, or its correction, together."""
        return self.predictor.data_parallel or self.correction is not None

    @property
    def uses_validation(self) -> bool:
        """Say whether a fit chooses settings or weights on validation samples."""
        return self.predictor.uses_validation or self.correction is not None

    def operator(self) -> FieldOperator:
        """Return an operator of unfitted copies of these parts, to be fitted or restored."""
        fresh = Assembly.from_description(self.describe())
        base = LatentOperator(
            fresh.inputs,
            fresh.predictor,
            fresh.outputs,
            symmetries=self.symmetries,
            average=self.average_symmetries,
        )
        if fresh.correction is None:
            return base
        correction = LatentOperator(WholeField(), fresh.correction, WholeField(), warns=False)
        return RefinedOperator(base, correction)

    def describe(self) -> dict[str, Any]:
        """Return the tree of parts as plain values: names and arguments."""
        return {
            "inputs": describe(self.inputs),
            "predictor": describe(self.predictor),
            "outputs": describe(self.outputs),
            "correction": None if self.correction is None else describe(self.correction),
            "symmetries": self.symmetries,
            "average_symmetries": self.average_symmetries,
        }

    @classmethod
    def from_description(cls, stored: Mapping[str, Any]) -> Self:
        """Return the parts that a tree describes."""
        correction = stored["correction"]
        return cls(
            _representation(stored["inputs"]),
            _predictor(stored["predictor"]),
            _representation(stored["outputs"]),
            None if correction is None else _predictor(correction),
            stored["symmetries"],
            stored["average_symmetries"],
        )


def _representation(stored: Mapping[str, Any]) -> Representation:
    return build(stored, Representation)  # type: ignore[type-abstract]


def _predictor(stored: Mapping[str, Any]) -> CodePredictor:
    return build(stored, CodePredictor)  # type: ignore[type-abstract]


def _check_kind(name: str, part: Any, kind: type) -> None:
    if isinstance(part, type):
        raise TwoscaleError(f"{name} is an object, not a class: write {part.__name__}(...)")
    if not isinstance(part, kind):
        raise TwoscaleError(f"{name} must be a {kind.__name__}, got {part!r}")
