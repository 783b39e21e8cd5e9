"""A long training that is killed at random instants, beside one that is left alone.

python scripts/killed_training.py --epochs 1000 --kills 10 --out results/killed-training.json

Both end with the same weights; what each kill lost is the time since the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from records import write_record


def command(folder: Path, out: str, epochs: int) -> list[str]:
    setting = ["--method", "two-scale", "--set", f"epochs={epochs}", "--device", "cpu"]
    target = ["--out", str(folder / out)]
    return [sys.executable, "-m", "twoscale", "fit", str(folder / "d.zarr"), *setting, *target]


def weights(run: Path) -> dict[str, str]:
    return json.loads((run / "manifest.json").read_text())["tensors"]


def seconds_of_training(run: Path) -> float:
    return json.loads((run / "metrics.json").read_text())["timings"]["training"]


def kill_once(arguments: list[str], checkpoints: Path, delay: float) -> float | None:
    """Start the command, kill it after a delay; return the seconds since the last checkpoint.

    None if it ended before.
    """
    began = time.time()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    try:
        process.wait(delay)
        return None
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    saved = [path.stat().st_mtime for path in checkpoints.glob("*.safetensors")]
    return time.time() - max([began, *saved])


def measure(epochs: int, kills: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = ["--resolution", "64", "--samples", "2500", "--out", str(folder / "d.zarr")]
        subprocess.run([sys.executable, "-m", "twoscale", "generate", "poisson", *made], check=True)
        subprocess.run(command(folder, "whole", epochs), check=True)
        whole = seconds_of_training(folder / "whole")
        lost = []
        disturbed = command(folder, "killed", epochs)
        while len(lost) < kills:
            delay = draw.uniform(4.0, 2 * whole / (kills + 1))
            one = kill_once(disturbed, folder / ".killed.twoscale-work" / "checkpoints", delay)
            if one is None:
                break
            lost.append(one)
            print(f"kill {len(lost)}: after {delay:.0f} s, {one:.1f} s lost", flush=True)
        if not (folder / "killed").exists():
            subprocess.run(disturbed, check=True)
        same = weights(folder / "whole") == weights(folder / "killed")
        left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
        return {
            "epochs": epochs,
            "training_seconds": whole,
            "training_seconds_killed": seconds_of_training(folder / "killed"),
            "kills": len(lost),
            "lost_seconds": lost,
            "largest_share_lost": max(lost) / whole,
            "same_weights": same,
            "leftovers": left,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_record(given.out, measure(given.epochs, given.kills, given.seed), show=True)


if __name__ == "__main__":
    main()
