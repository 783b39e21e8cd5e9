"""What is generated in the documentation: the README's table of results, the list of settings.

Run as `python -m twoscale.report.documents` in the repository's root, or by `make documents`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.report import tables
from twoscale.report.records import Spread, Summary, summarise
from twoscale.surrogate.methods import METHODS
from twoscale.surrogate.settings import SETTINGS

START, END = "<!-- results: start -->", "<!-- results: end -->"
CASES = {
    "poisson-128": "Poisson, 128²",
    "poisson-64": "Poisson, 64²",
    "darcy-256": "Darcy, 256²",
}
_HEADER = (
    "| | MRE % | paper | oracle % | SSIM | seam value | seam slope | residual | time s | seeds |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def results_table(results: Path) -> str:
    """Return the Markdown table of all recorded cases."""
    paper = read_json(results / "paper.json")
    lines = list(_HEADER)
    for case, title in CASES.items():
        lines.append(f"| **{title}** |" + " |" * 9)
        summary = summarise(results / case)
        lines += [_row(m, summary, paper[case].get(m, {})) for m in METHODS if m in summary]
    return "\n".join(lines)


def _row(method: str, summary: Summary, paper: dict[str, Any]) -> str:
    ours = summary[method]
    cells = [
        METHODS[method].title,
        _percent(ours["mre"]),
        _percent(_published(paper.get("mre"))),
        _percent(ours.get("oracle_mre")),
        _mean(ours.get("ssim"), "plain"),
        _mean(ours.get("value_trace_error"), "power"),
        _mean(ours.get("normal_derivative_trace_error"), "power"),
        _mean(ours.get("residual_rms"), "short"),
        f"{ours['total'].mean:.0f}",
        str(ours["mre"].seeds),
    ]
    return "| " + " | ".join(cells) + " |"


def _published(value: list[float] | None) -> Spread | None:
    return None if value is None else Spread(mean=value[0], deviation=value[1], seeds=0)


def _percent(spread: Spread | None) -> str:
    if spread is None:
        return tables.ABSENT
    text = tables.number(spread.mean, "percent")
    return text if spread.deviation is None else f"{text} ± {100 * spread.deviation:.3f}"


def _mean(spread: Spread | None, kind: str) -> str:
    return tables.number(spread.mean if spread else None, kind)


def refreshed(readme: Path, results: Path) -> str:
    """Return README.md's text with its generated part made anew."""
    text = readme.read_text(encoding="utf-8")
    if START not in text or END not in text:
        raise TwoscaleError(f"{readme} lacks the marks {START} and {END}")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{results_table(results)}\n{END}{after}"


def settings_page() -> str:
    """Return `docs/settings.md`: what can be set, for which method, and the defaults."""
    lines = [
        "# Settings",
        "",
        "Given as `--set key=value` or as arguments of `Surrogate`;",
        "defaults are the paper's protocol (for FNO on Darcy-256 the paper uses `batch_size=4`,",
        "`evaluation_batch=8`).",
        "This page is generated from the code by `make documents`.",
    ]
    for name, method in METHODS.items():
        lines += ["", f"## `{name}`: {method.title}", "", "| setting | default | meaning |"]
        lines += ["|---|---|---|"]
        for key, default in method.defaults.items():
            lines.append(f"| `{key}` | {_default(default)} | {SETTINGS[key].meaning} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(str(part) for part in value)
    return "none" if value is None else str(value)


if __name__ == "__main__":
    page = Path("README.md")
    page.write_text(refreshed(page, Path("results")), encoding="utf-8")
    Path("docs/settings.md").write_text(settings_page(), encoding="utf-8")
