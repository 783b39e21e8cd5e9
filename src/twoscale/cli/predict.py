"""The command that predicts fields from file to file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from twoscale.cli import options
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    import numpy as np

    from twoscale.cli.trust import PartTrust, PredictionTrust, TrustRequest
    from twoscale.cluster import DaskWorkers
    from twoscale.data import Reading
    from twoscale.domain.space import Space
    from twoscale.surrogate import Surrogate


def predict(
    run: options.SavedRun,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the result goes: a new npy file.")
    ],
    inputs: Annotated[
        Path | None,
        typer.Argument(
            metavar="INPUT",
            help="Input fields: a dataset, or any file or folder that 'twoscale import' reads. In "
            "an npy file the axis of a single sample or channel may be missing. Not needed if the "
            "surrogate reads parameters only.",
        ),
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|KEY[,KEY...]",
            help="Parameters (samples, P), if the surrogate reads them: an npy file, or names of "
            "arrays in INPUT.",
        ),
    ] = None,
    assess: Annotated[
        bool,
        typer.Option(
            "--assess",
            help="Write how wrong each field can be to a JSON file beside --out: the radius of its "
            "relative L2 error, and whether its input is unlike the training inputs.",
        ),
    ] = False,
    level: Annotated[
        float | None,
        typer.Option(
            metavar="L",
            help="Share of inputs that radii hold for, with --assess; 0.95 by default.",
        ),
    ] = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Write proven bounds of each field's error to a JSON file beside --out. The "
            "problem must be known, such as darcy or poisson.",
        ),
    ] = False,
    polish: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Improve each field by K steps of the equation's solver. Implies --certify.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Polish each field until its relative error is proven to be at most T; with "
            "--polish, for at most K steps. Implies --certify.",
        ),
    ] = None,
    resample: options.Resample = False,
    *,
    layout: options.InputLayout,
    scheduler: options.Scheduler = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Predict solution fields from the inputs in a file, a part at a time.

    A run remembers the names and axes of the arrays it was fitted on: files of the same layout need
    no options. The result has the axes of the training outputs. Polished fields are in float64.

    \b
    Examples:
      twoscale predict runs/a input.npy --out prediction.npy
      twoscale predict runs/b --parameters parameters.npy --out prediction.npy
    """
    from twoscale.cli.display import print_outcome
    from twoscale.cli.paths import PAIRS, SAVED, expect
    from twoscale.cli.trust import TrustRequest, check_beside
    from twoscale.cli.workers import workers_at
    from twoscale.data.kinds import ContentKind
    from twoscale.files import check_target
    from twoscale.surrogate import Surrogate
    from twoscale.surrogate.options import shared_device
    from twoscale.trust import LEVEL

    expect(SAVED, run)
    expect(PAIRS, inputs)
    surrogate = Surrogate.load(run, device=shared_device(scheduler, device))
    check_target(out, overwrite=overwrite)
    if level is not None and not assess:
        raise TwoscaleError("--level is that of radii: pass --assess as well")
    share = (LEVEL if level is None else level) if assess else None
    asked = TrustRequest(surrogate, share, certify, polish, tolerance)
    beside = check_beside(out, writes=asked.writes, overwrite=overwrite)
    names_file = parameters and (parameters.endswith(".npy") or os.path.lexists(parameters))
    scalar_file = Path(parameters) if parameters and names_file else None
    expect((ContentKind.NPY,), scalar_file, or_else=(ContentKind.FILE,))
    reading = layout.reading(parameters=options.keys(None if scalar_file else parameters))
    arrays = _read(surrogate, run, inputs, scalar_file, reading, resample=resample)
    with workers_at(scheduler) as workers:
        shape, trust = _write(
            arrays, asked, (beside, out), resample=resample, overwrite=overwrite, workers=workers
        )
    content = {"samples": arrays.samples, "shape": list(shape), **trust.summary()}
    print_outcome(f"{arrays.samples} fields in {out}", out, content, json=json)
    if not json:
        trust.show()


class _InputArrays(NamedTuple):
    """Inputs of a prediction, with an axis of samples, and whether they came without one."""

    fields: Any
    scalars: np.ndarray | None
    single: bool = False

    @property
    def samples(self) -> int:
        array = self.scalars if self.fields is None else self.fields
        return len(array) if array is not None and array.ndim else 0


def _read(
    surrogate: Surrogate,
    run: Path,
    inputs: Path | None,
    scalar_file: Path | None,
    asked: Reading,
    *,
    resample: bool,
) -> _InputArrays:
    """Return what the files hold that a surrogate predicts from."""
    from twoscale.data import Reading
    from twoscale.files.npy import open_npy
    from twoscale.surrogate.prediction import with_samples_axis

    space = surrogate.input_space_
    scalars = None if scalar_file is None else open_npy(scalar_file)
    if inputs is not None and (inputs.suffix != ".npy" or asked != Reading()):
        return _read_arrays(space, run, inputs, scalars, asked)
    for what, array, needed in (
        ("input fields", inputs, space.channels),
        ("--parameters", scalars, space.parameters),
    ):
        if (array is None) is bool(needed):
            advice = f"give {what}, such as an npy file" if needed else f"drop {what}"
            raise TwoscaleError(f"this surrogate reads {space.contents}: {advice}")
    fields = None if inputs is None else open_npy(inputs)
    rank = surrogate.ranks_[0]
    return _InputArrays(*with_samples_axis(fields, scalars, space, any_grid=resample, rank=rank))


def _read_arrays(
    space: Space, run: Path, inputs: Path, scalars: np.ndarray | None, asked: Reading
) -> _InputArrays:
    """Return the input fields and the parameters that a dataset or a file of arrays holds."""
    from twoscale.data import open_data
    from twoscale.data.direct import dataset_inputs, file_inputs, is_stored
    from twoscale.run.folder import recorded_reading

    reads_fields = space.channels > 0
    if is_stored(inputs):
        fields, own = dataset_inputs(open_data(inputs, asked), fields=reads_fields)
        own = own if space.parameters else None
        return _InputArrays(fields, own if scalars is None else scalars)
    reading = recorded_reading(run).for_other(asked)
    if scalars is not None or not space.parameters:
        reading = replace(reading, parameters=())
    elif not reading.parameters:
        raise TwoscaleError(
            f"this surrogate reads {space.parameters} parameters of each sample: name their arrays "
            f"in {inputs} with --parameters, or give an npy file"
        )
    if not reads_fields:
        reading = replace(reading, inputs=())
    fields, own = file_inputs(inputs, reading, fields=reads_fields)
    return _InputArrays(fields, own if scalars is None else scalars)


def _write(
    arrays: _InputArrays,
    asked: TrustRequest,
    places: tuple[Path, Path],
    *,
    resample: bool,
    overwrite: bool,
    workers: DaskWorkers | None,
) -> tuple[tuple[int, ...], PredictionTrust]:
    """Write predicted fields to the second place, and numbers to the first if any are asked for.

    The fields' shape is returned, and what is known of them. Numbers are moved to their place
    first, so that fields never lie there without theirs.
    """
    import numpy as np

    from twoscale.cli.display import progress_bar
    from twoscale.cli.trust import PredictionTrust
    from twoscale.fields.samples import sample_shape
    from twoscale.files import write_json
    from twoscale.files.outputs import atomic_files
    from twoscale.surrogate.prediction import predicted_space

    fields, scalars, single = arrays
    surrogate = asked.surrogate
    spaces = (surrogate.input_space_, surrogate.output_space_)
    space = predicted_space(spaces, None if fields is None else fields.shape, resample=resample)
    shape = sample_shape(space, surrogate.ranks_[1])
    written = shape if single else (arrays.samples, *shape)
    number = "<f8" if asked.polishes else "<f4"
    parts, done = [], 0
    with (
        atomic_files(*places[not asked.writes :], overwrite=overwrite) as prepared,
        progress_bar() as progress,
        prepared[-1].open("wb") as stream,  # not mapped: a full disk would then end the process
    ):
        header: dict[str, Any] = {"descr": number, "fortran_order": False, "shape": written}
        np.lib.format.write_array_header_1_0(stream, header)
        given = surrogate.input_parts(fields, parameters=scalars, resample=resample)
        for predicted, found in _predicted(asked, (one for _, one in given), workers):
            stream.write(np.ascontiguousarray(predicted, dtype=number).data)
            parts.append(found)
            done += len(predicted)
            progress("fields", done, arrays.samples, "")
        trust = PredictionTrust(asked, parts, places[0])
        if asked.writes:
            write_json(prepared[0], trust.record())
    return written, trust


def _predicted(
    asked: TrustRequest, parts: Iterator[dict[str, Any]], workers: DaskWorkers | None
) -> Iterator[tuple[np.ndarray, PartTrust]]:
    """Yield the fields of all parts in their order; workers predict all but the first one."""
    yield from (asked.predict(first, compares=True) for first in islice(parts, 1))
    yield from (map if workers is None else workers.each)(asked.predict, parts)
