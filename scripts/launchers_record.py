"""The same fit on clusters that Dask's own launchers start: SSH, Slurm, and Kubernetes's manifest.

python scripts/launchers_record.py --out results/cluster-launchers.json

Each launcher starts two workers, for `twoscale generate` and `twoscale fit`. The weights and the
dataset are compared with those of the same commands in one process. The commands are those of
docs/howto/start-cluster.md. It needs root (for namespaces), OpenSSH, Slurm with munge, and the
packages asyncssh, paramiko, dask-jobqueue and dask-kubernetes. What is missing is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from cluster_record import weights_digest
from distributed import Client
from launchers import (
    Site,
    cancel_job,
    dask_ssh,
    isolated,
    job_log,
    kubernetes,
    missing_commands,
    recipe,
    run_job,
    slurm,
    slurm_cluster,
    ssh_cluster,
)
from records import write_record

from twoscale.runtime.progress import now

_FIT = ["--method", "two-scale", "--set", "epochs=2", "--device", "cpu"]
_NODES = 64


@dataclass(frozen=True)
class Launcher:
    """A way to start a cluster, what it needs, and what a record says about it."""

    start: Callable[[Site], AbstractContextManager[str]]
    done: str
    not_tried: str
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    harm: Callable[[Site], None] | None = None  # what happens in the middle of the fit

    def lacks(self) -> list[str]:
        """Return the programs and packages that are not installed."""
        modules = [name for name in self.packages if not importlib.util.find_spec(_module(name))]
        return [name for name in self.programs if shutil.which(name) is None] + modules


_SLURM = ("slurmctld", "slurmd", "sbatch", "srun", "munged")
_JOBS = Launcher(
    slurm_cluster,
    "the page's Python lines submitted two jobs, one worker each, to a Slurm with one node",
    "several nodes, limits of memory and time, accounts, queues",
    _SLURM,
    ("dask-jobqueue",),
)
LAUNCHERS = {
    "SSH, dask ssh": Launcher(
        dask_ssh,
        "`dask ssh --hostfile` logged in to 127.0.0.1 and 127.0.0.2 with a key",
        "several machines",
        ("sshd", "ssh-keygen"),
        ("paramiko",),
    ),
    "SSH, SSHCluster": Launcher(
        ssh_cluster,
        "the class SSHCluster logged in to the same addresses and checked the host key",
        "several machines",
        ("sshd", "ssh-keygen"),
        ("asyncssh",),
    ),
    "Slurm, SLURMCluster": _JOBS,
    "Slurm, SLURMCluster, a job cancelled": Launcher(
        slurm_cluster,
        "the same; scancel ended one of the two jobs in the middle of the fit",
        _JOBS.not_tried,
        _SLURM,
        ("dask-jobqueue",),
        cancel_job,
    ),
    "Kubernetes, the manifest": Launcher(
        kubernetes,
        "the page's manifest fits the operator's schema; the operator's functions made deployments "
        "from it; their command lines ran as processes, with the variables of their containers",
        "an API server, the operator at work, pods, images, services: none could be had here",
        (),
        ("dask-kubernetes", "jsonschema"),
    ),
}
JOBS = {
    "Slurm, one job": "sbatch submitted the page's job: a scheduler, workers by srun, and the fit",
    "Slurm, one job, cancelled": "the same; scancel ended it in the middle of the fit, and sbatch "
    "submitted it again",
}


def _module(package: str) -> str:
    return package.replace("-", "_")


def twoscale(site: Site, *command: str) -> dict[str, Any]:
    """Run a command of twoscale; return its seconds and what it said."""
    start = now()
    ended = subprocess.run(
        ["twoscale", *command], cwd=site.folder, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr}\n{site.log()}")
    return {"seconds": round(now() - start, 1), "said": ended.stderr}


def data_digest(dataset: Path) -> str:
    """Return a digest of all files of a dataset."""
    digest = hashlib.sha256()
    for path in sorted(dataset.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(dataset)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Work:
    """A dataset and a fit by commands, in a folder that is emptied before each."""

    def __init__(self, site: Site, samples: int) -> None:
        self.site, self.samples = site, samples

    def generate(self, *options: str) -> dict[str, Any]:
        for name in ("data", "runs"):
            shutil.rmtree(self.site.folder / name, ignore_errors=True)
        size = ["--resolution", str(_NODES), "--samples", str(self.samples)]
        return twoscale(
            self.site, "generate", "poisson", *size, "--out", "data/large.zarr", *options
        )

    def fit(self, *options: str) -> dict[str, Any]:
        return twoscale(self.site, "fit", "data/large.zarr", *_FIT, "--out", "runs/large", *options)

    def digests(self) -> dict[str, str]:
        folder = self.site.folder
        return {
            "data": data_digest(folder / "data/large.zarr"),
            "weights": weights_digest(folder / "runs/large"),
        }

    def both(self, *options: str, harm: Timer | None = None) -> dict[str, Any]:
        """Return the seconds of both commands, what they made, and what they said of workers."""
        generated = self.generate(*options)
        if harm:
            harm.start()
        try:
            fitted = self.fit(*options)
        finally:
            if harm:
                harm.cancel()
        seconds = {"generate": generated["seconds"], "fit": fitted["seconds"]}
        said = _of_workers(fitted["said"])
        return self.digests() | {"seconds": seconds, "said_of_workers": said}


def _of_workers(text: str) -> list[str]:
    """Return the lines of a command's output that tell of workers found or lost."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if re.match(r"\d+ workers?,|the worker ", line)]


def on(launcher: Launcher, work: Work, after: float) -> dict[str, Any]:
    """Return what the commands did on a cluster of a launcher, harmed after some seconds."""
    site, start = work.site, now()
    harm = Timer(after, launcher.harm, (site,)) if launcher.harm else None
    with launcher.start(site) as address:
        with Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=120)
            workers = len(client.nthreads())
        started = round(now() - start, 1)
        row = work.both("--scheduler", address, harm=harm)
    row["seconds"]["start"] = started
    return row | {"workers": workers} | ({"harmed_after_seconds": after} if harm else {})


def batch(work: Work, *, cancelled: bool) -> dict[str, Any]:
    """Return what the page's job of Slurm did, with two tasks instead of eight."""
    work.generate()
    (work.site.folder / "job.log").unlink(missing_ok=True)
    script = recipe("job.sh").replace("--ntasks=8", "--ntasks=2")
    script = script.replace("--method two-scale", " ".join(_FIT))
    with slurm(work.site):
        start = now()
        run_job(work.site, script, cancelled=cancelled)
        seconds = round(now() - start, 1)
    said = _of_workers(job_log(work.site))
    return work.digests() | {"seconds": {"jobs": seconds}, "said_of_workers": said}


def rows(work: Work) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each launcher did, by its name."""
    last = 0.0
    for name, launcher in LAUNCHERS.items():
        if lacks := launcher.lacks():
            yield name, {"skipped": f"not installed: {', '.join(lacks)}"}
            continue
        row = on(launcher, work, round(last / 3, 1))
        last = row["seconds"]["fit"]
        yield name, {"done": launcher.done, "not_tried": launcher.not_tried} | row
    for name, done in JOBS.items():
        if lacks := Launcher(slurm_cluster, "", "", _SLURM).lacks():
            yield name, {"skipped": f"not installed: {', '.join(lacks)}"}
            continue
        row = batch(work, cancelled="cancelled" in name)
        yield name, {"done": done, "not_tried": _JOBS.not_tried} | row


def versions() -> dict[str, str]:
    """Return the versions of the launchers and of Dask."""
    found = {}
    for name, command in (("OpenSSH", ["ssh", "-V"]), ("Slurm", ["sbatch", "--version"])):
        if shutil.which(command[0]):
            said = subprocess.run(command, capture_output=True, text=True)
            found[name] = (said.stdout + said.stderr).strip().split(",")[0]
    packages = {"dask", "distributed"}.union(*(one.packages for one in LAUNCHERS.values()))
    installed = [name for name in sorted(packages) if importlib.util.find_spec(_module(name))]
    return found | {name: version(name) for name in installed}


def record(site: Site, samples: int) -> dict[str, Any]:
    """Return the record: a fit in this process, and the same by each launcher."""
    work = Work(site, samples)
    here = work.both()
    print("in process", here, flush=True)
    found: dict[str, Any] = {}
    for name, row in rows(work):
        if "skipped" not in row:
            row["same_data"] = row.pop("data") == here["data"]
            row["same_weights"] = row.pop("weights") == here["weights"]
        found[name] = row
        print(name, row, flush=True)
    tried = [row for row in found.values() if "skipped" not in row]
    if importlib.util.find_spec("dask_kubernetes"):
        found["Kubernetes, the manifest"]["commands_that_are_gone"] = missing_commands()
    return {
        "samples": samples,
        "nodes_per_side": _NODES,
        "versions": versions(),
        "same_data": bool(tried) and all(row["same_data"] for row in tried),
        "same_weights": bool(tried) and all(row["same_weights"] for row in tried),
        "in_process": here,
        "launchers": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is None:  # this command again, in namespaces of its own
        with TemporaryDirectory() as folder:
            sys.exit(isolated(Path(folder), [sys.executable, *sys.argv]))
    site = Site(given.inside)
    site.enter()
    write_record(given.out, record(site, given.samples))


if __name__ == "__main__":
    main()
