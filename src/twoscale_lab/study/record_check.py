"""Check that a study's record is complete and of the right types, before anything uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import METHODS, resolve
from twoscale_lab.study.definition import Scale, StudyName
from twoscale_lab.study.validation import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Seed,
    Size,
    ValidationError,
    first_problem,
    model_validator,
)

# Statistics square numbers and divide them by each other: beyond this they would overflow.
_LARGEST = 1e100
_DEPTH = 5  # of mappings within metrics
_TIMINGS = "timings"

Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Word = Annotated[str, Field(pattern=r"^\w[\w.:+-]*$", max_length=100)]
CaseName = Annotated[str, Field(pattern=r"^\S+ \S[^\x00-\x1f\x7f]*$", max_length=1000)]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_LARGEST <= value <= _LARGEST
    )


def _check_numbers(values: dict[str, Any], depth: int = 1) -> dict[str, Any]:
    """Raise unless a mapping holds numbers, nulls and mappings of them only."""
    for name, value in values.items():
        if isinstance(value, dict) and depth < _DEPTH:
            _check_numbers(value, depth + 1)
        elif value is not None and not _is_number(value):
            raise TwoscaleError(f"{name} is no number of at most {_LARGEST:g}")
    return values


def _check_metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    timings = metrics.get(_TIMINGS, {})
    if not isinstance(timings, dict) or not all(map(_is_number, timings.values())):
        raise TwoscaleError(f"{_TIMINGS} does not hold seconds by name")
    return _check_numbers(metrics)


class _Part(BaseModel):
    """A part of a record; it may hold more than is checked."""

    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class _Retained(_Part):
    ranks: dict[str, list[Number]] = Field(default_factory=dict)


class _Cell(_Part):
    case: CaseName
    key: Word
    problem: Word
    resolution: Size
    samples: Size | None = None
    training: Size
    method: Word
    objective: Word | None
    settings: dict[str, Any] = Field(default_factory=dict)
    seed: Seed
    environment: int
    config_hash: str | None = None
    metrics: Annotated[dict[str, Any], AfterValidator(_check_metrics)]
    retained: dict[str, _Retained] = Field(default_factory=dict)
    epochs: dict[str, dict[str, Any]] = Field(default_factory=dict)
    weights: dict[str, Number] = Field(default_factory=dict)
    model_bytes: Number | None = None
    processes: Size | None = None

    @model_validator(mode="after")
    def _check_settings(self) -> _Cell:
        if self.method in METHODS:
            resolve(self.method, self.settings)
        return self


class _Failed(_Part):
    case: CaseName
    key: Word
    seed: Seed
    error: str


class _Record(_Part):
    study: StudyName
    scale: Scale
    command: str = ""
    environments: list[dict[str, Any]]
    cells: list[_Cell]
    failed: list[_Failed] = Field(default_factory=list)
    definition: dict[str, Any] | None = None


def check_record(file: Path, record: dict[str, Any]) -> None:
    """Raise an error that names the file and the place if a record is not valid."""
    try:
        checked = _Record.model_validate(record)
    except ValidationError as error:
        raise TwoscaleError(f"{file} is damaged at {first_problem(error)}") from error
    for place, cell in enumerate(checked.cells):
        if not 0 <= cell.environment < len(checked.environments):
            raise TwoscaleError(
                f"{file} is damaged at cells.{place}.environment: there is no environment "
                f"{cell.environment}"
            )
