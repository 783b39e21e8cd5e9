"""Work with a dataset on a server of S3 that fails now and then, compared with the local disk.

python scripts/remote_record.py --out results/remote.json

Poisson fields are generated, checked, fitted and predicted from, by the commands a user types:
first on the local disk, then on a server of S3 on loopback. The server answers a share of requests
with errors 500 and 503, with half of the bytes, or late. During the generation it fails altogether
once; the same command then goes on. It needs `moto[server]` and the extra `remote`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.storage import Storage, account, storage

from twoscale.files import write_json
from twoscale.runtime.timing import now
from twoscale.surrogate.artifact import environment

PLACE = "s3://bucket/data/poisson.zarr"
PAUSE = 2.0  # seconds that a late answer takes
_RETRY = "twoscale: try "  # begins the line of the log that each repeated request has
_PROGRAM = """
import logging, sys
handler = logging.FileHandler(sys.argv.pop(1))
handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
logging.getLogger("twoscale").addHandler(handler)
logging.getLogger("twoscale").setLevel("INFO")
from twoscale.cli import main
main()
"""


class Commands:
    """Runs commands in a folder; keeps their seconds, and counts requests that were repeated."""

    def __init__(self, folder: Path, server: Storage | None = None) -> None:
        self.folder, self.server = folder, server
        self.steps: dict[str, dict[str, Any]] = {}

    def run(self, name: str, *arguments: str, status: int = 0) -> str:
        """Run a command, which must end with a status; return what it says on stderr."""
        log = self.folder / "log.txt"
        log.unlink(missing_ok=True)
        begun, asked = now(), len(self.server.requests) if self.server else 0
        met = Counter(self.server.injected) if self.server else Counter()
        known = account(self.server.url) if self.server else {}
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(log), *arguments],
            cwd=self.folder,
            env=os.environ | known,
            capture_output=True,
            text=True,
            check=False,
        )
        step: dict[str, Any] = {"seconds": round(now() - begun, 1)}
        if self.server:
            faults = self.server.injected - met
            step |= {
                "requests": len(self.server.requests) - asked,
                "faults": dict(sorted(faults.items())),
                "repeated": sum(line.startswith(_RETRY) for line in log.read_text().splitlines()),
            }
        self.steps[name] = step
        print(name, step, flush=True)
        if ended.returncode != status:
            raise SystemExit(f"{name} ended with {ended.returncode}: {ended.stderr}")
        return ended.stderr.strip()


def work(commands: Commands, place: str, out: str, given: argparse.Namespace) -> None:
    """Check a dataset, fit it, and predict from it."""
    commands.run("check", "check", place)
    fit = ("--method", "two-scale", "--set", "predictor=affine", "--memory", given.memory)
    commands.run("fit", "fit", place, *fit, "--device", "cpu", "--out", out)
    commands.run("predict", "predict", out, place, "--device", "cpu", "--out", f"{out}.npy")


def outage(commands: Commands, server: Storage, recipe: tuple[str, ...]) -> dict[str, Any]:
    """Let the server fail for good while the second shard is written; then go on."""
    server.fails_after = "output/c/1"
    sentence = commands.run("generate until the outage", *recipe, "--out", PLACE, status=2)
    claims = b'"complete": true' in server.objects("data/poisson.zarr/")["zarr.json"]
    server.fails_after = ""
    commands.run("generate the rest", *recipe, "--out", PLACE)
    return {"sentence": sentence, "claimed_to_be_complete": claims}


def same_objects(server: Storage, folder: Path) -> bool:
    """Say whether the server has the files of a local dataset, byte by byte, and no others."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return server.objects("data/poisson.zarr/") == files


def measure(given: argparse.Namespace) -> dict[str, Any]:
    size = ("--resolution", str(given.resolution), "--samples", str(given.samples))
    recipe = ("generate", "poisson", *size, "--device", "cpu")
    with tempfile.TemporaryDirectory() as name, storage(seed=given.seed, pause=PAUSE) as server:
        folder = Path(name)
        here, there = Commands(folder), Commands(folder, server)
        here.run("generate", *recipe, "--out", "poisson.zarr")
        work(here, "poisson.zarr", "here", given)
        server.rate = given.rate
        stopped = outage(there, server, recipe)
        work(there, PLACE, "there", given)
        fields = [np.load(folder / f"{one}.npy", mmap_mode="r") for one in ("here", "there")]
        metrics = [
            json.loads((folder / one / "metrics.json").read_text()) for one in ("here", "there")
        ]
        return {
            "samples": given.samples,
            "resolution": given.resolution,
            "memory_of_the_fit": given.memory,
            "rate_of_faults": given.rate,
            "late_answer_seconds": PAUSE,
            "shards": len([key for key in server.objects("data/") if "/c/" in key]),
            "local": here.steps,
            "remote": there.steps,
            "outage": stopped,
            "same_objects": same_objects(server, folder / "poisson.zarr"),
            "same_predictions": bool(np.array_equal(*fields)),
            "mre": {"local": metrics[0]["mre"], "remote": metrics[1]["mre"]},
            "leftovers": [key for key in server.objects() if ".twoscale-work" in key],
            "environment": environment(torch.device("cpu")),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--memory", default="1GB", help="of the fit; larger datasets stay remote")
    parser.add_argument("--rate", type=float, default=0.05, help="share of requests that fail")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    record = measure(given)
    write_json(given.out, record)
    print(json.dumps({key: record[key] for key in record if key != "environment"}, indent=1))


if __name__ == "__main__":
    main()
