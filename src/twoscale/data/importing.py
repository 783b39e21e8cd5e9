"""People's own fields and parameters, from the files they have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twoscale.data.choosing import ROLES
from twoscale.data.description import describe
from twoscale.data.layouts import OpenedFields, open_fields
from twoscale.data.places import URL, place_of
from twoscale.data.readers.opening import expanded
from twoscale.data.reading import Reading
from twoscale.data.store import Dataset
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import users_rank
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.memory import require_memory
from twoscale.runtime.progress import Progress

Files = str | Path | Sequence[str | Path]


def import_fields(
    files: Files,
    path: str | Path,
    *,
    problem: Problem | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **how: Any,
) -> Dataset:
    """Write a dataset from files or folders of arrays.

    They may be npz, npy, HDF5, MAT, NetCDF, Zarr, .pt, PNG or TIFF. What could be read in two ways
    is refused, with the option that decides.

    Parameters
    ----------
    files
        One file or folder with all arrays, files of one array each, or files of the same arrays.
        Patterns such as `runs/*.h5` are allowed.
    problem
        The equation that the pairs solve, if it is a known one.
    how
        How the files are read, as the arguments of `Reading.of`. `inputs` and `outputs` name arrays
        (samples, height, width), (samples, channels, height, width) or (samples, length). Several
        are stacked as channels and named by their keys. Inputs and outputs may have different
        grids. Arrays of npy files have the files' names. Two files of one array each, without any
        names, are input and output. `parameters` names arrays (samples,) or (samples, parameters):
        scalars beside or instead of inputs. `axes`, `select` and `time` are the order of axes, the
        part of the samples, and the times. `periodic` says whether rows and columns wrap; by
        default as in the problem or file, or not at all.
    """
    if how.get("periodic") is None and problem is not None:
        how["periodic"] = problem.periodic
    places = file_list(files)
    with open_fields(places, Reading.of(**how)) as opened:
        layout = opened.layout()
        if problem is not None:
            problem.check_spaces(layout.input.space, layout.output.space)
        _require_room(places, opened, layout.chunk)
        description = describe(layout, problem, seed=None)
        description["reading"] = opened.reading.as_dict()
        with writing(path, description, overwrite=overwrite) as writer:
            for part in slices(layout.samples, writer.chunk):
                stacks = opened.stacks.items()
                writer.write(part.start, {role: stack.read(part) for role, stack in stacks})
                if progress:
                    progress("samples", part.stop, layout.samples, "")
            return writer.finish()


class FieldArrays(NamedTuple):
    """The arrays of some files in memory, float32; None for what was not asked for.

    Fields are (samples, height, width), (samples, channels, height, width) or (samples, length);
    parameters are (samples, parameters).
    """

    inputs: np.ndarray | None
    outputs: np.ndarray | None
    parameters: np.ndarray | None


def load_fields(files: Files, **how: Any) -> FieldArrays:
    """Return the arrays of files or folders, for `Surrogate.fit`.

    `how` is that of `import_fields`. With `outputs=()` only inputs and parameters are
    read, for `Surrogate.predict`.

    >>> import tempfile
    >>> pairs = Path(tempfile.mkdtemp()) / "pairs.npz"
    >>> np.savez(pairs, a=np.ones((30, 12, 16)), u=np.ones((30, 12, 16)))
    >>> x, u, _ = load_fields(pairs)
    >>> x.shape
    (30, 12, 16)
    """
    wanted = ("input", "parameters") if how.get("outputs") == () else ROLES
    places = file_list(files)
    with open_fields(places, Reading.of(**how), roles=wanted) as opened:
        _require_room(places, opened, opened.samples)
        loaded = {}
        for role, stack in opened.stacks.items():
            if stack.rank is None:
                loaded[role] = stack.scalars()
            else:
                loaded[role] = users_rank(stack.read(slice(0, stack.samples)), stack.rank)
    return FieldArrays(*(loaded.get(role) for role in ("input", "output", "parameters")))


def file_list(files: Files) -> list[Path]:
    """Return one file or several, patterns replaced by what they match."""
    given = [files] if isinstance(files, str | Path) else files
    for file in given:
        if isinstance(place := place_of(file), URL):
            raise TwoscaleError(
                f"{place} is on a storage service, from which only datasets are read: copy it "
                "here first, then import it"
            )
    return expanded(given)


def _require_room(places: Sequence[Path], opened: OpenedFields, samples: int) -> None:
    needed = sum(stack.part_bytes(samples) for stack in opened.stacks.values())
    require_memory(f"reading {places[0]} in parts", needed, "its fields are too large")
