"""Tables of recorded coverages, flags, certificates and polished fields, for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twoscale.files import read_json
from twoscale_lab.report.study_documents import markdown

RECORD = "trust.json"
_HEADER = ("problem", "equation", "method", "error %", "mean radius %", "narrower by %")
_COVERED = ("covered %", "band %")


def trust_tables(results: Path) -> str:
    """Return how often radii held, how wide they were, and which inputs were flagged."""
    record = read_json(results / RECORD, require={"coverage": list, "flags": dict, "size": dict})
    size, environment = record["size"], record["environment"]
    spread = 100 * record["standard_deviation_of_coverage"]
    flags, predictions = (
        [1e6 * row["seconds"][name] for row in record["coverage"]]
        for name in ("flags", "prediction")
    )
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
            f"A flag takes {min(flags):.2g} to {max(flags):.2g} µs per field on "
            f"{environment['device_name']}, a prediction {min(predictions):.2g} to "
            f"{max(predictions):.2g} µs. Record: `results/{RECORD}`, made by "
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


def certificate_table(results: Path) -> str:
    """Return the table of bounds against true errors, by contrast."""
    record = read_json(results / "certificate.json", require={"contrasts": dict, "pairs": int})
    rows = []
    for contrast, found in record["contrasts"].items():
        keys = ("overestimate", "underestimate", "overestimate_by_least_coefficient")
        means = [f"{found[f'mean_{key}']:.3f}" for key in keys]
        name = "1 (Poisson)" if contrast == "1" else contrast
        rows.append([name, str(found["pairs"]), *means])
    header = ["contrast", "pairs", "upper / true", "true / lower", "upper / true, smallest a"]
    lines = markdown(header, rows)
    commit = record["environment"]["commit"]
    return "\n".join(
        [
            f"{record['pairs']} predictions on grids up to {record['largest_grid']}, from noise to "
            "the rounded solution, with errors placed where a is small or large. True errors are "
            f"from a sparse solver in extended precision. Violations: {record['violations']}. "
            "Means over predictions whose relative error is above 10⁻⁹:",
            "",
            *lines,
            "",
            "Record: `results/certificate.json`, made by `scripts/certificate_record.py`, commit "
            f"{commit}.",
        ]
    )


def polish_table(results: Path) -> str:
    """Return the table of the solver's steps from predictions and from zero."""
    record = read_json(results / "polish.json", require={"three_steps": dict, "size": dict})
    size, found, proven = record["size"], record["prediction"], record["certificate"]
    few, full = record["three_steps"], record["to_tolerance"]
    rows = []
    for start in ("prediction", "zero"):
        short, whole = few[start], full[start]
        rows.append(
            [
                start,
                f"{100 * short['mre']:.3g}",
                f"{short['milliseconds']:.3f}",
                f"{whole['mean_steps']:.1f}",
                f"{whole['milliseconds']:.3f}",
            ]
        )
    header = ["start", "error after 3 steps, %", "ms", f"steps to {record['tolerance']:g}", "ms"]
    environment = record["environment"]
    return "\n".join(
        [
            f"{size['fresh']:,} new Darcy fields of {size['side']}² nodes, predicted by an encoder "
            f"with an error of {100 * found['mre']:.3g} %. Times are per field, on "
            f"{environment['device_name']}. Predictions take {found['milliseconds']:.3f} ms and "
            f"certificates {proven['milliseconds']:.3f} ms.",
            "",
            *markdown(header, rows),
            "",
            "Record: `results/polish.json`, made by `scripts/polish_record.py`, commit "
            f"{environment['commit']}.",
        ]
    )
