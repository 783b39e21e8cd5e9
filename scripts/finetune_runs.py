"""Paper-scale fine-tuning: base runs, then each objective from each of them, as one record.

python scripts/finetune_runs.py WORK RECORD poisson 128 two-scale --objectives A1 A3 --seeds 0-2

Data and runs go under WORK; RECORD is the JSON to keep, under results/finetuning.
Several seeds are trained together. Outside a git checkout set TWOSCALE_COMMIT, which records name.
"""

import argparse
import sys
from pathlib import Path

from run_records import write_run_records

from twoscale.data import Dataset
from twoscale.data.generation import generate
from twoscale.methods.settings import parse_seeds
from twoscale.problems import get_problem
from twoscale.run import Run, RunRequest, finetune_run, fit_runs
from twoscale.surrogate.options import resolve_device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("problem")
    parser.add_argument("resolution", type=int)
    parser.add_argument("method")
    parser.add_argument("--objectives", nargs="+", required=True)
    parser.add_argument("--seeds", default="0")
    given = parser.parse_args()
    device = resolve_device("auto")
    name = f"{given.problem}-{given.resolution}"
    path = given.work / f"{name}.zarr"
    if not path.exists():
        sizes = {"resolution": given.resolution, "samples": 10000, "seed": 0}
        generate(get_problem(given.problem), path, device=device, **sizes)
    dataset = Dataset(path)
    runs = given.work / "runs"
    bases = {k: runs / f"{name}-{given.method}-{k}" for k in parse_seeds(given.seeds)}
    requests = [RunRequest(out, given.method, seed) for seed, out in bases.items()]
    fit_runs(dataset, requests, overwrite=True)
    folders = []
    for base in bases.values():
        folders.append(base)
        for objective in given.objectives:
            out = base.with_name(f"{base.name}-{objective}")
            tuned = finetune_run(Run.open(base), out, objective=objective, overwrite=True)
            shown = ("mre", "value_trace_error", "normal_derivative_trace_error", "residual_rms")
            print(out.name, *(f"{tuned.metrics[key]:.3e}" for key in shown), flush=True)
            print({key: round(value, 2) for key, value in tuned.metrics["timings"].items()})
            folders.append(out)
    written = [given.record.name if part == str(given.record) else part for part in sys.argv[2:]]
    command = " ".join(["python scripts/finetune_runs.py WORK", *written])
    write_run_records(given.record, folders, command=command, overwrite=True)


if __name__ == "__main__":
    main()
