"""Datasets, runs, studies and files that trials start from: each is made once, when first asked."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from faults.children import Child
from faults.contents import copy
from faults.operations import read_log, watch

TINY_STUDY = """
title: Tiny
question: Does the machinery work?
seeds: [0]
resolution: 16
samples: 60
protocol: &protocol
  settings:
    local: {epochs: 2, patches: 2}
    two-scale: {epochs: 2, patches: 2, coarse_components: 3}
  finetuning: {epochs: 2, warm_up: 0, ramp: 1}
cases:
  - {method: local}
  - {method: two-scale, objective: [null, A1]}
small:
  resolution: {16: 8}
  samples: 50
  seeds: [0]
  protocol: *protocol
tables: [{name: all, title: All, columns: [mre]}]
figures: [{kind: qualitative, place: poisson-16}]
"""

GENERATE = ("generate", "poisson", "--resolution", "16", "--samples", "60")
FIT = ("--method", "local", "--set", "patches=2", "--set", "epochs=2")
IMPORT = ("--input", "a,b", "--parameters", "p", "--output", "u,v", "--periodic", "both")
SMALL_DEMO = (
    *("--resolution", "16", "--samples", "200"),
    *("--budget", "1s", "--epochs", "1"),
)
TUNE = ("--objective", "A1", "--epochs", "2", "--warm-up", "0", "--ramp", "1")

_COMMANDS: dict[str, tuple[str, ...]] = {
    "data.zarr": GENERATE,
    "other.zarr": ("generate", "poisson", "--resolution", "16", "--samples", "50", "--seed", "7"),
    "small-run": ("fit", "data.zarr", *FIT),
    "mixed.zarr": ("import", "mixed.npz", *IMPORT),
    "mixed-run": ("fit", "mixed.zarr", *FIT),
    "other-run": ("fit", "data.zarr", "--method", "global", "--set", "epochs=1", "--seed", "1"),
    "searched": ("fit", "data.zarr", "--budget", "1s"),
    "tuned": ("finetune", "small-run", *TUNE),
    "prediction.npy": ("predict", "other-run", "inputs.npy"),
    "small-study": ("study", "run", "tiny.yaml", "--scale", "small"),
    "page.html": ("study", "report", "small-study"),
    "small-demo": ("demo", *SMALL_DEMO, "--seed", "1"),
}


class Undisturbed(Exception):
    """A command that fails although nothing was done to it, in a sentence."""


class Templates:
    """A folder of templates, shared by processes; a lock lets one of them make what is missing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> Path:
        """Return the template of a name, made if need be."""
        path = self.root / name
        done = self.root / f"{name}.made"
        if not done.exists():
            with self.locked():
                if not done.exists():
                    self._make(name)
                    done.touch()
        return path

    def remembered(self, name: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return facts that are found once and kept."""
        file = self.root / f"{name}.facts"
        if not file.exists():
            with self.locked():
                if not file.exists():
                    found = find()
                    file.with_suffix(".unfinished").write_text(json.dumps(found))
                    file.with_suffix(".unfinished").rename(file)
        return json.loads(file.read_text())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process make templates; the same process may be inside already."""
        if getattr(self, "_inside", False):
            yield
            return
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            os.close(descriptor)

    def _make(self, name: str) -> None:
        if name in _FILES:
            _FILES[name](self, self.root / name)
            return
        arguments = _COMMANDS[name]
        for word in arguments:
            if word in _COMMANDS or word in _FILES:
                self.get(word)
        outcome = Child([*arguments, "--out", name], self.root, self.root / f"{name}.log").wait()
        if outcome.status:
            raise Undisturbed(f"undisturbed, {outcome.command} fails: {outcome.err.strip()}")


def _fields(seed: int, samples: int = 12) -> np.ndarray:
    """Return smooth fields (samples, 16, 16)."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((samples, 16, 16)).cumsum(1).cumsum(2)


def _npy(seed: int, samples: int) -> Callable[[Templates, Path], None]:
    return lambda templates, path: np.save(path, _fields(seed, samples).astype(np.float32))


def _npz(templates: Templates, path: Path) -> None:
    np.savez(path, a=_fields(1), u=_fields(2))


def _mixed(templates: Templates, path: Path) -> None:
    """Make two channels on each side, on different grids, and two parameters of each sample."""
    fields = {name: _fields(seed, 40) for seed, name in enumerate("abuv")}
    fields["u"], fields["v"] = fields["u"][:, 1:, 2:], 1e5 * fields["v"][:, 1:, 2:]
    np.savez(path, **fields, p=fields["a"][:, 0, :2])


def _hdf5(templates: Templates, path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["a"], file["u"] = _fields(1), _fields(2)


def _mat(templates: Templates, path: Path) -> None:
    from scipy.io import savemat

    savemat(path, {"a": _fields(1), "u": _fields(2)})


def _runs(templates: Templates, path: Path) -> None:
    """Make a folder of two runs, as `fit --seeds` leaves it."""
    path.mkdir()
    for seed in (0, 1):
        copy(templates.get("other-run"), path / f"seed-{seed}")


def _interrupted(arguments: tuple[str, ...], after: str) -> Callable[[Templates, Path], None]:
    """Return what makes a folder with the state that a killed command leaves.

    It is killed right after one of the operations whose description holds the words `after`.
    """

    def make(templates: Templates, path: Path) -> None:
        whole, log = path.with_suffix(".whole"), path.with_suffix(".operations")
        for folder in (whole, path):
            folder.mkdir()
            for word in arguments:
                if word in _COMMANDS:
                    (folder / word).symlink_to(templates.get(word))
        _run_watched(arguments, whole, log)
        places = [number for number, line in enumerate(read_log(log), 1) if after in line]
        _run_watched(arguments, path, log, fatal=places[len(places) // 2] + 1)

    return make


def _run_watched(
    arguments: tuple[str, ...], folder: Path, log: Path, fatal: int | None = None
) -> None:
    def prepare() -> None:
        save_at_once()
        watch(log, fatal)()

    Child([*arguments, "--out", "result"], folder, log.with_suffix(".log"), prepare).wait()


def save_at_once() -> None:
    """Let this process save the state of its work at every opportunity, not after seconds."""
    from twoscale.files import checkpoints

    checkpoints._FIRST_SECONDS = checkpoints._SHARE_AT_RISK = 0.0
    checkpoints._COST_LIMIT = 0


_FILES: dict[str, Callable[[Templates, Path], object]] = {
    "inputs.npy": _npy(3, 5),
    "a.npy": _npy(1, 12),
    "u.npy": _npy(2, 12),
    "pairs.npz": _npz,
    "mixed.npz": _mixed,
    "mixed.npy": lambda templates, path: np.save(path, np.stack([_fields(1, 5), _fields(2, 5)], 1)),
    "p.npy": lambda templates, path: np.save(path, _fields(3, 5)[:, 0, :2]),
    "pairs.h5": _hdf5,
    "pairs.mat": _mat,
    "runs": _runs,
    "tiny.yaml": lambda templates, path: path.write_text(TINY_STUDY),
    "half-generated": _interrupted(GENERATE, "log.jsonl"),
    "half-fitted": _interrupted(("fit", "data.zarr", *FIT), "checkpoints"),
    "half-tuned": _interrupted(("finetune", "small-run", *TUNE), "checkpoints"),
}
