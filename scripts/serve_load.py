"""Many clients at once ask a server for predictions; every answer is held against `predict`.

python scripts/serve_load.py --clients 64 --seconds 30 --out results/serve.json

The server is a process of its own, on loopback. A third of the requests are npy, a third JSON, a
third UM-Bridge evaluations, of 1 to 4 fields each.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil
from records import write_record

from twoscale import Grid, Poisson, Surrogate

KINDS = ("npy", "json", "umbridge")
POOL = 64  # inputs that requests are made of
SIDE = 32
TOLERANCE = 1e-4  # of ||answer - predict|| / ||predict||: single precision in batches of any size


def fitted() -> tuple[Surrogate, np.ndarray]:
    """Return a surrogate of Poisson's equation, and new inputs."""
    problem = Poisson()
    inputs, outputs = problem.pairs(Grid.square(SIDE), range(400 + POOL), seed=0)
    surrogate = Surrogate("two-scale", problem=problem, device="cpu", epochs=20)
    surrogate.fit(inputs[:400], outputs[:400])
    return surrogate, inputs[400:].float().numpy()


def started(run: Path) -> tuple[subprocess.Popen[str], str]:
    """Return the server's process and its address."""
    command = [sys.executable, "-m", "twoscale", "serve", str(run), "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


class Request(NamedTuple):
    """A request as bytes, made before the load begins, and the inputs it is about."""

    kind: str
    sent: bytes
    rows: np.ndarray


def prepared(url: str, inputs: np.ndarray) -> list[Request]:
    """Return requests of all kinds and sizes."""
    rng = np.random.default_rng(0)
    made = []
    for kind in KINDS * POOL:
        rows = rng.integers(POOL, size=1 if kind == "umbridge" else rng.integers(1, 5))
        fields = inputs[rows]
        path, content_type = "/predict", "application/json"
        if kind == "npy":
            stream = io.BytesIO()
            np.save(stream, fields)
            body, content_type = stream.getvalue(), "application/x-npy"
        elif kind == "json":
            body = json.dumps({"fields": fields.tolist()}).encode()
        else:
            path = "/Evaluate"
            vector = fields[0].ravel().tolist()
            body = json.dumps({"name": "forward", "input": [vector], "config": {}}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        made.append(Request(kind, head.encode() + body, rows))
    return made


class Load:
    """Clients, and what they have counted."""

    def __init__(self, url: str, inputs: np.ndarray, expected: np.ndarray) -> None:
        self.address = urlsplit(url)
        self.requests = prepared(url, inputs)
        self.expected = expected
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []
        self.worst = 0.0

    async def run(self, clients: int, seconds: float) -> float:
        """Ask for a time, and return how long it took until all had their answers."""
        start = time.perf_counter()
        end = start + seconds
        await asyncio.gather(*(self._client(seed, end) for seed in range(clients)))
        return time.perf_counter() - start

    async def _client(self, seed: int, end: float) -> None:
        """Ask one request after the other on a connection of its own."""
        rng = np.random.default_rng(seed)
        streams = await asyncio.open_connection(
            self.address.hostname, self.address.port, limit=2**20
        )
        while time.perf_counter() < end:
            request = self.requests[rng.integers(len(self.requests))]
            before = time.perf_counter()
            try:
                status, body = await asked(*streams, request.sent)
            except (OSError, EOFError, ValueError) as error:
                self.counts[f"error {type(error).__name__}"] += 1
                return
            if status != 200:
                self.counts[f"error {status}"] += 1
                continue
            self.times.append(time.perf_counter() - before)
            self._compare(request, body)
        streams[1].close()

    def _compare(self, request: Request, body: bytes) -> None:
        self.counts[request.kind] += 1
        expected, error = self.expected[request.rows], np.inf
        if request.kind == "npy":
            found = np.load(io.BytesIO(body), allow_pickle=False)
        else:
            content = json.loads(body)
            found = np.array(content["fields" if request.kind == "json" else "output"])
        if found.size == expected.size:
            difference = found.reshape(expected.shape) - expected
            error = float(np.linalg.norm(difference) / np.linalg.norm(expected))
        self.worst = max(self.worst, error)
        self.counts["wrong"] += not error <= TOLERANCE


async def asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes
) -> tuple[int, bytes]:
    """Return status and body of the answer to a request."""
    writer.write(sent)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    (length,) = [line for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    return int(head.split()[1]), await reader.readexactly(int(length.split(b":")[1]))


def process_seconds(number: int) -> float:
    """Return the processor time that a process has taken."""
    times = psutil.Process(number).cpu_times()
    return times.user + times.system


def measure(clients: int, seconds: float) -> dict[str, Any]:
    """Return the record of one load."""
    others = os.getloadavg()[0]  # processes that other work keeps running
    surrogate, inputs = fitted()
    expected = surrogate.predict(inputs)
    with tempfile.TemporaryDirectory() as folder:
        surrogate.save(Path(folder) / "run")
        process, url = started(Path(folder) / "run")
        try:
            memory = psutil.Process(process.pid).memory_info
            asyncio.run(Load(url, inputs, expected).run(clients, 3.0))  # to warm up
            load, before = Load(url, inputs, expected), memory().rss
            busy = process_seconds(process.pid)
            took = asyncio.run(load.run(clients, seconds))
            after, busy = memory().rss, process_seconds(process.pid) - busy
            queue = httpx.get(f"{url}/health").json()["queue"]
        finally:
            process.terminate()
            status = process.wait(30)
    record = _record(load, took, (before, after), queue, status)
    return {"clients": clients, "load_before": others, "server_cpu_seconds": busy, **record}


def _record(
    load: Load, took: float, memory: tuple[int, int], queue: dict[str, int], status: int
) -> dict[str, Any]:
    answered = len(load.times)
    milliseconds = 1000 * np.quantile(load.times, [0.5, 0.99])
    return {
        "seconds": took,
        "answers": answered,
        "answers_by_kind": {kind: load.counts[kind] for kind in KINDS},
        "wrong_answers": load.counts["wrong"],
        "largest_relative_difference": load.worst,
        "errors": {k: n for k, n in load.counts.items() if k.startswith("error")},
        "requests_per_second": answered / took,
        "median_ms": float(milliseconds[0]),
        "p99_ms": float(milliseconds[1]),
        "memory_before_mb": memory[0] / 1e6,
        "memory_after_mb": memory[1] / 1e6,
        "batches_with_warm_up": queue["batches"],
        "exit_status": status,
        "grid": f"{SIDE}x{SIDE}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_record(given.out, measure(given.clients, given.seconds), show=True)


if __name__ == "__main__":
    main()
