"""The definition of a study: cases with seeds, tables and figures, at two scales."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from typing import Annotated, Any

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.methods.recipes import every_setting
from twoscale_lab.names import Scale
from twoscale_lab.study.cells import DATA_SEED, SAMPLES, Case, Cell, Data, make_cell
from twoscale_lab.study.quantities import check_quantity
from twoscale_lab.study.validation import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Seed,
    Size,
    Strict,
)


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


# Records and figures are files that begin with this name.
StudyName = Annotated[str, Field(pattern=r"^\w[\w. -]*$", max_length=50)]
Label = Annotated[str, Field(max_length=200)]

_MOST_CELLS = 10_000
_FIELD = re.compile(r"\{(?P<name>\w+)(:(?P<format>,?(\.\d)?[defg%]?))?\}")  # of a label


class CaseEntry(Strict):
    """One or several cases: all combinations of the lists in it, settings included."""

    method: str | list[str]
    objective: str | list[str | None] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    problem: str | list[str] | None = None
    resolution: Size | list[Size] | None = None
    training: Size | list[Size | None] | None = None
    seeds: list[Seed] | None = None
    label: Label | None = None  # {name} stands for a part or a setting of the case, or {title}


class StudyTable(Strict):
    """A table: one row per case that any of the patterns names, one column per quantity."""

    name: str
    title: str
    rows: list[str] = Field(default_factory=lambda: ["*"])
    columns: list[Annotated[str, AfterValidator(check_quantity)]]


class StudyFigure(BaseModel):
    """A figure of some kind; all further entries are options of that kind."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    title: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Compare(Strict):
    """Which of the paper's tables the study repeats."""

    paper: list[str] = Field(default_factory=list)


class Small(Strict):
    """What the small scale changes; its protocol replaces that of the study.

    With `own_schedule` it also replaces what cases say about the training schedule.
    """

    resolution: dict[Size, Size]
    samples: Size
    training: dict[Size, Size] = Field(default_factory=dict)
    seeds: list[Seed]
    protocol: Protocol
    own_schedule: bool = False


class Study(Strict):
    """A list of cases with seeds, and what to show of them."""

    name: StudyName
    title: str
    question: str
    position: int = 0  # among the studies that are listed
    seeds: list[Seed] = Field(min_length=1)
    alone: list[Seed] = Field(
        default_factory=list
    )  # seeds that are fitted one by one, so that no other fit shares their time
    problem: str | list[str] = "poisson"
    resolution: Size | list[Size] = 128
    samples: Size = SAMPLES
    protocol: Protocol = Protocol()
    cases: list[CaseEntry] = Field(min_length=1)
    small: Small
    tables: list[StudyTable] = Field(default_factory=list, max_length=100)
    figures: list[StudyFigure] = Field(default_factory=list, max_length=100)
    compare: Compare = Compare()

    def rows(self) -> list[StudyRow]:
        """Return the cases in order, each once, with their seeds and labels."""
        self._check_count()
        rows: dict[Case, StudyRow] = {}
        for entry in self.cases:
            for case in self._expand(entry):
                seeds = self.seeds if entry.seeds is None else entry.seeds
                label = _label(entry.label, case)
                known = rows.get(case)
                if known is not None:
                    seeds = sorted({*known.seeds, *seeds})
                    label = known.label or label
                rows[case] = StudyRow(case, tuple(seeds), label)
        return list(rows.values())

    def cells(
        self, *, seeds: Sequence[int] | None = None, only: Collection[str] = ()
    ) -> list[Cell]:
        """Return the cells: of these seeds instead of the study's own, of these methods only.

        A method is named with its objective (`two-scale+A3`) or for all of them (`two-scale`);
        a case's id, or a pattern of ids (`poisson-128 *`), is allowed too.
        """
        rows = self.rows()
        for name in only:
            if not any(_is_named(row.case, name) for row in rows):
                hint = did_you_mean(name, self.methods)
                raise TwoscaleError(
                    f"the study {self.name} has no method '{name}'{hint}: "
                    f"it has {', '.join(sorted(self.methods))}"
                )
        return [
            self.protocol.cell(row.case, seed)
            for row in rows
            if not only or any(_is_named(row.case, name) for name in only)
            for seed in (row.seeds if seeds is None else seeds)
        ]

    def has(self, name: str) -> bool:
        """Say whether `only` may name a case so."""
        return any(_is_named(row.case, name) for row in self.rows())

    @property
    def methods(self) -> set[str]:
        """Return what `only` may name: methods, alone and with their objectives."""
        return {name for row in self.rows() for name in _names(row.case)}

    def at(self, scale: Scale) -> Study:
        """Return the study at a scale; its file is written for the paper's."""
        if scale == "paper":
            return self
        small = self.small
        content = self.model_dump(exclude={"small", "protocol", "seeds", "samples"})
        for part in (content, *content["cases"]):
            part["resolution"] = _mapped(part["resolution"], small.resolution)
        for entry in content["cases"]:
            entry["training"] = _mapped(entry["training"], small.training)
            if small.own_schedule:
                given = entry["settings"].items()
                entry["settings"] = {k: v for k, v in given if not _is_schedule(k)}
            if entry["seeds"] is not None:
                entry["seeds"] = [seed for seed in entry["seeds"] if seed in small.seeds]
        for part in ("title", "question", "tables", "figures"):
            content[part] = _renamed(content[part], small)
        return Study(
            **content,
            seeds=small.seeds,
            samples=small.samples,
            protocol=small.protocol,
            small=small,
        )

    def _check_count(self) -> None:
        """Raise if the lists have more combinations than anybody can mean."""
        count = 0
        for entry in self.cases:
            lists = [*self._places(entry), *_choices(entry), _as_list(entry.objective)]
            count += prod(map(len, lists)) * len(self.seeds if entry.seeds is None else entry.seeds)
        if count > _MOST_CELLS:
            raise TwoscaleError(
                f"the study {self.name} has over {_MOST_CELLS:,} cells: give fewer values or seeds"
            )

    def _places(self, entry: CaseEntry) -> list[list[Any]]:
        """Return the problems, resolutions, methods and training sizes of an entry."""
        return [
            _as_list(self.problem if entry.problem is None else entry.problem),
            _as_list(self.resolution if entry.resolution is None else entry.resolution),
            _as_list(entry.method),
            _as_list(entry.training),
        ]

    def _expand(self, entry: CaseEntry) -> Iterator[Case]:
        for problem, resolution, method, training in product(*self._places(entry)):
            for values in product(*_choices(entry)):
                for objective in _as_list(entry.objective):
                    yield Case(
                        problem=problem,
                        resolution=resolution,
                        samples=self._samples(training),
                        training=training,
                        method=method,
                        objective=objective,
                        settings=dict(zip(entry.settings, values, strict=True)),
                    )

    def _samples(self, training: int | None) -> int:
        """Return the size of a case's dataset: its training fields if tests have their own."""
        if self.protocol.tests is None:
            return self.samples
        if training is None:
            raise TwoscaleError(
                f"the study {self.name} has tests of its own: say how many fields train each case "
                "(training: 1000)"
            )
        return training


@dataclass(frozen=True)
class StudyRow:
    """A case of a study, the seeds it is run with, and a short name where it has one."""

    case: Case
    seeds: tuple[int, ...]
    label: str | None


def _is_schedule(name: str) -> bool:
    setting = every_setting().get(name)
    return setting is not None and setting.schedule


def _choices(entry: CaseEntry) -> list[list[Any]]:
    """Return the values of each setting of an entry."""
    return [_as_list(value) for value in entry.settings.values()]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mapped(value: Any, change: Mapping[int, int]) -> Any:
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    return change.get(value, value)


def _renamed(value: Any, small: Small) -> Any:
    """Return a value with the sizes in cases and titles replaced by those of the small scale."""
    if isinstance(value, dict):
        return {name: _renamed(one, small) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, small) for one in value]
    if not isinstance(value, str):
        return value
    value = _replaced(r"(?<=[a-z*]-)\d+\b|(?<=[a-z] )\d+(?=²)", value, small.resolution)
    return _replaced(r"(?<=training=)\d+", value, small.training)


def _replaced(pattern: str, text: str, change: Mapping[int, int]) -> str:
    return re.sub(pattern, lambda found: str(_mapped(int(found[0]), change)), text)


def _is_named(case: Case, name: str) -> bool:
    return name in _names(case) or fnmatchcase(case.id, name)


def _names(case: Case) -> list[str]:
    """Return what `only` may call a case."""
    return [case.method] + ([f"{case.method}+{case.objective}"] if case.objective else [])


def _label(label: str | None, case: Case) -> str | None:
    """Return a label with the parts of the case's name and its settings filled in."""
    own = ("problem", "resolution", "method", "training")
    parts = case.resolved | {name: getattr(case, name) for name in own}
    parts["title"] = case.title
    if label is None:
        return None
    try:
        if set("{}") & set(_FIELD.sub("", label)):
            raise ValueError("a brace is left")
        return _FIELD.sub(lambda found: format(parts[found["name"]], found["format"] or ""), label)
    except (KeyError, ValueError, TypeError) as error:
        raise TwoscaleError(
            f"the label '{label}' of {case.id} may hold only {{names}} of {', '.join(parts)}"
        ) from error
