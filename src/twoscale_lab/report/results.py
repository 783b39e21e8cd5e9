"""The results of studies: the cells of their records by case, with definitions and the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import METHODS, every_setting, resolve
from twoscale.methods.settings import setting_text
from twoscale.report.display import ABSENT, display, with_spread
from twoscale.report.method_looks import method_title
from twoscale_lab.names import STUDIES
from twoscale_lab.study.catalogue import recorded_study
from twoscale_lab.study.definition import Study
from twoscale_lab.study.folder import read_record, record_files
from twoscale_lab.study.paper.comparison import ComparedValue, compare
from twoscale_lab.study.quantities import is_shared_time, values_by_seed
from twoscale_lab.study.samples import read_fields
from twoscale_lab.study.statistics import Spread, spread

SCHEDULE = frozenset(name for name, setting in every_setting().items() if setting.schedule)
"""Settings of the training schedule, which do not make another design."""

OWN = ("problem", "resolution", "training", "method", "objective")
"""The properties of a case besides its settings."""


@dataclass(frozen=True)
class CaseResult:
    """The cells of one case, one per seed, and the case's name in tables and figures."""

    id: str
    label: str
    cells: tuple[Mapping[str, Any], ...]

    @property
    def problem(self) -> str:
        return str(self.cells[0]["problem"])

    @property
    def resolution(self) -> int:
        return int(self.cells[0]["resolution"])

    @property
    def method(self) -> str:
        return str(self.cells[0]["method"])

    @property
    def objective(self) -> str | None:
        """Return the objective of fine-tuning, if there was one."""
        return self.cells[0].get("objective")

    @property
    def training(self) -> int:
        """Return the number of training fields."""
        return int(self.cells[0]["training"])

    @property
    def place(self) -> str:
        """Return problem and resolution, within which cases are compared."""
        return f"{self.problem}-{self.resolution}"

    @property
    def place_title(self) -> str:
        """Return problem and resolution as a heading."""
        return place_title(self.place)

    @property
    def title(self) -> str:
        """Return the method's name, with the objective it was fine-tuned on."""
        name = method_title(self.method)
        return f"{name} + {self.objective}" if self.objective else name

    @property
    def predictor(self) -> str | None:
        """Return the predictor's name if it is another one than the method's own."""
        given = self.cells[0].get("settings", {}).get("predictor")
        own = METHODS[self.method].defaults.get("predictor") if self.method in METHODS else None
        return given if given != own else None

    @property
    def family(self) -> str:
        """Return the title, with the predictor if it is another one than the method's own.

        A case such as "Two-scale + encoder" may differ from others of its family in settings.
        """
        return f"{self.title} + {self.predictor}" if self.predictor else self.title

    @property
    def has_all_data(self) -> bool:
        """Say whether the case was trained on all training fields there are."""
        return "training=" not in self.id

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Return all settings, defaults included."""
        given = self.cells[0].get("settings", {})
        return resolve(self.method, given) if self.method in METHODS else dict(given)

    @property
    def design(self) -> set[str]:
        """Return the names of the given settings, except those of the training schedule."""
        return set(self.cells[0].get("settings", {})) - SCHEDULE

    def values(self, name: str) -> dict[int, float]:
        """Return a quantity of each seed that has it."""
        return dict(sorted(values_by_seed(self.cells, name).items()))

    def spread(self, name: str) -> Spread | None:
        """Return mean, deviation and number of seeds of a quantity; None if no seed has it."""
        values = self.values(name).values()
        return spread(values) if values else None

    def is_shared_time(self, name: str) -> bool:
        """Say whether a quantity is a time that was only measured shared."""
        return is_shared_time(self.cells, name)

    def mean(self, name: str) -> float | None:
        """Return the mean of a quantity over seeds."""
        found = self.spread(name)
        return None if found is None else found.mean

    def text(self, name: str, *, spread: bool = True) -> str:
        """Return a quantity as text: its mean, with its deviation unless `spread` is false."""
        found = self.spread(name)
        if found is None:
            return ABSENT
        deviation = found.deviation if spread else None
        text = with_spread(found.mean, deviation, display(name).kind)
        return text + (" †" if self.is_shared_time(name) else "")


def property_of(case: CaseResult, name: str) -> Any:
    """Return a case's problem, resolution, training, method, objective, or one of its settings.

    `objective` is that of fine-tuning; the setting of the same name is `settings.objective`.
    """
    return getattr(case, name) if name in OWN else case.settings.get(name.split(".")[-1])


@dataclass(frozen=True)
class StudyResult:
    """A study's record: its cases in the order they were asked for, and fields of one sample."""

    name: str
    record: Path
    cases: tuple[CaseResult, ...]
    scale: str = "paper"
    command: str = ""
    environments: tuple[Mapping[str, Any], ...] = ()
    failed: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def places(self) -> dict[str, list[CaseResult]]:
        """Return the cases by problem and resolution."""
        found: dict[str, list[CaseResult]] = {}
        for case in self.cases:
            found.setdefault(case.place, []).append(case)
        return found

    @property
    def cells(self) -> list[Mapping[str, Any]]:
        """Return the records of all finished cells."""
        return [cell for case in self.cases for cell in case.cells]

    def case(self, name: str) -> CaseResult | None:
        """Return the case of that id, if it was measured."""
        return next((case for case in self.cases if case.id == name), None)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return the origin of the numbers: record, runs, devices, commits, command."""
        commits, devices = (
            ", ".join(sorted({self.where_run(k)[part] for k in range(len(self.environments))}))
            for part in (0, 1)
        )
        runs = f"{len(self.cells)}, of {len(self.cases)} cases"
        found = {"Record": self.record.name, "Runs": runs, "Device": devices, "Commit": commits}
        return [(k, words) for k, words in (found | {"Command": self.command}).items() if words]

    def where_run(self, environment: object) -> tuple[str, str]:
        """Return the commit and the device of an environment, by its number in the record."""
        if not isinstance(environment, int) or not 0 <= environment < len(self.environments):
            return ABSENT, ABSENT
        found = self.environments[environment]
        device = found.get("device_name") or found.get("device")
        return str(found.get("commit") or ABSENT), str(device or ABSENT)

    def select(
        self,
        patterns: Iterable[str] | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> StudyResult:
        """Return the study with the cases that match any pattern and all properties.

        Patterns are case ids with `*`, with or without problem and resolution; properties are
        values or lists of them.
        """
        named = None if patterns is None else list(patterns)
        return self.where(
            lambda case: (
                (named is None or any(_matches(case, pattern) for pattern in named))
                and all(
                    property_of(case, name) in (value if isinstance(value, list) else [value])
                    for name, value in (properties or {}).items()
                )
            )
        )

    def where(self, wanted: Callable[[CaseResult], bool]) -> StudyResult:
        """Return the study with the cases for which `wanted` is true."""
        return replace(self, cases=tuple(case for case in self.cases if wanted(case)))


def _matches(case: CaseResult, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (case.id, case.id.partition(" ")[2]))


def read_study(path: Path, definition: Study | None = None) -> StudyResult:
    """Return the study a record file holds, with the fields beside it if there are any.

    A definition names cases and gives their order.
    """
    content = read_record(path)
    rows = {row.case.id: row.label for row in definition.rows()} if definition else {}
    cells: dict[str, list[Mapping[str, Any]]] = {name: [] for name in rows}
    for cell in content["cells"]:
        cells.setdefault(cell["case"], []).append(cell)
    cases = [
        CaseResult(name, "", tuple(sorted(found, key=lambda cell: cell["seed"])))
        for name, found in cells.items()
        if found
    ]
    return StudyResult(
        name=content["study"],
        record=path,
        cases=tuple(_labelled(cases, rows)),
        scale=content.get("scale", "paper"),
        command=content.get("command", ""),
        environments=tuple(content["environments"]),
        failed=tuple(content.get("failed", ())),
        fields=read_fields(path.with_suffix(".npz")),
    )


def _labelled(cases: list[CaseResult], labels: Mapping[str, str | None]) -> list[CaseResult]:
    """Return the cases with readable names: the given ones, or ones made from the settings."""
    unnamed = [case for case in cases if not labels.get(case.id)]
    return [replace(case, label=labels.get(case.id) or _label(case, unnamed)) for case in cases]


def _label(case: CaseResult, cases: list[CaseResult]) -> str:
    """Return the method's name and the settings that distinguish the case within that method."""
    words = [case.family]
    peers = [peer for peer in cases if (peer.place, peer.method) == (case.place, case.method)]
    for name in sorted({name for peer in peers for name in peer.design} - {"predictor"}):
        if len({setting_text(peer.settings.get(name)) for peer in peers}) > 1:
            words.append(f"{name.replace('_', ' ')} {setting_text(case.settings.get(name))}")
    if len({peer.training for peer in peers}) > 1:
        words.append(f"{case.training:,} fields")
    if len({peer.family for peer in cases}) == 1 and len(words) > 1:
        del words[0]  # all cases have the same method
    return ", ".join(words)


def place_title(place: str) -> str:
    """Return problem and resolution as a heading.

    >>> place_title("poisson-128")
    'Poisson 128²'
    """
    problem, _, resolution = place.rpartition("-")
    return f"{problem.capitalize()} {resolution}²"


@dataclass(frozen=True)
class Studies:
    """Results in the order of the studies, definitions of those that are known, comparisons."""

    folder: Path
    results: tuple[StudyResult, ...]
    definitions: Mapping[str, Study]
    compared: tuple[ComparedValue, ...]

    def result(self, name: str) -> StudyResult | None:
        """Return the result of that study, if there is one."""
        return next((study for study in self.results if study.name == name), None)

    def title(self, study: StudyResult) -> str:
        """Return the title of a study, or its name if its definition is not known."""
        definition = self.definitions.get(study.name)
        return definition.title if definition else study.name

    def question(self, study: StudyResult) -> str:
        """Return what a study asks."""
        definition = self.definitions.get(study.name)
        return definition.question.strip() if definition else ""

    @property
    def differing(self) -> list[ComparedValue]:
        """Return the values that differ from the paper's, unexplained ones first."""
        off = [row for row in self.compared if row.verdict == "off"]
        return sorted(off, key=lambda row: row.explanation is not None)


def read_studies(folder: Path) -> Studies:
    """Return the studies in a study folder or in a folder of records, in their usual order."""
    order = {name: position for position, name in enumerate(STUDIES)}
    paths = sorted(record_files(folder), key=lambda path: order.get(path.stem, len(order)))
    records = {path: read_record(path) for path in paths}
    if not records:
        raise TwoscaleError(
            f"{folder} holds no records: run a study into it, or give the folder of its records"
        )
    found = {path: recorded_study(record) for path, record in records.items()}
    results = [read_study(path, definition) for path, definition in found.items()]
    definitions = {records[path]["study"]: one for path, one in found.items() if one is not None}
    measured = [record for record in records.values() if record["scale"] == "paper"]
    known = {record["study"] for record in measured}
    rows = [row for row in compare(measured) if row.study in known] if measured else []
    return Studies(folder, tuple(results), definitions, tuple(rows))


def cases_by_place(
    results: Iterable[StudyResult], wanted: Callable[[CaseResult], bool]
) -> dict[str, list[CaseResult]]:
    """Return the wanted cases with all training data, by problem and grid.

    Of a case in several studies, the one with most seeds counts.
    """
    places: dict[str, dict[str, CaseResult]] = {}
    for study in results:
        for case in study.cases:
            if case.has_all_data and wanted(case):
                known = places.setdefault(case.place, {})
                if case.id not in known or len(case.cells) > len(known[case.id].cells):
                    known[case.id] = case
    return {place: list(cases.values()) for place, cases in places.items()}
