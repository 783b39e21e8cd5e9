"""Workers for tests: none at all, or a Dask cluster on loopback that is started and hurt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.free_port import free_port
from twoscale.errors import WorkersError
from twoscale.fields.workers import Threads
from twoscale.runtime.tasks import Caller, called_by

ROOT = Path(__file__).parents[2]


class Here(Threads):
    """Does tasks in this thread, one after the other; what they tell is heard at once.

    Workers die of the items for which `deadly` is true.
    """

    count = most_per_machine = 1

    def __init__(self, deadly: Callable[[Any], bool] = lambda item: False) -> None:
        self.deadly = deadly
        self.hear: Callable[[Any], None] | None = None

    @contextmanager
    def listening(self, hear: Callable[[Any], None]) -> Iterator[None]:
        self.hear = hear
        yield

    def as_finished(
        self,
        function: Callable[[Any], Any],
        following: Callable[[], Any],
        waiting: Callable[[], None],
    ) -> Iterator[tuple[Any, Any]]:
        def tell(message: Any) -> None:
            if self.hear:
                self.hear(message)
            waiting()

        while (item := following()) is not None:
            if self.deadly(item):
                yield item, WorkersError("several workers died of it")
                continue
            with called_by(Caller(lambda: True, tell)):
                result = function(item)
            yield item, result


class TcpCluster:
    """A scheduler and some workers, each a process of its own, as on several machines."""

    def __init__(
        self, workers: int = 2, *, preload: Path | None = None, allowed_failures: int = 3
    ) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.count = workers
        self.preload = preload  # a Python file that workers run first
        self.allowed_failures = allowed_failures  # workers that may die of the same task
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> TcpCluster:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        host = ["--host", "127.0.0.1"]
        self._run("scheduler", *host, "--port", str(self.port), "--no-dashboard")
        for _ in range(self.count):
            self.add_worker()

    def add_worker(self, preload: Path | None = None) -> None:
        options = ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        if chosen := preload or self.preload:
            options += ["--preload", str(chosen)]
        self._run("worker", self.address, *options, "--memory-limit", "0")

    def _run(self, *command: str) -> None:
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self.allowed_failures),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)

    def stop(self) -> None:
        with ExitStack() as stack:
            for process in self.processes:
                stack.callback(process.wait)
                with suppress(OSError):
                    process.kill()
        self.processes = []

    def kill_worker(self) -> None:
        """Kill the worker that was started last, and start another one."""
        process = self.processes.pop()
        process.kill()
        process.wait()
        self.add_worker()

    def kill_workers(self) -> None:
        """Kill all workers; the scheduler stays."""
        scheduler, *workers = self.processes
        for process in workers:
            process.kill()
            process.wait()
        self.processes = [scheduler]

    def pause(self) -> None:
        """Let the scheduler answer nothing, but keep its connections."""
        self.processes[0].send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the scheduler go on after `pause`."""
        self.processes[0].send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Kill everything, and start it again at the same address."""
        self.stop()
        self.start()
