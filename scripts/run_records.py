"""Write a record of run folders: their configurations, what came out, and where they were run.

python scripts/run_records.py RUN ... --out results/auto/NAME.json --command "twoscale fit ..."
"""

import argparse
from pathlib import Path
from typing import Any

from twoscale.files import atomic_output, read_json, write_json
from twoscale.run.folder import CONFIG, SEARCH
from twoscale_lab.study.folder import read_result


def write_run_records(file: Path, runs: list[Path], *, command: str, overwrite: bool) -> None:
    """Write the record of some runs; `command` is what made them."""
    record = {"command": command, "runs": [_describe(run) for run in runs]}
    with atomic_output(file, overwrite=overwrite) as prepared:
        write_json(prepared, record)


def _describe(run: Path) -> dict[str, Any]:
    config = read_json(run / CONFIG)
    for name in ("dataset", "test_dataset"):
        (config.get(name) or {}).pop("path", None)
    search = {"search": read_json(run / SEARCH)} if (run / SEARCH).is_file() else {}
    result = read_result(run)
    outcome = {name: result.content[name] for name in ("retained", "metrics", "epochs")}
    return {"config": config, **search, **outcome, "environment": result.environment}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--overwrite", action="store_true")
    given = parser.parse_args()
    write_run_records(given.out, given.runs, command=given.command, overwrite=given.overwrite)


if __name__ == "__main__":
    main()
