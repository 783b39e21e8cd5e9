"""Saved runs that lie: manifests, weights, splits and metrics whose checksums fit the lie."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from faults.hostile.manifests import HARMLESS, LIES
from faults.hostile.mutations import mutate_file, put, sign
from faults.hostile.reading import ODD, odd_file, read
from faults.templates import TUNE
from faults.trials import Place, Trial
from twoscale.files.checksums import tensor_digests, write_sums

_NAME = "small-run"
_EVALUATE: tuple[str, ...] = ("evaluate", _NAME)
_PREDICT: tuple[str, ...] = ("predict", _NAME, "inputs.npy", "--out", "result.npy")
_TUNE: tuple[str, ...] = ("finetune", _NAME, *TUNE, "--out", "result")
_CHECK = ("check", _NAME)
_READERS = (_EVALUATE, _PREDICT, _TUNE, _CHECK)
_MUTATED = {
    "manifest.json": 90,
    "config.json": 30,
    "split.json": 30,
    "metrics.json": 30,
    "history.json": 10,
}

_HARMLESS = ("one tensor more",)

Tensors = dict[str, torch.Tensor]


def _each(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: change(tensor) for name, tensor in tensors.items()}


def _one(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Tensors]:
    def change_last(tensors: Tensors) -> Tensors:
        name = max(name for name in tensors if name.endswith("weight"))
        return tensors | {name: change(tensors[name])}

    return change_last


WEIGHTS: dict[str, Callable[[Tensors], Tensors]] = {
    "NaN in one number": _one(
        lambda tensor: (
            tensor.flatten()
            .put_(torch.tensor([0]), torch.tensor([torch.nan]))
            .reshape(tensor.shape)
        )
    ),
    "only NaN": _one(lambda tensor: tensor * torch.nan),
    "infinity": _one(lambda tensor: tensor * torch.inf),
    "a transposed matrix": _one(lambda tensor: tensor.mT.contiguous()),
    "a flat matrix": _one(torch.flatten),
    "an empty matrix": _one(lambda tensor: tensor[:0]),
    "a larger matrix": _one(lambda tensor: torch.zeros(4000, 4000)),
    "complex numbers": _one(lambda tensor: tensor.to(torch.complex64)),
    "no tensors": lambda tensors: {},
    "one tensor less": lambda tensors: dict(list(tensors.items())[1:]),
    "one tensor more": lambda tensors: tensors | {"a.stranger": torch.zeros(3)},
    "a huge header": lambda tensors: {f"t{k}": torch.zeros(1) for k in range(20000)},
}
HEADERS: dict[str, bytes] = {
    "a header of many exabytes": struct.pack("<Q", 2**63),
    "a header of a gigabyte": struct.pack("<Q", 2**30) + b"{}",
    "an empty header": struct.pack("<Q", 0),
    "a deep header": struct.pack("<Q", 10**6) + b"[" * 10**6,
    "offsets beyond the end": struct.pack("<Q", 70)
    + b'{"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}',
}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield runs that lie, by hand and at random, to all who read runs."""
    for words, change in WEIGHTS.items():
        for command in (_EVALUATE, _PREDICT):
            make = partial(_forge_weights, change)
            harmless = words in _HARMLESS
            yield Trial(f"{command[0]}: {words}", partial(_read, make, command, harmless))
    for words, header in HEADERS.items():
        make = partial(_raw_weights, header)
        yield Trial(f"evaluate: weights with {words}", partial(_read, make, _EVALUATE, False))
    for place, values in LIES.items():
        for value in values:
            shown = f"{place}={json.dumps(value)[:60]}"
            make = partial(_forge_entry, place, value)
            for command in (_PREDICT, _CHECK):
                read_it = partial(_read, make, command, (place, json.dumps(value)) in HARMLESS)
                yield Trial(f"{command[0]}: {shown}", read_it)
    for kind in ODD:
        for file in ("manifest.json", "weights.safetensors", "split.json", "SHA256SUMS"):
            make = partial(_odd, kind, file)
            words = f"evaluate: {kind} for {file}"
            yield Trial(words, partial(_read, make, _EVALUATE, False))
    for file, count in _MUTATED.items():
        for _ in range(count):
            command = choose.choice(_READERS)
            make = partial(_mutate, file)
            words = f"{command[0]}: a random value in {file}"
            yield Trial(words, partial(_read, make, command, True))


def _read(
    make: Callable[[Place, Path], None], words: tuple[str, ...], harmless: bool, place: Place
) -> str | None:
    needs = ("inputs.npy",) if words is _PREDICT else ()
    return read(lambda _: make(place, place.put(_NAME)), words, needs, place, harmless=harmless)


def _sign_run(run: Path, manifest: dict[str, Any]) -> None:
    sign(manifest)
    (run / "manifest.json").write_text(json.dumps(manifest))
    write_sums(run)


def _forge_weights(change: Callable[[Tensors], Tensors], place: Place, run: Path) -> None:
    tensors = change(load_file(run / "weights.safetensors"))
    save_file(tensors, run / "weights.safetensors")
    manifest = json.loads((run / "manifest.json").read_text())
    _sign_run(run, manifest | {"tensors": tensor_digests(tensors)})


def _forge_entry(entry: str, value: Any, place: Place, run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    put(manifest, entry, value)
    _sign_run(run, manifest)


def _raw_weights(content: bytes, place: Place, run: Path) -> None:
    (run / "weights.safetensors").write_bytes(content)
    write_sums(run)


def _odd(kind: str, name: str, place: Place, run: Path) -> None:
    odd_file(kind, run / name)


def _mutate(name: str, place: Place, run: Path) -> None:
    mutate_file(run / name, place.random)
    write_sums(run)
