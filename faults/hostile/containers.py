"""Npz, HDF5 and MAT files: bombs, links out of the file, and random damage."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from faults.hostile.arrays import HEADERS, write_npy
from faults.hostile.reading import ODD, odd_file, read
from faults.trials import Place, Trial

_KEYS = ("--input", "a", "--output", "u", "--out", "result.zarr")
_FIELDS = np.ones((12, 16, 16), np.float32) * np.arange(12)[:, None, None]
_DAMAGED = 40  # randomly damaged files of each format


def _npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _npz(path: Path, *, first: bytes | None = None, name: str = "a.npy", **other: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, _npy_bytes(_FIELDS) if first is None else first)
        file.writestr("u.npy", _npy_bytes(_FIELDS))
        for key, content in other.items():
            file.writestr(key, content)


def _bomb(path: Path) -> None:
    """Write a small archive whose array takes 2 GiB."""
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (2**20, 16, 16)}
    np.lib.format.write_array_header_1_0(header, shape)
    block = bytes(2**24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name in ("a.npy", "u.npy"):
            with file.open(name, "w", force_zip64=True) as member:
                member.write(header.getvalue())
                for _ in range(2):  # of 128: the header promises what does not come
                    member.write(block)


def _lying_member(path: Path) -> None:
    write_npy(path, HEADERS["a huge size"])
    _npz(path, first=path.read_bytes())


def _cut(path: Path) -> None:
    _npz(path)
    path.write_bytes(path.read_bytes()[:-30])


NPZ: dict[str, Callable[[Path], object]] = {
    "a bomb": _bomb,
    "a member with a huge size": _lying_member,
    "a member that is no array": partial(_npz, first=b"not an array"),
    "a pickled member": partial(_npz, first=_npy_bytes(np.full(3, None))),
    "an empty member": partial(_npz, first=b""),
    "a member without its ending": partial(_npz, name="a"),
    "a member in a folder": partial(_npz, name="../a.npy"),
    "no end": _cut,
}


def _hdf5(fill: Callable[..., object]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            file["u"] = _FIELDS
            fill(file, path)

    return make


def _virtual(file: object, path: Path) -> None:
    import h5py

    layout = h5py.VirtualLayout(shape=_FIELDS.shape, dtype="f4")
    layout[:] = h5py.VirtualSource("no-such-file.h5", "a", shape=_FIELDS.shape)
    file.create_virtual_dataset("a", layout)  # type: ignore[attr-defined]


def _external(file: object, path: Path) -> None:
    secret = path.with_name("secret.bin")
    secret.write_bytes(_FIELDS.tobytes())
    where = [(str(secret), 0, _FIELDS.nbytes)]
    file.create_dataset("a", _FIELDS.shape, "f4", external=where)  # type: ignore[attr-defined]


def _link(kind: str, *target: str) -> Callable[..., None]:
    def fill(file: object, path: Path) -> None:
        import h5py

        file["a"] = getattr(h5py, kind)(*target)  # type: ignore[index]

    return fill


def _created(shape: tuple[int, ...], kind: object, **options: object) -> Callable[..., None]:
    def fill(file: object, path: Path) -> None:
        file.create_dataset("a", shape, kind, **options)  # type: ignore[attr-defined]

    return fill


HDF5: dict[str, Callable[[Path], object]] = {
    "a virtual array without its source": _hdf5(_virtual),
    "values in another file": _hdf5(_external),
    "a link to another file": _hdf5(_link("ExternalLink", "elsewhere.h5", "/a")),
    "a link to nothing": _hdf5(_link("SoftLink", "/nothing")),
    "a link to itself": _hdf5(_link("SoftLink", "/a")),
    "unwritten values": _hdf5(_created(_FIELDS.shape, "f4", chunks=(1, 16, 16))),
    "an unwritten array of a petabyte": _hdf5(_created((2**40, 16, 16), "f4", chunks=(1, 16, 16))),
    "a group": _hdf5(lambda file, path: file.create_group("a")),
    "texts": _hdf5(_created((12, 16, 16), "S8")),
    "records": _hdf5(_created((12, 16, 16), np.dtype([("x", "f4")]))),
    "no samples": _hdf5(_created((0, 16, 16), "f4")),
    "no shape": _hdf5(_created((), "f4")),
    "another shape": _hdf5(_created((12, 16, 17), "f4")),
}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield each hostile container, and containers with random damage."""
    groups = (("x.npz", NPZ), ("x.h5", HDF5))
    for name, makers in groups:
        for words, make in makers.items():
            yield Trial(f"import {name}: {words}", partial(_read, name, make, False))
    for name in ("x.npz", "x.h5", "x.mat"):
        for kind in ODD:
            words = f"import {name}: {kind}"
            yield Trial(words, partial(_read, name, partial(odd_file, kind), False))
        for _ in range(_DAMAGED):
            yield Trial(f"import {name}: random damage", partial(_damaged, name))
    yield Trial("import one npz twice", _twice)


def _read(name: str, make: Callable[[Path], object], harmless: bool, place: Place) -> str | None:
    words = ("import", name, *_KEYS)
    return read(lambda _: make(place.path / name), words, (), place, harmless=harmless)


def _damaged(name: str, place: Place) -> str | None:
    """Damage a proper file at random; what is read of it must be what was written, or refused."""
    content = bytearray(place.templates.get(f"pairs{name[1:]}").read_bytes())
    for _ in range(place.random.choice((1, 3, 30))):
        spot = place.random.randrange(min(len(content), place.random.choice((600, 10**9))))
        content[spot] = place.random.randrange(256)
    if place.random.random() < 0.2:
        del content[place.random.randrange(len(content)) :]
    return _read(name, lambda path: path.write_bytes(content), True, place)


def _twice(place: Place) -> str | None:
    words = ("import", "pairs.npz", "pairs.npz", "--out", "result.zarr")
    return read(lambda _: None, words, ("pairs.npz",), place, harmless=False)
