"""Paths of a wrong kind: what they are, and which command takes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from twoscale.data.kinds import ContentKind as Kind
from twoscale.data.kinds import kind_of, runs_in
from twoscale.data.places import place_of
from twoscale.errors import TwoscaleError

_ARRAY_FILES = (Kind.NPY, Kind.NPZ, Kind.HDF5, Kind.MAT, Kind.NETCDF, Kind.TORCH, Kind.ZARR)
FOLDERS = (Kind.EMPTY, Kind.FOLDER)
ARRAYS = (*_ARRAY_FILES, *FOLDERS, Kind.FILE)
"""What may hold arrays: the readers say what is wrong with a folder or with an unknown file."""

PAIRS = (Kind.DATASET, *(kind for kind in ARRAYS if kind is not Kind.EMPTY))
"""What may hold pairs of fields."""

_NEXT = {
    Kind.DATASET: "fit it with 'twoscale fit {path} --out RUN'",
    Kind.RUN: "measure it with 'twoscale evaluate {path}', or predict with "
    "'twoscale predict {path} INPUT.npy --out PRED.npy'",
    Kind.SURROGATE: "predict with 'twoscale predict {path} INPUT.npy --out PRED.npy', or "
    "load it with Surrogate.load in Python",
    Kind.RUNS: "give one of them, such as {first}",
    Kind.STUDIES: "show it with 'twoscale study report {path}'",
    Kind.RECORDS: "show them with 'twoscale study report {path}'",
    Kind.DEMO: "its data are {path}/*.zarr, its runs {path}/runs/*",
    Kind.NPY: "fit it with 'twoscale fit {path} OUTPUT.npy --out RUN'",
    Kind.PAGE: "open it in a browser",
    Kind.YAML: "if it defines a study, run it with 'twoscale study run {path} --out DIR'",
}
_FIT = "fit it with 'twoscale fit {path} --input KEY --output KEY --out RUN'"
_OTHER = "choose another path"


RUN = (Kind.RUN,)
RUNS = (Kind.RUN, Kind.RUNS)
SAVED = (Kind.RUN, Kind.SURROGATE)
RECORDS = (Kind.STUDIES, Kind.RECORDS)


def expect(
    wanted: Collection[Kind], *paths: Path | None, or_else: Collection[Kind] = ()
) -> list[Kind | None]:
    """Return what is at each path that is given; raise if one is of none of the wanted kinds.

    What is not there, cannot be read, or is of the kinds `or_else`, is left to whoever opens it.
    """
    return [_expected(wanted, path, or_else) for path in paths if path is not None]


def _expected(wanted: Collection[Kind], path: Path, or_else: Collection[Kind]) -> Kind | None:
    found = kind_of(path)
    if found is None or found in wanted or found in or_else:
        return found
    advice = _NEXT.get(found, _FIT if found in _ARRAY_FILES else _OTHER)
    first = runs_in(path)[0] if found is Kind.RUNS else ""
    named = [kind.value for kind in wanted if kind not in ARRAYS]
    words = " or ".join([*named, "a file of arrays"] if {*wanted} & {*ARRAYS} else named)
    shown = place_of(path)
    raise TwoscaleError(
        f"{shown} is {found.value}, not {words}: {advice.format(path=shown, first=first)}"
    )
