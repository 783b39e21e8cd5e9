"""Small records of measured runs, kept in the repository and turned into tables.

python -m twoscale.report.records RUN [RUN ...] --out results/NAME.json --command "..."
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from twoscale.files import atomic_output, read_json, write_json
from twoscale.run.folder import SEARCH
from twoscale.study.folder import epochs
from twoscale.study.statistics import Spread, spread


def collect(runs: list[Path], *, command: str) -> dict[str, Any]:
    """Return the record of some run folders: what was run, where, and what came out."""
    return {"command": command, "runs": [_record(run) for run in runs]}


def _record(run: Path) -> dict[str, Any]:
    config = read_json(run / "config.json")
    config["dataset"].pop("path", None)
    history = read_json(run / "history.json")
    search = {"search": read_json(run / SEARCH)} if (run / SEARCH).is_file() else {}
    return {
        "config": config,
        **search,
        "retained": read_json(run / "manifest.json")["retained"],
        "metrics": read_json(run / "metrics.json"),
        "epochs": {stage: epochs(curve) for stage, curve in history.items()},
        "environment": read_json(run / "environment.json"),
    }


Summary = dict[str, dict[str, Spread]]  # method (+ objective) -> metric -> spread


def summarise(folder: Path) -> Summary:
    """Return the metrics of all records in a folder, over the seeds of each method."""
    gathered: dict[str, dict[str, list[float]]] = {}
    for path in sorted(folder.glob("*.json")):
        for run in read_json(path, require={"runs": list})["runs"]:
            metrics = run["metrics"] | {"total": run["metrics"]["timings"]["total"]}
            values = gathered.setdefault(_name(run["config"]), {})
            for name, value in metrics.items():
                if isinstance(value, int | float):
                    values.setdefault(name, []).append(value)
    return {
        method: {name: spread(values) for name, values in metrics.items()}
        for method, metrics in gathered.items()
    }


def _name(config: dict[str, Any]) -> str:
    """Return a run's method, with the objective it was fine-tuned on."""
    tuned = config.get("finetuning")
    return f"{config['method']} + {tuned['objective']}" if tuned else config["method"]


def main() -> None:
    """Collect run folders into one record."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--overwrite", action="store_true")
    given = parser.parse_args()
    with atomic_output(given.out, overwrite=given.overwrite) as prepared:
        write_json(prepared, collect(given.runs, command=given.command))


if __name__ == "__main__":
    main()
