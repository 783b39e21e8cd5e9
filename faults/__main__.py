"""`python -m faults [KIND ...]`: run the trials, print the table, say how to repeat failures."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from faults.children import warm_up
from faults.registry import KINDS
from faults.runner import Result, pick, run_tasks, select


def main() -> int:
    """Run what was asked for; return 1 if any trial failed."""
    asked = _arguments()
    warm_up()
    tasks = [
        task
        for kind in asked.kinds or KINDS
        for task in (
            [pick(kind, asked.seed, asked.only)]
            if asked.only is not None
            else select(kind, asked.seed, scale=asked.scale, dose=asked.dose, quick=asked.quick)
        )
    ]
    results = []
    for result in run_tasks(tasks, seed=asked.seed, workers=asked.workers):
        results.append(result)
        if result.wrong:
            print(_failure(result, asked.seed), flush=True)
    print(_table(results))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(_record(results, asked.seed), indent=2) + "\n")
    return int(any(result.wrong for result in results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the trials to run")
    parser.add_argument("--dose", type=int, help="trials of each kind at most")
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("--only", type=int, help="the number of a single trial")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="a file for the counts")
    asked = parser.parse_args()
    unknown = sorted(set(asked.kinds) - set(KINDS))
    if unknown:
        parser.error(f"no kind is called {unknown[0]}: known are {', '.join(KINDS)}")
    return asked


def _failure(result: Result, seed: int) -> str:
    """Return one line: what was tried, what went wrong, and how to repeat it."""
    task = result.task
    line = (
        f"FAILED {task.kind} {task.number} ({task.trial.words}): {result.wrong} "
        f"| last command: twoscale {result.command[:300]} "
        f"| repeat: python -m faults {task.kind} --seed {seed} --only {task.number}"
    )
    return ascii(" ".join(line.split()))[1:-1]


def _table(results: list[Result]) -> str:
    lines = [f"{'kind':12} {'tried':>7} {'failed':>7} {'seconds':>8}"]
    for name in [*KINDS, "all"]:
        some = [one for one in results if name in ("all", one.task.kind)]
        if some:
            tried, failed, seconds = _counts(some)
            lines.append(f"{name:12} {tried:7} {failed:7} {seconds:8.1f}")
    skipped = sorted({one.skipped for one in results if one.skipped})
    return "\n".join(lines + [f"not tried: {reason}" for reason in skipped])


def _counts(results: list[Result]) -> tuple[int, int, float]:
    """Return how many were tried and failed, and their time on all cores."""
    tried = [one for one in results if not one.skipped]
    return len(tried), sum(one.wrong is not None for one in tried), sum(o.seconds for o in results)


def _record(results: list[Result], seed: int) -> dict[str, Any]:
    import torch

    from twoscale.surrogate.artifact import environment

    kinds = []
    for name in KINDS:
        some = [one for one in results if one.task.kind == name]
        if some:
            tried, failed, _ = _counts(some)
            kinds.append({"name": name, "tried": tried, "failed": failed})
    tried, failed, _ = _counts(results)
    return {
        "seed": seed,
        "trials": tried,
        "failed": failed,
        "kinds": kinds,
        "environment": environment(torch.device("cpu")),
    }


if __name__ == "__main__":
    sys.exit(main())
