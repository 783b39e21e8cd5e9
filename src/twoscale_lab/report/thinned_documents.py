"""What is recorded of Darcy 3/12 on thinned nodes, for the page of benchmarks."""

from __future__ import annotations

from pathlib import Path

from twoscale.files import read_json
from twoscale_lab.study.statistics import spread

_VALUES = "values"  # the row of media that agree in the field's values, not in signs only


def thinned_text(results: Path) -> str:
    """Return how small an error can be, and the error with a coarse solution beside the medium."""
    floor = read_json(results / "thinned-floor.json", require={"relative_l2": dict})
    rows = [row for name, row in floor["relative_l2"].items() if name != _VALUES]
    floors = [100 * row["floor_of_normal_solutions"] for row in rows]
    proven = 100 * max(row["proven_floor"] for row in rows)
    largest = 100 * max(row["standard_error"] for row in rows)
    assisted = read_json(results / "assisted.json", require={"encoder": list, "size": dict})
    found = [100 * row["mean_relative_l2"] for row in assisted["encoder"]]
    coarse = 100 * assisted["coarse_solution"]["mean_relative_l2"]
    side, samples = floor["nodes_per_side"], assisted["size"]["samples"]
    return "\n\n".join(
        [
            f"**How small can the error be?** The medium between the kept nodes is random. For "
            f"{floor['samples']} media we drew others that are equal at the {side}² kept nodes, "
            f"and solved both. If solutions are normally distributed, the best possible error is "
            f"{min(floors):.2f} to {max(floors):.2f} % (standard error up to {largest:.2f} %). "
            f"This is an estimate; without that assumption it is {proven:.2f} % or more. Record: "
            "`results/thinned-floor.json`, made by `scripts/thinned_floor.py`.",
            f"**With the equation.** Solving the equation on the {side}² kept nodes alone has an "
            f"error of {coarse:.2f} %. An encoder that reads this solution beside the medium, "
            f"fitted on {samples:,} fields, has {spread(found).mean:.3f} % (mean of "
            f"{len(found)} seeds). This number is *corrected by the equation*, not learned from "
            "pairs alone, so it is not in the table. Record: `results/assisted.json`, made by "
            "`scripts/assisted_record.py`.",
        ]
    )
