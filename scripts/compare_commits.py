"""Time fits and predictions of two source trees in turn, and write their ratios as JSON.

    git worktree add /tmp/old COMMIT
    python scripts/compare_commits.py /tmp/old/src src --rounds 5 --out results/redesign.json

Both trees run in processes of their own, one after the other, on one thread. The least of all
rounds counts: what else runs on the machine only makes times longer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from records import write_record

CODE = """
import json, sys, tempfile, time, warnings
import torch
from twoscale import Grid, Poisson, Surrogate

warnings.simplefilter("ignore")
device = sys.argv[1]
torch.set_num_threads(1)
problem = Poisson()
x = problem.sample(Grid.square(64), range(900), seed=0)
u = problem.solve(x).float().numpy()
x = x.float().numpy()
held_out = (x[800:850], u[800:850])
times = {}


def least(name, work, rounds):
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        found.append(time.perf_counter() - start)
    times[name] = min(found)
    return result


def fit(method, samples=800, **settings):
    surrogate = Surrogate(method, device=device, seed=0, **settings)
    return surrogate.fit(x[:samples], u[:samples], validation=held_out)


affine = least("fit two-scale, affine", lambda: fit("two-scale", predictor="affine"), 3)
for method in ("local", "overlap", "conforming"):
    least(f"fit {method}, affine", lambda: fit(method, predictor="affine"), 2)
least("train two-scale, 40 epochs", lambda: fit("two-scale", epochs=40), 2)
fno = least("train fno, 1 epoch", lambda: fit("fno", 160, epochs=1, width=16, layers=2), 2)
small = {"predictor": "encoder", "epochs": 1, "width": 16}
encoder = least("train encoder, 1 epoch", lambda: fit("two-scale", 320, **small), 2)
for count, repeats in ((1, 100), (64, 10), (800, 1)):
    run = lambda: [affine.predict(x[:count]) for _ in range(repeats)]
    least(f"predict {count}, two-scale", run, 8)
least("predict 16, fno", lambda: fno.predict(x[:16]), 8)
least("predict 16, encoder", lambda: encoder.predict(x[:16]), 8)
least("evaluate 50, two-scale", lambda: affine.evaluate(x[850:], u[850:]), 4)
with tempfile.TemporaryDirectory() as folder:
    affine.save(folder + "/saved")
    least("load two-scale", lambda: Surrogate.load(folder + "/saved", device=device), 4)
kernels = {"predictor": "kernel", "symmetries": "square"}
least("fit two-scale, kernel with images", lambda: fit("two-scale", 200, **kernels), 2)
json.dump(times, sys.stdout)
"""


STARTS = {
    "import": ("-c", "import twoscale; twoscale.Surrogate"),
    "help": ("-m", "twoscale", "--help"),
}


def run(source: Path, device: str) -> dict[str, float]:
    """Return the least time of each piece of work with a source tree, in seconds."""
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"}

    def python(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    times = json.loads(python("-c", CODE, device))
    for name, arguments in STARTS.items():
        start = time.perf_counter()
        python(*arguments)
        times[name] = time.perf_counter() - start
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    best: dict[str, dict[str, float]] = {"old": {}, "new": {}}
    for _ in range(options.rounds):
        for name, source in (("old", options.old), ("new", options.new)):
            for work, seconds in run(source, options.device).items():
                best[name][work] = min(seconds, best[name].get(work, seconds))
    rows = {
        work: {"old": old, "new": best["new"][work], "ratio": best["new"][work] / old}
        for work, old in best["old"].items()
    }
    for work, row in rows.items():
        print(f"{work:28s} {row['old']:.4f} {row['new']:.4f} {row['ratio']:.3f}")
    if options.out:
        write_record(options.out, {"seconds": rows}, device=options.device)


if __name__ == "__main__":
    main()
