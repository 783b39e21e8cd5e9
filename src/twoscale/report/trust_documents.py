"""The tables of recorded coverages and flags, for the page on trust."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twoscale.files import read_json
from twoscale.report.study_documents import markdown

RECORD = "trust.json"
_HEADER = ("problem", "equation", "method", "error %", "mean radius %", "narrower by %")
_COVERED = ("covered %", "band %")


def trust_tables(results: Path) -> str:
    """Return how often radii held, how wide they were, and which inputs were flagged."""
    record = read_json(results / RECORD, require={"coverage": list, "flags": dict, "size": dict})
    size, environment = record["size"], record["environment"]
    spread = 100 * record["standard_deviation_of_coverage"]
    costs = [100 * row["seconds"]["ratio"] for row in record["coverage"]]
    return "\n".join(
        [
            f"Measured on {size['fresh']:,} new fields of {size['side']}² nodes, at level "
            f"{record['level']:g}, with {size['calibration']:,} calibration samples. By chance the "
            f"share covered varies by {spread:.1f} % (standard deviation). *narrower* compares the "
            "mean radius with one radius for all fields:",
            "",
            *markdown([*_HEADER, *_COVERED], map(_row, record["coverage"])),
            "",
            "Share of inputs that are flagged:",
            "",
            *markdown(
                ["problem", "inputs", "flagged %"],
                (
                    [problem, kind, f"{100 * share:.1f}"]
                    for problem, shares in record["flags"].items()
                    for kind, share in shares.items()
                ),
            ),
            "",
            f"Flags take {min(costs):.2g} to {max(costs):.2g} % of a prediction's time on "
            f"{environment['device_name']}. Record: `results/{RECORD}`, made by "
            f"`scripts/trust_record.py`, commit {environment['commit']}.",
        ]
    )


def _row(row: Mapping[str, Any]) -> list[str]:
    sizes = (row["mean_error"], row["mean_radius"])
    shares = (row["narrower_by"], row["coverage"], row["band_coverage"])
    return [
        row["problem"],
        "known" if row["equation"] else "unknown",
        row["method"],
        *(f"{100 * value:.3g}" for value in sizes),
        f"{100 * shares[0]:.0f}",
        *(f"{100 * value:.1f}" for value in shares[1:]),
    ]
