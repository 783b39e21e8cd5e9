"""The same fit on several clusters, and a PCA of more fields than any memory holds.

python scripts/cluster_record.py bytes --out results/cluster-bytes.json
python scripts/cluster_record.py bytes --two-hosts --samples 4000 --out results/cluster-hosts.json
python scripts/cluster_record.py workers --gigabytes 3 --out results/cluster-workers.json
python scripts/cluster_record.py large --gigabytes 100 --out results/cluster-large.json

"bytes": a fit in this process, on worker processes of this machine, and on a cluster with an
address, unharmed, with a worker killed half-way, and with a scheduler restarted half-way.
"workers": the time of one PCA by 1, 2 and 4 workers. "large": fields are computed whenever a pass
reads them, so nothing is stored. The peak memory of each worker is measured, and the system refuses
a worker that asks for more than 2 GB of data. With --two-hosts the
processes of "bytes" lie in two network namespaces (it needs the rights to make them).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import torch
from records import write_record

from twoscale import PatchPCA, Poisson
from twoscale.cluster import DaskWorkers, connected
from twoscale.data import Dataset, generate
from twoscale.fields.source import chunk_length, range_length, slices
from twoscale.fields.workers import THREADS, Workers
from twoscale.run import fit_run
from twoscale.runtime.memory import peak_memory
from twoscale.runtime.progress import now

SIDE, PATCHES = 256, (16, 16)
WAVES = 24  # along an axis
LIMIT = 2 * 10**9  # bytes of data in each worker
_FIT: dict[str, Any] = {"method": "two-scale", "settings": {"epochs": 2}, "device": "cpu"}


class Cluster:
    """A scheduler and two workers, each a process of its own; on two hosts if there are two."""

    def __init__(self, hosts: list[str]) -> None:
        self.hosts = hosts  # what runs a command on each host; "" for this one, the first
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ip = "127.0.0.1" if len(hosts) == 1 else "10.77.0.1"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def address(self) -> str:
        return f"tcp://{self.ip}:{self.port}"

    def start(self) -> None:
        self._run(0, "scheduler", "--host", self.ip, "--port", str(self.port), "--no-dashboard")
        for number in range(2):
            self.add_worker(number % len(self.hosts))

    def add_worker(self, host: int) -> None:
        own = self.ip if host == 0 else "10.77.0.2"
        options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--memory-limit", "0"]
        self._run(host, "worker", self.address, "--host", own, *options)

    def _run(self, host: int, *command: str) -> None:
        self.processes.append(
            subprocess.Popen(
                [*self.hosts[host].split(), sys.executable, "-m", "dask", *command],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def stop(self) -> None:
        for process in self.processes:
            with suppress(OSError):
                process.kill()
            process.wait()
        self.processes = []

    def kill_worker(self) -> None:
        process = self.processes.pop()
        process.kill()
        process.wait()
        self.add_worker(len(self.hosts) - 1)

    def restart(self) -> None:
        self.stop()
        self.start()


@contextmanager
def two_hosts() -> Iterator[list[str]]:
    """Give what runs a command in each of two network namespaces, which a cable joins."""
    names = ("twoscale-a", "twoscale-b")
    with ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
        _ip("link", "add", "cable-a", "netns", names[0], "type", "veth", "peer", "name", "cable-b",
            "netns", names[1])  # fmt: skip
        for number, name in enumerate(names, 1):
            cable = f"cable-{name[-1]}"
            _ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", cable)
            _ip("-n", name, "link", "set", cable, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield [f"ip netns exec {name}" for name in names]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def fitted(dataset: Dataset, workers: DaskWorkers | None) -> dict[str, Any]:
    """Return the digest of the weights of a fit, and its seconds."""
    with TemporaryDirectory() as folder:
        start = now()
        run = fit_run(dataset, Path(folder) / "run", workers=workers, **_FIT)
        seconds = now() - start
        return {"weights": weights_digest(run.path), "seconds": seconds}


def weights_digest(run: Path) -> str:
    """Return a digest of the weights of a run."""
    return hashlib.sha256((run / "weights.safetensors").read_bytes()).hexdigest()[:16]


def on_cluster(
    dataset: Dataset, hosts: list[str], harm: Callable[[Cluster], None] | None, after: float
) -> dict[str, Any]:
    """Return the same of a fit on a cluster, which is harmed after some seconds."""
    cluster = Cluster(hosts)
    cluster.start()
    timer = Timer(after, harm, (cluster,)) if harm else None
    try:
        with connected(cluster.address) as workers:
            if timer:
                timer.start()
            found = fitted(dataset, workers)
    finally:
        if timer:
            timer.cancel()
            timer.join()
        cluster.stop()
    return found | ({"harmed_after_seconds": after} if harm else {})


def same_bytes(samples: int, hosts: list[str]) -> dict[str, Any]:
    """Return the fits of one dataset here, on local workers, and on a cluster that is harmed."""
    found: dict[str, Any] = {}

    def note(name: str, row: dict[str, Any]) -> float:
        found[name] = row
        print(name, row, flush=True)
        return float(row["seconds"])

    with TemporaryDirectory() as folder:
        dataset = generate(Poisson(), Path(folder) / "p.zarr", resolution=64, samples=samples)
        note("in process", fitted(dataset, None))
        if len(hosts) == 1:
            for where in ("local:1", "local:3"):
                with connected(where) as workers:
                    note(where, fitted(dataset, workers))
        seconds = note("tcp, two processes", on_cluster(dataset, hosts, None, 0.0))
        for name, harm in (
            ("tcp, a worker killed", Cluster.kill_worker),
            ("tcp, all restarted", Cluster.restart),
        ):
            note(name, on_cluster(dataset, hosts, harm, seconds / 3))
    same = len({row["weights"] for row in found.values()}) == 1
    return {"samples": samples, "nodes_per_side": 64, "same_weights": same, "fits": found}


class RandomWaves:
    """Fields that are computed whenever they are read: sums of cosines with random amplitudes.

    An amplitude decays with the square of its wave number; every node has noise of a thousandth.
    """

    def __init__(self, samples: int, workers: Workers | None = None) -> None:
        self.shape = (samples, 1, SIDE, SIDE)
        self.workers = workers or THREADS
        angles = torch.pi * (torch.arange(SIDE) + 0.5) / SIDE
        waves = torch.cos(torch.arange(1, WAVES + 1)[:, None] * angles)
        sizes = torch.arange(1, WAVES + 1.0) ** -2
        self.modes = (sizes[:, None] * waves).contiguous()  # (waves, side)

    def __reduce__(self) -> Any:
        return RandomWaves, (self.shape[0],)

    def ranges(self) -> list[slice]:
        return list(slices(self.shape[0], range_length(*self.shape[1:])))

    def read(self, samples: slice) -> Iterator[torch.Tensor]:
        generator = torch.Generator().manual_seed(samples.start)
        for part in slices(samples.stop - samples.start, chunk_length(*self.shape[1:])):
            count = part.stop - part.start
            amplitudes = torch.randn(count, WAVES, WAVES, generator=generator)
            fields = self.modes.T @ amplitudes @ self.modes
            noise = torch.rand(SIDE, SIDE, generator=generator)
            yield fields[:, None].add_(noise, alpha=1e-3)

    def chunks(self) -> Iterator[torch.Tensor]:
        return chain.from_iterable(map(self.read, self.ranges()))

    def to(self, device: torch.device) -> RandomWaves:
        return self


def limit_memory() -> int:
    """Let the system refuse this process more than LIMIT bytes of data; return them.

    These are all of its private pages that can be written to, in use or not.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    return LIMIT


def pca_of(gigabytes: float, workers: DaskWorkers) -> dict[str, Any]:
    """Return the time of a PCA of generated fields, and the peak memory of each worker."""
    samples = round(gigabytes * 1e9 / (4 * SIDE**2))
    fields = RandomWaves(samples, workers)
    limits = workers.connection.client.run(limit_memory)
    start = now()
    fitted = PatchPCA(0.99, patches=PATCHES, solver="covariance").fit(fields)
    seconds = now() - start
    peaks = workers.connection.client.run(peak_memory)
    row = {
        "gigabytes": gigabytes,
        "samples": samples,
        "workers": len(peaks),
        "seconds": seconds,
        "megabytes_per_second": 1000 * gigabytes / seconds,
        "code_size": fitted.code_size,
        "peak_bytes_of_workers": sorted(peaks.values()),
        "limit_of_each_worker": max(limits.values()),
        "peak_bytes_here": peak_memory(),
    }
    print(row, flush=True)
    return row


def by_workers(gigabytes: float) -> list[dict[str, Any]]:
    """Return the times of the same PCA by 1, 2 and 4 workers."""
    rows = []
    for count in (1, 2, 4):
        with connected(f"local:{count}") as workers:
            assert workers is not None
            rows.append(pca_of(gigabytes, workers))
    return rows


def by_size(largest: float) -> list[dict[str, Any]]:
    """Return the times of PCAs of growing data by two workers, each started afresh."""
    rows = []
    for gigabytes in (largest / 10, largest):
        with connected("local:2") as workers:
            assert workers is not None
            rows.append(pca_of(gigabytes, workers))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=("bytes", "workers", "large"))
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--two-hosts", action="store_true")
    parser.add_argument("--other-host", default="", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.two_hosts and not given.other_host:
        with two_hosts() as (first, second):  # this command again, on the first host
            again = [sys.executable, *sys.argv, "--other-host", second]
            sys.exit(subprocess.run([*first.split(), *again]).returncode)
    record: dict[str, Any] = {"nodes_per_side": SIDE, "patches": list(PATCHES)}
    if "bytes" in given.parts:
        hosts = ["", given.other_host] if given.two_hosts else [""]
        record["two_hosts" if given.two_hosts else "bytes"] = same_bytes(given.samples, hosts)
    if "workers" in given.parts:
        record["workers"] = by_workers(given.gigabytes)
    if "large" in given.parts:
        record["large"] = by_size(given.gigabytes)
    write_record(given.out, record)


if __name__ == "__main__":
    main()
