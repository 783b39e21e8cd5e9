"""The parts of a surrogate together: what is described, saved, and built into an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError
from twoscale.operators.operators import CodeOperator, FieldOperator, RefinedOperator
from twoscale.parts import Part, build, check_registered, describe, unfitted
from twoscale.predictors import CodePredictor
from twoscale.representation import Representation, WholeField

_PARTS: dict[str, type[Part]] = {
    "inputs": Representation,
    "predictor": CodePredictor,
    "outputs": Representation,
    "correction": CodePredictor,
}


@dataclass(frozen=True)
class SurrogateSpec:
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
    >>> parts = SurrogateSpec(WholeField(), Affine(), WholeField())
    >>> SurrogateSpec.from_description(parts.describe()).predictor
    Affine()
    """

    inputs: Representation
    predictor: CodePredictor
    outputs: Representation
    correction: CodePredictor | None = None
    symmetries: str = "none"
    average_symmetries: bool = False

    def __post_init__(self) -> None:
        for name, kind in _PARTS.items():
            part = getattr(self, name)
            if part is None and name == "correction":
                continue
            if isinstance(part, type):
                raise TwoscaleError(f"{name} is an object, not a class: write {part.__name__}(...)")
            if not isinstance(part, kind):
                raise TwoscaleError(f"{name} must be a {kind.__name__}, got {part!r}")
            check_registered(part)
        if self.outputs.affine is not self.outputs:
            raise TwoscaleError(
                f"transforms are for inputs, got outputs={self.outputs!r}: fit on transformed "
                "outputs, and undo the transform of predictions"
            )
        if self.correction is not None and not self.correction.reads_fields:
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
        base = CodeOperator(
            unfitted(self.inputs),
            unfitted(self.predictor),
            unfitted(self.outputs),
            symmetries=self.symmetries,
            average=self.average_symmetries,
        )
        if self.correction is None:
            return base
        correction = unfitted(self.correction)
        return RefinedOperator(
            base, CodeOperator(WholeField(), correction, WholeField(), warns=False)
        )

    def describe(self) -> dict[str, Any]:
        """Return the tree of parts as plain values: names and arguments."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return {
            **{name: None if part is None else describe(part) for name, part in parts.items()},
            "symmetries": self.symmetries,
            "average_symmetries": self.average_symmetries,
        }

    @classmethod
    def from_description(cls, stored: Mapping[str, Any]) -> Self:
        """Return the parts that a tree describes."""
        parts: dict[str, Any] = {
            name: build(stored[name], kind)
            for name, kind in _PARTS.items()
            if name != "correction" or stored[name] is not None
        }
        return cls(
            **parts,
            symmetries=stored["symmetries"],
            average_symmetries=stored["average_symmetries"],
        )
