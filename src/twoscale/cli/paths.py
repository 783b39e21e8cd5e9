"""Paths of a wrong kind: what they are, and which command takes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from twoscale.data.kinds import ContentKind, kind_of, runs_in
from twoscale.data.places import place_of
from twoscale.errors import TwoscaleError

_ARRAY_FILES = (
    ContentKind.NPY,
    ContentKind.NPZ,
    ContentKind.HDF5,
    ContentKind.MAT,
    ContentKind.NETCDF,
    ContentKind.TORCH,
    ContentKind.ZARR,
)
FOLDERS = (ContentKind.EMPTY, ContentKind.FOLDER)
ARRAYS = (*_ARRAY_FILES, *FOLDERS, ContentKind.FILE)
"""What may hold arrays: the readers say what is wrong with a folder or with an unknown file."""

PAIRS = (ContentKind.DATASET, *(kind for kind in ARRAYS if kind is not ContentKind.EMPTY))
"""What may hold pairs of fields."""

_NEXT = {
    ContentKind.DATASET: "fit it with 'twoscale fit {path} --out RUN'",
    ContentKind.RUN: "measure it with 'twoscale evaluate {path}', or predict with "
    "'twoscale predict {path} INPUT.npy --out PRED.npy'",
    ContentKind.SURROGATE: "predict with 'twoscale predict {path} INPUT.npy --out PRED.npy', or "
    "load it with Surrogate.load in Python",
    ContentKind.RUNS: "give one of them, such as {first}",
    ContentKind.STUDIES: "show it with 'twoscale study report {path}'",
    ContentKind.RECORDS: "show them with 'twoscale study report {path}'",
    ContentKind.DEMO: "its data are {path}/*.zarr, its runs {path}/runs/*",
    ContentKind.NPY: "fit it with 'twoscale fit {path} OUTPUT.npy --out RUN'",
    ContentKind.PAGE: "open it in a browser",
    ContentKind.YAML: "if it defines a study, run it with 'twoscale study run {path} --out DIR'",
}
_FIT = "fit it with 'twoscale fit {path} --input KEY --output KEY --out RUN'"
_OTHER = "choose another path"


RUN = (ContentKind.RUN,)
RUNS = (ContentKind.RUN, ContentKind.RUNS)
SAVED = (ContentKind.RUN, ContentKind.SURROGATE)
RECORDS = (ContentKind.STUDIES, ContentKind.RECORDS)


def expect(
    wanted: Collection[ContentKind], *paths: Path | None, or_else: Collection[ContentKind] = ()
) -> list[ContentKind | None]:
    """Return what is at each path that is given; raise if one is of none of the wanted kinds.

    What is not there, cannot be read, or is of the kinds `or_else`, is left to whoever opens it.
    """
    return [_expected(wanted, path, or_else) for path in paths if path is not None]


def _expected(
    wanted: Collection[ContentKind], path: Path, or_else: Collection[ContentKind]
) -> ContentKind | None:
    found = kind_of(path)
    if found is None or found in wanted or found in or_else:
        return found
    advice = _NEXT.get(found, _FIT if found in _ARRAY_FILES else _OTHER)
    first = runs_in(path)[0] if found is ContentKind.RUNS else ""
    named = [kind.value for kind in wanted if kind not in ARRAYS]
    words = " or ".join([*named, "a file of arrays"] if {*wanted} & {*ARRAYS} else named)
    shown = place_of(path)
    raise TwoscaleError(
        f"{shown} is {found.value}, not {words}: {advice.format(path=shown, first=first)}"
    )
