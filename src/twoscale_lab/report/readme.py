"""The generated parts of the README: a table, a chart, and the picture of one prediction.

`python -m twoscale_lab.report.readme` in the repository's root writes the pictures into
`docs/images`: the chart from the records, the prediction from the folder of a finished demo.
`make documents` runs it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.report.display import display, number, with_spread
from twoscale.report.picture import save_figure
from twoscale_lab.report.charts.error_time import error_time_chart
from twoscale_lab.report.reproduce import NOTE, reproduce_table
from twoscale_lab.report.results import CaseResult, place_title
from twoscale_lab.report.studies import make_studies, read_studies
from twoscale_lab.report.study_documents import NO_RECORDS, markdown
from twoscale_lab.study.folder import read_record, read_records
from twoscale_lab.study.leaderboard.standings import standings, summary

ROWS = (
    ("poisson-128", "Two-scale"),
    ("poisson-128", "FNO"),
    ("poisson-128", "Two-scale + affine, long code"),
    ("darcy-256", "FNO"),
    ("darcy-256", "Two-scale + encoder, symmetries"),
)
"""Place and label of the cases in the README's table."""

_HEADER = ("problem", "method", "error %", "time to fit, s", "1,000 predictions, s", "seeds")


def readme_parts(folder: Path) -> dict[str, str]:
    """Return the text between each pair of marks in the README, from a folder of records."""
    return {
        "results": results_table(folder),
        "standings": summary(standings(read_records(folder))),
        "reproduce": f"{reproduce_table(folder)}\n\n{NOTE}",
    }


def results_table(folder: Path) -> str:
    """Return a Markdown table with the error and the times of a few cases."""
    record = folder / "beyond.json"
    if not record.is_file():
        return NO_RECORDS
    (study,) = make_studies(folder, {record: read_record(record)}).results
    cases = {(case.place, case.label): case for case in study.cases}
    missing = [f"{label} on {place}" for place, label in ROWS if (place, label) not in cases]
    if missing:
        raise TwoscaleError(f"{record} has no {', '.join(missing)}: name others")
    return "\n".join(markdown(_HEADER, (_row(cases[key]) for key in ROWS)))


def _row(case: CaseResult) -> list[str]:
    error = case.spread("mre")
    assert error is not None
    times = [number(case.mean(name), display(name).kind) for name in ("total", "inference")]
    return [
        place_title(case.place),
        case.label,
        with_spread(error.mean, error.deviation, display("mre").kind),
        *times,
        str(len(case.cells)),
    ]


def write_images(root: Path, demo: Path) -> None:
    """Write the README's pictures: the chart from the records, the prediction from a demo."""
    images, places = root / "docs" / "images", list(dict.fromkeys(place for place, _ in ROWS))
    chart = error_time_chart(read_studies(root / "results" / "study").results, places=places).figure
    save_figure(chart, images / "error_time.png")
    shutil.copyfile(demo / "figures" / "prediction.png", images / "hero.png")


if __name__ == "__main__":
    write_images(Path(), Path("demo"))
