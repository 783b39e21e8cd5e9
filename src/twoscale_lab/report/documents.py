"""Generate parts of the documentation from records and code: tables, sentences, pages, pictures.

Run as `python -m twoscale_lab.report.documents` in the repository's root, or by `make documents`.
What is generated stands in `templates`: a whole page at its path, such as `docs/results.md`, and
the text between the marks `<!-- NAME: start -->` and `<!-- NAME: end -->` of a page in `NAME.md`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any

import typer
from jinja2 import Environment, PackageLoader, StrictUndefined
from typer.cli import get_docs_for_click

from twoscale.cli.app import app
from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.methods.recipes import METHODS
from twoscale.methods.recipes import settings as settings_with
from twoscale.methods.settings import setting_text
from twoscale.predictors import CodePredictor, get_predictor, predictors
from twoscale.report.page import PageTable
from twoscale.report.picture import save_figure
from twoscale.runtime.stages import FINETUNE_PREPARE, FINETUNING, INFERENCE
from twoscale.settings import Setting, defaults_of, settings_of
from twoscale_lab.bench.measure import Comparison
from twoscale_lab.report.charts import KINDS, error_time_chart
from twoscale_lab.report.results import CaseResult, Studies, StudyResult, read_studies
from twoscale_lab.report.study_page import all_tables
from twoscale_lab.report.summary import sentences
from twoscale_lab.report.tables import (
    SHARED_NOTE,
    UNSHARED_NOTE,
    agreement_table,
    case_table,
    compared_table,
    markdown_table,
    paper_values,
    published_table,
    standings_table,
)
from twoscale_lab.study.leaderboard.board import STUDY, Standing, leaderboard, standings_of, summary
from twoscale_lab.study.paper.comparison import by_study
from twoscale_lab.study.paper.published import paper_tables

_OF_FINETUNING = (FINETUNE_PREPARE.name, FINETUNING.name, INFERENCE.name)


def reproduced(studies: Studies) -> list[dict[str, Any]]:
    """Return a row for each of the paper's studies, in the order of the paper's tables.

    It has the numbers of the tables, the study with its title, the minutes of GPU time, and how
    many of the paper's values agree.
    """
    shown = [study for study in studies.results if table_numbers(study.name)]
    counts = by_study(studies.compared)
    return [
        {
            "tables": _ranges(table_numbers(study.name)),
            "title": studies.title(study),
            "study": study,
            "minutes": gpu_seconds(study.cells) / 60,
            "counts": counts[study.name],
        }
        for study in sorted(shown, key=lambda study: table_numbers(study.name)[0])
    ]


def table_numbers(study: str) -> list[int]:
    """Return the numbers of the paper's tables that a study repeats, in order."""
    tables = paper_tables().values()
    return sorted(
        table.number for table in tables if table.study == study and table.number is not None
    )


def gpu_seconds(cells: Iterable[Mapping[str, Any]]) -> float:
    """Return the seconds that the cells of one study took.

    The time of a fine-tuned cell includes that of the fit it started from. If that fit is a cell of
    the same study, it is counted once.
    """
    cells = list(cells)
    fits = {_fit(cell) for cell in cells if not cell["objective"]}
    total = 0.0
    for cell in cells:
        timings = cell["metrics"]["timings"]
        if cell["objective"] and _fit(cell) in fits:
            total += sum(timings.get(stage, 0.0) for stage in _OF_FINETUNING)
        else:
            total += timings["total"]
    return total


def _fit(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies the fit of a cell, before any fine-tuning."""
    settings = tuple(sorted((name, str(value)) for name, value in cell["settings"].items()))
    keys = ("problem", "resolution", "training", "method", "seed")
    return (*(cell[key] for key in keys), settings)


def _ranges(numbers: list[int]) -> str:
    """Return numbers as text, three or more in a row as a range: 1, 9, 30 to 35."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(str(number) for number in run)
        for run in runs
    ]
    return ", ".join(texts)


_MARK = re.compile(r"<!-- (\w+): start -->\n.*?<!-- \1: end -->", re.DOTALL)
_DEVICES = {"gpu": "One NVIDIA H200", "cpu": "Two CPU cores"}
_HEADLINE = (
    "mre",
    "oracle_mre",
    "ssim",
    "value_trace_error",
    "normal_derivative_trace_error",
    "residual_rms",
    "total",
)
_EQUAL_CODES = "Representations of equal code size"  # a table of the study beyond
_EXCEPTION = "For FNO on Darcy-256 the paper uses `batch_size=4` and `evaluation_batch=8`."
_SPREAD = ("mre", "oracle_mre")  # quantities that have their deviation in narrow tables

WHOLE_PAGES = (
    "docs/results.md",
    "docs/reference/cli.md",
    "docs/reference/figures.md",
    "docs/reference/settings.md",
)
"""Pages that are generated as a whole, by templates of the same path."""

README_CASES = (
    ("poisson-128", "Two-scale"),
    ("poisson-128", "FNO"),
    ("poisson-128", "Two-scale + affine, long code"),
    ("darcy-256", "FNO"),
    ("darcy-256", "Two-scale + encoder, symmetries"),
)
"""Place and label of the cases in the README's table."""


class Documents:
    """The generated parts of a repository's documentation."""

    def __init__(self, root: Path) -> None:
        self.root, self.results = root, root / "results"
        loader = PackageLoader("twoscale_lab.report")
        self._templates = Environment(
            loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters |= {
            "f": format,
            "percent": lambda value, spec: format(100 * value, spec),
            "table": markdown_table,
            "setting": _default,
            "summary": summary,
            "standings": standings_table,
            "published": published_table,
            "reproduced": reproduced,
            "sentences": sentences,
            "agreement": agreement_table,
            "compared": compared_table,
            "tables_in": all_tables,
            "method_settings": method_settings,
            "predictor_settings": predictor_settings,
        }

    def pages(self) -> dict[Path, str]:
        """Return the up-to-date text of every page with a generated part."""
        found = {self.root / name: self.render(name) for name in WHOLE_PAGES}
        for page in [self.root / "README.md", *sorted((self.root / "docs").rglob("*.md"))]:
            text = page.read_text(encoding="utf-8")
            if page not in found and _MARK.search(text):
                found[page] = _MARK.sub(lambda mark: self._marked(mark[1]), text)
        return found

    def _marked(self, name: str) -> str:
        text = self.render(f"{name}.md").rstrip("\n")
        return f"<!-- {name}: start -->\n{text}\n<!-- {name}: end -->"

    def render(self, template: str) -> str:
        """Return the text of a template, which reads records and attributes of this object."""
        source = self._templates.get_template(template)
        text = source.render(
            documents=self,
            record=lambda name: read_json(self.results / f"{name}.json"),
            notes=[UNSHARED_NOTE, SHARED_NOTE],
            exception=_EXCEPTION,
            methods=METHODS,
            predictors=predictors(),
            kinds=KINDS,
            sources=leaderboard().sources,
        )
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"

    @cached_property
    def studies(self) -> Studies:
        return read_studies(self.results / "study")

    @property
    def headline(self) -> PageTable:
        """Return the main methods on the paper's main problems, with the paper's errors."""
        shown = [study for study in self.studies.results if study.name in ("headline", "darcy")]
        cases = [case for study in shown for case in study.cases]
        names = {study.name for study in shown}
        paper = paper_values(row for row in self.studies.compared if row.study in names)
        errors = {key: row for key, row in paper.items() if key[1] == "mre"}
        rows = {case.id: case.label for case in cases}
        return case_table("", rows, cases, _HEADLINE, errors, spread=_SPREAD)

    @property
    def equal_codes(self) -> PageTable:
        """Return the representations of equal code size that were measured."""
        beyond = self._study("beyond")
        definition = self.studies.definitions["beyond"]
        (asked,) = [one for one in definition.tables if one.title == _EQUAL_CODES]
        cases = beyond.select(asked.rows).cases
        rows = {case.id: case.label for case in cases}
        return case_table("", rows, cases, asked.columns, {}, spread=_SPREAD)

    @property
    def readme_cases(self) -> list[CaseResult]:
        cases = {(case.place, case.label): case for case in self._study("beyond").cases}
        if missing := [
            f"{name} on {place}" for place, name in README_CASES if (place, name) not in cases
        ]:
            raise TwoscaleError(f"the study beyond has no {', '.join(missing)}: name others")
        return [cases[key] for key in README_CASES]

    def _study(self, name: str) -> StudyResult:
        found = self.studies.result(name)
        if found is None:
            raise TwoscaleError(f"{self.studies.folder} has no record of the study {name}")
        return found

    @property
    def standings(self) -> list[Standing]:
        found = self.studies.result(STUDY)
        return standings_of(found.cells if found else [])

    @property
    def benchmarks(self) -> dict[str, list[Comparison]]:
        """Return all recorded benchmarks by device."""
        found: dict[str, list[Comparison]] = {}
        for folder, title in _DEVICES.items():
            for path in sorted((self.results / "bench" / folder).glob("*.json")):
                results = read_json(path)["results"]
                found.setdefault(title, []).extend(map(Comparison.from_dict, results))
        return found

    @property
    def commands(self) -> str:
        """Return the help of all commands as Markdown, with examples in blocks."""
        commands = typer.main.get_command(app)
        context = typer.Context(commands)
        text = get_docs_for_click(obj=commands, ctx=context, indent=1, name="twoscale")
        text = re.sub(r"^\* `--help`.*\n", "", text.replace("\b", ""), flags=re.MULTILINE)
        examples = r"Examples:\n((?:  .*\n?)+)"
        return re.sub(examples, lambda match: f"```bash\n{dedent(match[1])}```\n", text)


def method_settings(name: str) -> dict[str, Setting]:
    """Return the settings of a method that are not those of its predictor, or of its base."""
    own, known = METHODS[name].settings, settings_with(name)
    base = METHODS[own["base"].default].settings if "base" in own else {}
    others = {*base, *settings_of(get_predictor(known["predictor"].default))}
    if not base:
        others.discard("objective")
    return {key: one for key, one in known.items() if key not in others}


def predictor_settings(kind: type[CodePredictor]) -> dict[str, Setting]:
    """Return a predictor's settings; an objective that is the usual one is left to the method."""
    own = dict(settings_of(kind))
    if "objective" in own and own["objective"].default == defaults_of(CodePredictor)["objective"]:
        own["objective"] = replace(own["objective"], default="the method's")
    return own


def _default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else setting_text(value)


def write_images(root: Path, demo: Path) -> None:
    """Write the README's pictures: the chart from the records, the prediction from a demo."""
    images, places = (
        root / "docs" / "images",
        list(dict.fromkeys(place for place, _ in README_CASES)),
    )
    chart = error_time_chart(read_studies(root / "results" / "study").results, places=places)
    save_figure(chart.figure, images / "error_time.png")
    shutil.copyfile(demo / "figures" / "median.png", images / "hero.png")


if __name__ == "__main__":
    for page, text in Documents(Path()).pages().items():
        page.write_text(text, encoding="utf-8")
    write_images(Path(), Path("demo"))
