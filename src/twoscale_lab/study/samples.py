"""The fields in a study's pictures: one test field, its predictions, spectra and densities."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.data import Dataset
from twoscale.data.readers.npz import open_npz
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.files import atomic_output, open_file
from twoscale.math.measures import median_sample
from twoscale.math.spectra import radial_spectrum
from twoscale.methods.roles import PLAIN_PATCHES
from twoscale.run import Run
from twoscale.run.pairs import loaded_pairs
from twoscale_lab.study.cells import Cell, Data
from twoscale_lab.study.definition import Study
from twoscale_lab.study.folder import StudyFolder, read_record

Fields = dict[str, np.ndarray]

_LARGEST = 10**9  # bytes of all arrays; those of a study of the paper have 10**7
_NUMBERS = "biuf"  # kinds of arrays: booleans, whole numbers, floats


def read_fields(file: Path) -> Fields:
    """Return the fields in a file, an empty mapping if there is no file."""
    if not file.exists():
        return {}
    open_file(file).close()  # raises for a folder or a pipe
    try:
        with open_npz(file) as stored:
            members = stored.archive.infolist()
            if sum(member.file_size for member in members) > _LARGEST:  # before unpacking
                raise ValueError("it is too large")
            fields = {name: stored.values(name) for name in stored.names()}
            if len(fields) < len(members):
                raise ValueError("it holds something else than arrays")
        for name, values in fields.items():
            _check(name, values)
    except Exception as error:  # on broken files NumPy and zipfile raise many kinds of errors
        raise TwoscaleError(f"{file} is damaged: remove it and run the study again") from error
    return fields


def _check(name: str, values: np.ndarray) -> None:
    """Raise unless `values` are numbers; the array of a sample is one finite number."""
    if values.dtype.kind not in _NUMBERS:
        raise TypeError(f"{name} is no array of numbers")
    if name.endswith("/sample") and not (values.size == 1 and math.isfinite(values.item())):
        raise ValueError(f"{name} is not one number")


def write_field_file(file: Path, fields: Fields) -> None:
    """Write the fields of a study in one step."""
    with atomic_output(file, overwrite=True) as prepared, prepared.open("wb") as stream:
        np.savez_compressed(stream, **fields)  # type: ignore[arg-type]


_SEED = 0
_KIND = "qualitative"  # of the figures that show fields
_BINS = 80
_CHUNK = 100  # fields whose spectra are taken together


def write_fields(
    folder: StudyFolder,
    study: Study,
    cells: Sequence[Cell],
    *,
    fresh: Collection[str],
    open_data: Callable[[Data], Dataset],
    device: str,
) -> None:
    """Write the study's fields: one test field of each place it draws, and its predictions.

    A place is a problem and a resolution. Only predictions with seed 0 are shown. If a run folder
    is gone, its old fields are kept, or those of another study are used. `fresh` holds the keys of
    the cells that were just run; if no run is new, nothing is written.
    """
    file = folder.fields(study.name)
    drawn = {figure.options.get("place") for figure in study.figures if figure.kind == _KIND}
    places: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.seed == _SEED and _place(cell) in drawn:
            places.setdefault(_place(cell), []).append(cell)
    own = read_fields(file)
    runs = {
        place: [cell for cell in some if folder.has_run(cell)] for place, some in places.items()
    }
    changed = {
        place
        for place, here in runs.items()
        if any(_name(cell) not in own or cell.key in fresh for cell in here)
    }
    old = own | (_from_other_studies(file, own, places) if changed else {})
    fields: Fields = {}
    for place, some in places.items():
        if place in changed:
            fields |= _at_place(place, some, runs[place], folder, open_data, old, device)
        else:
            fields |= _old_fields(old, place, some)
    if changed:
        write_field_file(file, fields)


def _at_place(
    place: str,
    cells: Sequence[Cell],
    here: Sequence[Cell],
    folder: StudyFolder,
    open_data: Callable[[Data], Dataset],
    old: Fields,
    device: str,
) -> Fields:
    """Return the fields of one place; cells that are not `here` keep their old ones.

    Of several channels the first is shown.
    """
    first = _reference(cells)
    runs = {cell.key: Run.open(folder.cell(cell), device=device) for cell in here}
    test = sorted(next(iter(runs.values())).test_samples)
    dataset = open_data(cells[0].data)
    where = next(iter(runs.values())).surrogate.device
    given, true = loaded_pairs(dataset, test).tensors()
    inputs, truth = given.to(where), true.to(where)
    gone = any(_name(cell) in old and cell.key not in runs for cell in cells)
    shown = int(old.get(f"{place}/sample", -1))
    if shown in test and (gone or first.key not in runs):
        sample = test.index(shown)  # the pictures that are kept show it
    else:
        chooser = runs.get(first.key, runs[here[0].key])
        sample = median_sample(chooser.surrogate.predict_batch(inputs), truth)
    fields = _old_fields(old, place, cells) if shown == test[sample] else {}
    fields[f"{place}/sample"] = np.array(test[sample])
    fields[f"{place}/input"] = inputs.fields[sample, 0].cpu().numpy()
    fields[f"{place}/truth"] = truth[sample, 0].cpu().numpy()
    edges = fields[f"{place}/density/edges"] = _edges(truth[:, 0])
    fields |= _statistics(place, "truth", truth[:, 0], edges)
    for cell in here:
        predicted = runs[cell.key].surrogate.predict_batch(inputs)
        fields[_name(cell)] = predicted[sample, 0].cpu().numpy()
        fields |= _statistics(place, cell.case.id, predicted[:, 0], edges)
    return fields


def _from_other_studies(file: Path, own: Fields, places: Mapping[str, Sequence[Cell]]) -> Fields:
    """Return the fields that other studies have of the same cells and the same sample.

    A place's sample is the study's own, or else that of the first study with such a cell.
    """
    found: Fields = {}
    for other in sorted(file.parent.glob("*.npz")):
        record = other.with_suffix(".json")
        if other == file or not record.exists():
            continue
        try:
            theirs = read_fields(other)
        except TwoscaleError:  # reported where that study is run
            continue
        keys = {cell["key"] for cell in read_record(record)["cells"]}
        for place, cells in places.items():
            sample = theirs.get(f"{place}/sample")
            chosen = (own | found).get(f"{place}/sample", sample)
            shared = [cell for cell in cells if cell.key in keys and _name(cell) in theirs]
            if shared and sample is not None and sample == chosen:
                found = _old_fields(theirs, place, shared) | found
    return {name: values for name, values in found.items() if name not in own}


def _old_fields(old: Fields, place: str, cells: Sequence[Cell]) -> Fields:
    """Return the old fields of one place, without cases that the study no longer has."""
    common = ("sample", "input", "truth", "density/edges", "spectrum/truth", "density/truth")
    names = [
        f"{kind}/{cell.case.id}" for kind in ("prediction", "spectrum", "density") for cell in cells
    ]
    wanted = {f"{place}/{name}" for name in (*common, *names)}
    return {name: values for name, values in old.items() if name in wanted}


def _reference(cells: Sequence[Cell]) -> Cell:
    """Return the cell whose median error chooses the sample: plain patches, else the first."""
    plain = [
        cell for cell in cells if cell.case.method == PLAIN_PATCHES and not cell.case.objective
    ]
    defaults = [cell for cell in plain if not cell.case.settings and cell.case.training is None]
    return (defaults or plain or cells)[0]


def _statistics(place: str, name: str, fields: Tensor, edges: np.ndarray) -> Fields:
    """Return mean radial spectrum and density of values of fields (batch, height, width)."""
    total: Any = 0.0
    for part in slices(len(fields), _CHUNK):
        total = total + radial_spectrum(fields[part, None].double())[:, 0].sum(0)
    counts = torch.histc(fields, len(edges) - 1, float(edges[0]), float(edges[-1])).cpu().double()
    return {
        f"{place}/spectrum/{name}": (total / len(fields)).cpu().numpy(),
        f"{place}/density/{name}": (counts / counts.sum()).numpy() / np.diff(edges),
    }


def _edges(truth: Tensor) -> np.ndarray:
    low, high = float(truth.min()), float(truth.max())
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _place(cell: Cell) -> str:
    return f"{cell.case.problem}-{cell.case.resolution}"


def _name(cell: Cell) -> str:
    return f"{_place(cell)}/prediction/{cell.case.id}"
