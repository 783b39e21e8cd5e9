"""The paper's tables as numbers, and what is known about cells that differ from them.

One YAML file for each table, named by its label; values are [mean, standard deviation or null] over
seeds, fractions, seconds. Files that begin with `text` hold numbers that stand in no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeVar

from twoscale.errors import TwoscaleError
from twoscale_lab.study.cells import parse_case
from twoscale_lab.study.paper.audit import Decision
from twoscale_lab.study.quantities import check_quantity
from twoscale_lab.study.validation import (
    AfterValidator,
    BaseModel,
    Field,
    Strict,
    ValidationError,
    first_problem,
    model_validator,
    yaml,
)

_FOLDER = files("twoscale_lab.study") / "paper"
_EXPLANATIONS = "explanations"


def _canonical(name: str) -> str:
    if parse_case(name).id != name:
        raise TwoscaleError(f"'{name}' is written '{parse_case(name).id}'")
    return name


CaseName = Annotated[str, AfterValidator(_canonical)]
QuantityName = Annotated[str, AfterValidator(check_quantity)]
Deviation = Annotated[float, Field(ge=0)]
# From b to v: the mean over seeds of (v−b)/b, of v−b or of b/v; of_means is (v̄−b̄)/b̄.
Change = Literal["relative", "of_means", "absolute", "speed_up"]


class PaperAudit(Strict):
    """What the paper's equivalence audit says about a change."""

    interval: tuple[float, float]  # of the mean change, at 90 %
    margin: float
    decision: Decision


class PaperCell(Strict):
    """Some quantities of a case; or, with `against`, how they change from that case to this one."""

    case: CaseName
    against: CaseName | None = None
    change: Change | None = None
    seeds: int = Field(ge=1)
    values: dict[QuantityName, tuple[float, Deviation | None]] = Field(min_length=1)
    audit: dict[str, PaperAudit] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> PaperCell:
        if (self.against is None) != (self.change is None):
            raise TwoscaleError(f"{self.case}: 'against' and 'change' go together")
        if unknown := self.audit.keys() - self.values.keys():
            raise TwoscaleError(f"{self.case}: an audit of {sorted(unknown)}, which has no value")
        return self

    @property
    def name(self) -> str:
        """Return the case, with the one it is held against."""
        return self.case if self.against is None else f"{self.case} against {self.against}"


class PaperTable(Strict):
    """One table: the study that repeats it, what it shows, its numbers.

    `number` is the table's number in the paper; numbers of the text have none. `printed_to` is the
    unit of the last digit of its changes, of which some are that small.
    """

    label: str
    number: int | None = None
    study: str
    caption: str
    printed_to: dict[Change, float] = Field(default_factory=dict)
    cells: list[PaperCell] = Field(min_length=1)


class Explanation(Strict):
    """Why rows of a comparison have a verdict: patterns of their table, cell and metric."""

    table: str = "*"
    cell: str = "*"
    metric: str = "*"
    verdict: Literal["off", "missing"] = "off"
    because: str = Field(min_length=1)


class _Explanations(Strict):
    explanations: list[Explanation]


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return the paper's tables by label."""
    labels = sorted(
        file.name.removesuffix(".yaml") for file in _FOLDER.iterdir() if file.name.endswith(".yaml")
    )
    return {label: _read(label, PaperTable) for label in labels if label != _EXPLANATIONS}


@cache
def known_explanations() -> tuple[Explanation, ...]:
    """Return what is known about differences; of several that fit a row, the first counts."""
    return tuple(_read(_EXPLANATIONS, _Explanations).explanations)


Content = TypeVar("Content", bound=BaseModel)


def _read(name: str, kind: type[Content]) -> Content:
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return parse(text, kind, source=f"{name}.yaml")


def parse(text: str, kind: type[Content], *, source: str) -> Content:
    """Return the checked content of a YAML text; `source` is named when something is wrong."""
    try:
        content: Any = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return kind.model_validate(content)
    except yaml.YAMLError as error:
        raise TwoscaleError(f"{source} is not proper YAML: {error}") from error
    except ValidationError as error:
        raise TwoscaleError(f"{source}, {first_problem(error)}") from error
