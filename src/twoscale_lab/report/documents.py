"""Generate parts of the documentation: tables of results and speed, settings, figures.

Run as `python -m twoscale_lab.report.documents` in the repository's root, or by `make documents`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.methods.recipes import METHODS
from twoscale.methods.recipes import settings as settings_with
from twoscale.methods.roles import EXCEPTION, PLAIN_PATCHES, PROPOSED
from twoscale.methods.settings import setting_text
from twoscale.predictors import CodePredictor, get_predictor, predictors
from twoscale.settings import Setting, defaults_of, settings_of
from twoscale_lab.bench.measure import Comparison
from twoscale_lab.report.charts import KINDS
from twoscale_lab.report.cluster_documents import cluster_text
from twoscale_lab.report.readme import readme_parts
from twoscale_lab.report.reproduce import NOTE, reproduce_table
from twoscale_lab.report.serve_documents import inversion_text, load_sentences
from twoscale_lab.report.study_documents import (
    beyond_table,
    leaderboard_text,
    markdown,
    results_page,
)
from twoscale_lab.report.thinned_documents import thinned_text
from twoscale_lab.report.trust_documents import certificate_table, polish_table, trust_tables

_DEVICES = {"gpu": "One NVIDIA H200", "cpu": "Two CPU cores"}


def bench_table(results: Path) -> str:
    """Return the Markdown tables of all recorded benchmarks, a device each."""
    lines = []
    for folder, title in _DEVICES.items():
        paths = sorted((results / "bench" / folder).glob("*.json"))
        found = [Comparison.from_dict(one) for path in paths for one in read_json(path)["results"]]
        header = ["benchmark", "peer", "ours", "peer's", "ratio", "results"]
        lines += [f"**{title}**", "", *markdown(header, map(_bench_row, found)), ""]
    return "\n".join(lines).rstrip()


def _bench_row(found: Comparison) -> list[str]:
    agreement = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in found.agreement.items()]
    return [
        found.name,
        found.peer,
        f"{median(found.seconds):.3g} {found.label}",
        f"{median(found.peer_seconds):.3g}",
        f"{found.ratio:.3g}",
        ", ".join(agreement),
    ]


def refreshed(page: Path, texts: Mapping[str, str]) -> str:
    """Return a page with the text between each pair of marks replaced."""
    whole = page.read_text(encoding="utf-8")
    for mark, text in texts.items():
        start, end = f"<!-- {mark}: start -->", f"<!-- {mark}: end -->"
        if start not in whole or end not in whole:
            raise TwoscaleError(f"{page} lacks the marks {start} and {end}")
        before, rest = whole.split(start)
        after = rest.split(end)[1]
        whole = f"{before}{start}\n{text}\n{end}{after}"
    return whole


def generated(root: Path) -> dict[Path, str]:
    """Return the up-to-date text of every page with a generated part."""
    results, docs = root / "results", root / "docs"
    return {
        **_refreshed_pages(root, results),
        docs / "reference/settings.md": settings_page(),
        docs / "reference/figures.md": figures_page(),
        docs / "results.md": results_page(results / "study"),
    }


def _refreshed_pages(root: Path, results: Path) -> dict[Path, str]:
    """Return the pages of which only the parts between marks are generated."""
    studies = results / "study"
    parts = {
        "README.md": readme_parts(studies),
        "docs/performance.md": {"bench": bench_table(results)},
        "docs/reference/files.md": {
            "faults": faults_table(results),
            "killed": killed_sentences(results),
        },
        "docs/concepts/representations.md": {
            "equal": beyond_table(studies, "Representations of equal code size")
        },
        "docs/concepts/certificate.md": {
            "certificate": certificate_table(results),
            "polish": polish_table(results),
        },
        "docs/benchmarks.md": {
            "leaderboard": leaderboard_text(studies),
            "thinned": thinned_text(results),
        },
        "docs/trust.md": {"trust": trust_tables(results)},
        "docs/clusters.md": {"cluster": cluster_text(results)},
        "docs/howto/serve.md": {"load": load_sentences(results)},
        "docs/howto/invert.md": {"inversion": inversion_text(results)},
        "docs/howto/reproduce.md": {"reproduce": f"{reproduce_table(studies)}\n\n{NOTE}"},
    }
    return {root / page: refreshed(root / page, texts) for page, texts in parts.items()}


def faults_table(results: Path) -> str:
    """Return the table of attacks on the command line: tried and failed, by kind."""
    record = read_json(results / "faults.json", require={"kinds": list, "trials": int})
    rows = [[kind["name"], str(kind["tried"]), str(kind["failed"])] for kind in record["kinds"]]
    rows.append(["**all**", f"**{record['trials']}**", f"**{record['failed']}**"])
    lines = markdown(["kind", "tried", "failed"], rows)
    commit = record["environment"]["commit"]
    return "\n".join([*lines, "", f"Record: `results/faults.json`, commit {commit}."])


def killed_sentences(results: Path) -> str:
    """Return two sentences on the time that kills cost a long training."""
    record = read_json(results / "killed-training.json", require={"lost_seconds": list})
    lost, share = max(record["lost_seconds"]), record["largest_share_lost"]
    same = "the same weights" if record["same_weights"] else "other weights"
    return (
        f"Measured: a training of {record['training_seconds']:.0f} s was killed at "
        f"{record['kills']} random instants and ended with {same} as one left alone. "
        f"A kill lost at most {lost:.1f} s, {100 * share:.1f} % of the training.\n\n"
        "Record: `results/killed-training.json`, made by `scripts/killed_training.py`."
    )


def figures_page() -> str:
    """Return `docs/reference/figures.md`: the kinds of figures of studies, and their options."""
    lines = [
        "# Figures of studies",
        "",
        "A study's YAML file lists its figures: `{kind: curves, x: training, quantities: [mre]}`.",
        "Every kind also takes `title`, `caption`, `rows` (patterns of case names:",
        f"`[{PLAIN_PATCHES}*, {PROPOSED}]`) and `where` (properties:",
        f"`{{method: [{PLAIN_PATCHES}, {PROPOSED}]}}`).",
        "`base` says which case the others are compared with, by the properties that differ:",
        "`{objective: null}` is the case before fine-tuning, `{solver: full}` one with a setting.",
        "This page is generated from the code by `make documents`.",
        "",
    ]
    rows = []
    for name, kind in KINDS.items():
        options = ", ".join(f"`{option}`" for option in sorted(kind.options)) or "none"
        rows.append([f"`{name}`", options, kind.caption])
    return "\n".join([*lines, *markdown(["kind", "options", "what it shows"], rows)]) + "\n"


def settings_page() -> str:
    """Return `docs/reference/settings.md`: settings of methods and predictors, with defaults."""
    lines = [
        "# Settings",
        "",
        "Pass settings as `--set key=value` or as arguments of `Surrogate`. The settings of a",
        "method choose its representations. The settings of its predictor come in addition.",
        f"Defaults are the paper's protocol. {EXCEPTION}",
        "This page is generated from the code by `make documents`.",
    ]
    for name, method in METHODS.items():
        lines += _table(f"`{name}`: {method.title}", _of_method(name))
        if method.corrected:
            lines += ["", "The settings of the `base` and of its predictor come in addition."]
    lines += _predictors()
    for name, kind in predictors().items():
        lines += _table(f"With `predictor={name}`", _of_predictor(kind))
    return "\n".join(lines) + "\n"


def _of_method(name: str) -> dict[str, Setting]:
    """Return the settings of a method that are not those of its predictor, or of its base."""
    own, known = METHODS[name].settings, settings_with(name)
    base = METHODS[own["base"].default].settings if "base" in own else {}
    others = {*base, *settings_of(get_predictor(known["predictor"].default))}
    if not base:
        others.discard("objective")
    return {key: one for key, one in known.items() if key not in others}


def _of_predictor(kind: type[CodePredictor]) -> dict[str, Setting]:
    """Return a predictor's settings; an objective that is the usual one is left to the method."""
    own = dict(settings_of(kind))
    if "objective" in own and own["objective"].default == defaults_of(CodePredictor)["objective"]:
        own["objective"] = replace(own["objective"], default="the method's")
    return own


def _predictors() -> list[str]:
    rows = [
        [
            f"`{name}`",
            kind.title,
            "closed form" if kind.closed_form else "trained",
            "fields" if kind.reads_fields else "codes",
        ]
        for name, kind in predictors().items()
    ]
    header = ["`predictor`", "what it is", "how it is fitted", "reads"]
    return ["", "## Predictors", "", *markdown(header, rows)]


def _table(title: str, settings: Mapping[str, Setting]) -> list[str]:
    rows = [[f"`{key}`", _default(one.default), one.meaning] for key, one in settings.items()]
    return ["", f"## {title}", "", *markdown(["setting", "default", "meaning"], rows)]


def _default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else setting_text(value)


if __name__ == "__main__":
    for page, text in generated(Path()).items():
        page.write_text(text, encoding="utf-8")
