"""What well-known HDF5 files say about the axes of their arrays: PDEBench, The Well, labels.

PDEBench keeps the coordinates beside the arrays: `x-coordinate`, or `grid/x` in each sample's
group. The Well keeps scalars, vectors and tensors in the groups `t0_fields`, `t1_fields` and
`t2_fields`, with attributes that say whether an array varies with the sample and with time.
"""

from __future__ import annotations

from typing import Any

import h5py

from twoscale.data.readers.archive import Axes, StoredArray, merged_tail, repeated

_WELL_GROUPS = {"t0_fields": 0, "t1_fields": 1, "t2_fields": 2}
"""By group: how many axes of components follow those of the grid."""
_SCALARS = "scalars"
_GRID = ("height", "width")


def known_axes(file: Any, path: str, item: Any) -> Axes | None:
    """Return the names of an array's axes, where the file's layout tells them."""
    return _well_axes(file, path, item) or _pdebench_axes(file, path, item) or _labels(item)


def known_array(file: Any, path: str, array: StoredArray) -> StoredArray:
    """Return an array as `known_axes` names its axes: with samples, components as one axis."""
    group = path.strip("/").split("/")[0]
    if not _is_well(file) or group not in (*_WELL_GROUPS, _SCALARS):
        return array
    varies = bool(file[path].attrs.get("sample_varying", True))
    if _WELL_GROUPS.get(group, 0) > 1:
        array = merged_tail(array, _WELL_GROUPS[group])
    return array if varies else repeated(array, int(file.attrs["n_trajectories"]))


def periodic_axes(file: Any) -> tuple[bool, bool] | None:
    """Return which axes of the grid wrap by The Well's boundary conditions; None if unknown."""
    conditions = own(file, "boundary_conditions") if _is_well(file) else None
    if not isinstance(conditions, h5py.Group):
        return None
    names = _texts(file["dimensions"].attrs.get("spatial_dims", ()))
    wraps = set()
    for name in conditions:
        one = own(conditions, name)
        if one is not None and "PERIODIC" in _texts(one.attrs.get("bc_type", "")):
            wraps |= set(_texts(one.attrs.get("associated_dims", ())))
    return (names[0] in wraps, names[1] in wraps) if len(names) == 2 else None


def own(group: Any, name: str) -> Any:
    """Return what a group itself holds under a name, None if nothing; links are not followed."""
    links = group.id.links
    if not links.exists(name.encode()):
        return None
    is_hard = links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD
    return group[name] if is_hard else None


def _is_well(file: Any) -> bool:
    groups = (own(file, name) for name in ("t0_fields", "dimensions"))
    return all(isinstance(one, h5py.Group) for one in groups) and "n_trajectories" in file.attrs


def _well_axes(file: Any, path: str, item: Any) -> Axes | None:
    group = path.strip("/").split("/")[0]
    if not _is_well(file) or group not in (*_WELL_GROUPS, _SCALARS):
        return None
    time = ("time",) if item.attrs.get("time_varying", True) else ()
    if group == _SCALARS:
        return ("sample", *time)
    components = ("channel",) if _WELL_GROUPS[group] else ()
    grid = item.ndim - len(time) - _WELL_GROUPS[group] - bool(item.attrs.get("sample_varying", 1))
    return ("sample", *time, *_GRID[2 - grid :], *components) if 1 <= grid <= 2 else None


def _pdebench_axes(file: Any, path: str, item: Any) -> Axes | None:
    """Return the axes of an array whose grid is as large as the coordinates beside it."""
    beside = own(file[path].parent, "grid")
    front: Axes
    if isinstance(beside, h5py.Group):  # one group for each sample
        lengths, front, tail = _lengths(beside, "{}"), ("time",), 1
    else:
        lengths, front = _lengths(file, "{}-coordinate"), ("sample", "time")
        tail = int(item.ndim == len(lengths) + 3)
    kept = item.ndim - len(lengths) - tail
    if not 1 <= len(lengths) <= 2 or not 0 <= kept <= len(front):
        return None
    if item.shape[kept : kept + len(lengths)] != lengths:
        return None
    return (*front[:kept], *_GRID[2 - len(lengths) :], *(("channel",) * tail))


def _lengths(group: Any, name: str) -> tuple[int, ...]:
    """Return the numbers of coordinates x, y and z that a group holds."""
    coordinates = (own(group, name.format(axis)) for axis in "xyz")
    return tuple(
        one.shape[0] for one in coordinates if isinstance(one, h5py.Dataset) and one.ndim == 1
    )


def _labels(item: Any) -> Axes | None:
    """Return the labels or scales that HDF5 itself attaches to the axes, if all have one."""
    names = []
    for axis in item.dims:
        scales = [] if axis.label else axis.keys()
        names.append(axis.label or (scales[0].rsplit("/", 1)[-1] if scales else ""))
    return tuple(names) if names and all(names) else None


def _texts(value: Any) -> list[str]:
    """Return the texts of an attribute: one, or an array of them."""
    some = [value] if isinstance(value, str | bytes) else list(value)
    return [one.decode() if isinstance(one, bytes) else str(one) for one in some]
