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
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import torch

from twoscale import Grid, Poisson, Surrogate
from twoscale.files import write_json
from twoscale.surrogate.artifact import environment

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


class Load:
    """Clients, and what they have counted."""

    def __init__(self, url: str, inputs: np.ndarray, expected: np.ndarray) -> None:
        self.url = url
        self.inputs = inputs
        self.expected = expected
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []
        self.worst = 0.0

    async def run(self, clients: int, seconds: float) -> float:
        """Ask for a time, and return how long it took until all had their answers."""
        start = time.perf_counter()
        end = start + seconds
        limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
        async with httpx.AsyncClient(limits=limits, timeout=60) as http:
            await asyncio.gather(*(self._client(http, seed, end) for seed in range(clients)))
        return time.perf_counter() - start

    async def _client(self, http: httpx.AsyncClient, seed: int, end: float) -> None:
        rng = np.random.default_rng(seed)
        while time.perf_counter() < end:
            kind = ("npy", "json", "umbridge")[rng.integers(3)]
            rows = rng.integers(POOL, size=1 if kind == "umbridge" else rng.integers(1, 5))
            before = time.perf_counter()
            try:
                found = await self._ask(http, kind, self.inputs[rows])
            except (httpx.HTTPError, ValueError, KeyError) as error:
                self.counts[f"error {type(error).__name__}"] += 1
                continue
            self.times.append(time.perf_counter() - before)
            self._compare(kind, found, self.expected[rows])

    async def _ask(self, http: httpx.AsyncClient, kind: str, fields: np.ndarray) -> np.ndarray:
        if kind == "npy":
            stream = io.BytesIO()
            np.save(stream, fields)
            headers = {"Content-Type": "application/x-npy"}
            answer = await http.post(
                f"{self.url}/predict", content=stream.getvalue(), headers=headers
            )
            return np.load(io.BytesIO(answer.raise_for_status().content), allow_pickle=False)
        if kind == "json":
            answer = await http.post(f"{self.url}/predict", json={"fields": fields.tolist()})
            return np.array(answer.raise_for_status().json()["fields"])
        content = {"name": "forward", "input": [fields[0].ravel().tolist()], "config": {}}
        answer = await http.post(f"{self.url}/Evaluate", json=content)
        return np.reshape(answer.raise_for_status().json()["output"], fields.shape)

    def _compare(self, kind: str, found: np.ndarray, expected: np.ndarray) -> None:
        self.counts[kind] += 1
        error = np.inf
        if found.shape == expected.shape:
            error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
        self.worst = max(self.worst, error)
        self.counts["wrong"] += not error <= TOLERANCE


def measure(clients: int, seconds: float) -> dict[str, Any]:
    """Return the record of one load."""
    surrogate, inputs = fitted()
    expected = surrogate.predict(inputs)
    with tempfile.TemporaryDirectory() as folder:
        surrogate.save(Path(folder) / "run")
        process, url = started(Path(folder) / "run")
        try:
            memory = psutil.Process(process.pid).memory_info
            asyncio.run(Load(url, inputs, expected).run(clients, 3.0))  # to warm up
            load, before = Load(url, inputs, expected), memory().rss
            took = asyncio.run(load.run(clients, seconds))
            after = memory().rss
            queue = httpx.get(f"{url}/health").json()["queue"]
        finally:
            process.terminate()
            status = process.wait(30)
    return _record(load, took, (before, after), queue, status) | {"clients": clients}


def _record(
    load: Load, took: float, memory: tuple[int, int], queue: dict[str, int], status: int
) -> dict[str, Any]:
    answered = len(load.times)
    milliseconds = 1000 * np.quantile(load.times, [0.5, 0.99])
    return {
        "seconds": took,
        "answers": answered,
        "answers_by_kind": {kind: load.counts[kind] for kind in ("npy", "json", "umbridge")},
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
        "environment": environment(torch.device("cpu")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    command = f"--clients {given.clients} --seconds {given.seconds:g} --out {given.out}"
    record = {"command": f"python scripts/serve_load.py {command}"}
    record |= measure(given.clients, given.seconds)
    write_json(given.out, record)
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
