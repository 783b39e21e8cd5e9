"""Work with a dataset on a storage service that fails now and then, compared with the local disk.

python scripts/remote_record.py --out results/remote.json
python scripts/remote_record.py --service gs --out results/remote-gs.json

Poisson fields are generated, checked, fitted, measured and predicted from, by the commands a user
types: first on the local disk, then on a server of S3 or of Google Cloud Storage on loopback. The
server answers a share of requests with errors 500 and 503, with half of the bytes, or later than
the client waits. During the generation it fails altogether once; the same command then goes on. At
the end it refuses connections while a fit and a prediction read: for a few seconds, then for good.
S3 needs `moto[server]` and the extra `remote`, Google `gcp-storage-emulator` and the extra `gs`.
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

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.google_storage import google_storage
from faults.storage import Storage, s3_storage
from records import write_record

from twoscale.runtime.progress import now

SERVERS = {"s3": s3_storage, "gs": google_storage}
PATIENCE = 5.0  # seconds that the client waits, here instead of 30
PAUSE = 6.0  # seconds that a late answer takes
AWAY = 3.0  # seconds for which connections are refused
_RETRY = "twoscale: try "  # begins the line of the log that each repeated request has
_PROGRAM = """
import logging, sys
from twoscale.data import services
services.TIMEOUT = float(sys.argv.pop(1))
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
        known = self.server.account() if self.server else {}
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(PATIENCE), str(log), *arguments],
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


class Work:
    """The commands that read a dataset at a place, and what they write into the folder."""

    def __init__(self, commands: Commands, place: str, memory: str) -> None:
        self.commands, self.place, self.memory = commands, place, memory

    def all(self, out: str) -> None:
        self.commands.run("check", "check", self.place)
        self.commands.run("fit", *self.fit(out))
        self.commands.run("evaluate", "evaluate", out, "--data", self.place, "--device", "cpu")
        self.commands.run("predict", *self.predict(out, f"{out}.npy"))

    def fit(self, out: str) -> tuple[str, ...]:
        method = ("--method", "two-scale", "--set", "predictor=affine", "--memory", self.memory)
        return ("fit", self.place, *method, "--device", "cpu", "--out", out)

    def predict(self, run: str, out: str) -> tuple[str, ...]:
        return ("predict", run, self.place, "--device", "cpu", "--out", out)


def outage(commands: Commands, server: Storage, *recipe: str) -> dict[str, Any]:
    """Let the server fail for good while the second shard is written; then go on."""
    server.fails_after = "output/c/1"
    sentence = commands.run("generate until the outage", *recipe, status=2)
    claims = b'"complete": true' in server.objects("data/poisson.zarr/")["zarr.json"]
    server.fails_after = ""
    commands.run("generate the rest", *recipe)
    return {"sentence": sentence, "claimed_to_be_complete": claims}


def absences(work: Work, server: Storage) -> dict[str, Any]:
    """Refuse connections while a fit and a prediction read: for some seconds, then for good."""
    told = {}
    for name, read, through, until in (
        ("fit", "output/c/1", work.fit("through"), work.fit("until")),
        (
            "predict",
            "input/c/1",
            *(work.predict("there", f"{one}.npy") for one in ("through", "until")),
        ),
    ):
        server.away, server.leaves_after = AWAY, read
        work.commands.run(f"{name} through an absence", *through)
        server.come_back()
        server.away, server.leaves_after = None, read
        told[name] = work.commands.run(f"{name} until an absence", *until, status=2)
        server.come_back()
    left = [path.name for path in work.commands.folder.iterdir() if path.name.startswith("until")]
    return {"seconds": AWAY, "sentences": told, "left_behind": left}


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
    recipe = ("generate", "poisson", *size, "--device", "cpu", "--out")
    place = f"{given.service}://bucket/data/poisson.zarr"
    started = SERVERS[given.service](seed=given.seed, pause=PAUSE)
    with tempfile.TemporaryDirectory() as name, started as server:
        folder = Path(name)
        here, there = Commands(folder), Commands(folder, server)
        here.run("generate", *recipe, "poisson.zarr")
        Work(here, "poisson.zarr", given.memory).all("here")
        server.rate = given.rate
        stopped = outage(there, server, *recipe, place)
        work = Work(there, place, given.memory)
        work.all("there")
        server.rate = 0.0
        away = absences(work, server)
        return {
            "service": given.service,
            "samples": given.samples,
            "resolution": given.resolution,
            "memory_of_the_fit": given.memory,
            "rate_of_faults": given.rate,
            "client_waits_seconds": PATIENCE,
            "late_answer_seconds": PAUSE,
            "shards": len([key for key in server.objects("data/") if "/c/" in key]),
            "local": here.steps,
            "remote": there.steps,
            "outage": stopped,
            "refused_connections": away,
            "same_objects": same_objects(server, folder / "poisson.zarr"),
            **compared(folder),
            "leftovers": [key for key in server.objects() if ".twoscale-work" in key],
        }


def compared(folder: Path) -> dict[str, Any]:
    """Say whether runs and predictions are those of the local disk, bit for bit."""
    names = ("here", "there", "through")
    fields = [np.load(folder / f"{one}.npy", mmap_mode="r") for one in names]
    metrics = [json.loads((folder / one / "metrics.json").read_text()) for one in names]
    return {
        "same_predictions": all(np.array_equal(fields[0], one) for one in fields[1:]),
        "mre": dict(
            zip(
                ("local", "remote", "through an absence"),
                (one["mre"] for one in metrics),
                strict=True,
            )
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", choices=SERVERS, default="s3")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--memory", default="1GB", help="of the fit; larger datasets stay remote")
    parser.add_argument("--rate", type=float, default=0.05, help="share of requests that fail")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_record(given.out, measure(given), show=True)


if __name__ == "__main__":
    main()
