"""The same fits by one process and by two under torchrun: loss curves, and seconds per epoch.

python scripts/distributed_record.py --out results/distributed.json

Each process has one thread. On a machine whose cores do other work, times say little; the load
before each fit is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from records import write_record

from twoscale import Poisson
from twoscale.data import generate

FITS = {
    "fno": {"method": "fno", "width": 16, "modes": 8, "batch_size": 15},
    "encoder": {"method": "whole-field", "predictor": "encoder", "width": 16, "batch_size": 15},
    "encoder, images under symmetries": {
        "method": "whole-field",
        "predictor": "encoder",
        "width": 16,
        "symmetries": "square",
    },
    "encoder, codes of two scales": {"method": "two-scale", "predictor": "encoder", "width": 16},
}


def fit(data: Path, out: Path, settings: dict[str, Any], processes: int) -> dict[str, Any]:
    """Return the history of a fit, its seconds of training, and the machine's load before it."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    chosen = dict(settings)
    command = ["-m", "twoscale", "--quiet", "fit", str(data), "--method", chosen.pop("method")]
    command += ["--device", "cpu", "--out", str(out)]
    for name, value in chosen.items():
        command += ["--set", f"{name}={value}"]
    load = os.getloadavg()[0]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    arguments = [*(launch if processes > 1 else []), *command]
    subprocess.run([sys.executable, *arguments], check=True, env=environment)
    history = json.loads((out / "history.json").read_text())["training"]
    metrics = json.loads((out / "metrics.json").read_text())
    epochs = len(history["training_loss"])
    return {
        "history": history,
        "mre": metrics["mre"],
        "seconds_per_epoch": metrics["timings"]["training"] / epochs,
        "load_before": load,
    }


def compare(data: Path, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what one process and two find with some settings."""
    one, two = (fit(data, folder / f"of-{count}", settings, count) for count in (1, 2))
    curves: list[str] = ["training_loss", "validation_loss"]
    pairs = [
        pair
        for name in curves
        for pair in zip(one["history"][name], two["history"][name], strict=True)
    ]
    return {
        "settings": settings,
        "largest_relative_difference_of_losses": max(abs(a - b) / a for a, b in pairs),
        "processes": {
            str(count): {name: found[name] for name in ("mre", "seconds_per_epoch", "load_before")}
            for count, found in ((1, one), (2, two))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolution", type=int, default=32)
    parser.add_argument("--samples", type=int, default=250)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    fits = {}
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "poisson.zarr"
        generate(Poisson(), data, resolution=given.resolution, samples=given.samples, seed=0)
        for place, (title, settings) in enumerate(FITS.items()):
            chosen = settings | {"epochs": given.epochs}
            fits[title] = compare(data, Path(name) / str(place), chosen)
            print(title, fits[title], flush=True)
    record = {
        "problem": f"Poisson {given.resolution}², {given.samples} samples",
        "cores": os.cpu_count(),
        "threads_per_process": 1,
        "fits": fits,
    }
    write_record(given.out, record)


if __name__ == "__main__":
    main()
