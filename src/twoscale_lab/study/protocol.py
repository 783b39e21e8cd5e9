"""The protocol of a study: settings of all its cells that no case's name mentions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from twoscale.errors import TwoscaleError, missing_extra
from twoscale_lab.study.cases import Case
from twoscale_lab.study.cells import DATA_SEED, Cell, Data, make_cell

try:
    from pydantic import BaseModel, ConfigDict, Field
except ImportError as error:
    raise missing_extra(error.name or "pydantic", "lab") from error

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Size = Annotated[int, Field(ge=1, le=10**9)]


class Strict(BaseModel):
    """A part of a definition, which holds nothing but what is named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tests(Strict):
    """Test fields of their own: how many, from which seed, and some of another distribution.

    `outside` has the parameters of that distribution by problem.
    """

    samples: Size
    seed: Seed = DATA_SEED + 1
    outside: dict[str, dict[str, Any]] = Field(default_factory=dict)


class Protocol(Strict):
    """Settings that replace the library's defaults in every cell, and are in no case's name."""

    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)  # by method or predictor
    finetuning: dict[str, Any] = Field(default_factory=dict)
    fixed_steps: Size | None = None
    problems: dict[str, dict[str, Any]] = Field(default_factory=dict)  # parameters, by problem
    tests: Tests | None = None  # by default a tenth of each dataset

    def cell(self, case: Case, seed: int) -> Cell:
        """Return the cell of a case and a seed under this protocol.

        The settings are those of the case's predictor if the protocol names it, else those of its
        method that a fit with this predictor has.
        """
        predictor = case.settings.get("predictor")
        given = self.settings.get(predictor or "", self.settings.get(case.method, {}))
        if predictor is not None and predictor not in self.settings:
            given = {name: value for name, value in given.items() if name in case.resolved}
        cell = make_cell(
            case,
            seed,
            settings=given,
            finetuning=self.finetuning,
            fixed_steps=self.fixed_steps,
        )
        cell = replace(cell, problem=self.problems.get(case.problem, {}))
        return replace(cell, tests=self._test_data(cell))

    def _test_data(self, cell: Cell) -> tuple[Data, ...]:
        """Return the datasets that a cell is tested on, if they are not parts of its own."""
        if self.tests is None:
            return ()
        if cell.finetuning is not None:
            raise TwoscaleError(f"{cell.name}: a study with tests of its own has no fine-tuning")
        own = cell.data._replace(samples=self.tests.samples, seed=self.tests.seed)
        other = self.tests.outside.get(cell.case.problem)
        if other is None:
            return (own,)
        return (own, own._replace(settings=tuple(sorted({**cell.problem, **other}.items()))))
