"""The command that predicts fields from file to file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from twoscale.cli import options
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    import numpy as np

    from twoscale.cli.trust import Assessor
    from twoscale.cluster import DaskWorkers
    from twoscale.data import Reading
    from twoscale.surrogate import Surrogate


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or saved surrogate.")],
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
    """
    from twoscale.cli.display import print_outcome
    from twoscale.cli.paths import PAIRS, expect_kind
    from twoscale.cli.trust import Assessor, check_beside
    from twoscale.cli.workers import workers_at
    from twoscale.data.kinds import ContentKind
    from twoscale.files import check_target
    from twoscale.surrogate import Surrogate
    from twoscale.surrogate.options import shared_device
    from twoscale.trust import LEVEL

    expect_kind(run, ContentKind.RUN, ContentKind.SURROGATE)
    if inputs is not None:
        expect_kind(inputs, *PAIRS)
    surrogate = Surrogate.load(run, device=shared_device(scheduler, device))
    check_target(out, overwrite=overwrite)
    if level is not None and not assess:
        raise TwoscaleError("--level is that of radii: pass --assess as well")
    share = (LEVEL if level is None else level) if assess else None
    assessor = Assessor(surrogate, share, certify, polish, tolerance)
    beside = check_beside(out, writes=assessor.writes, overwrite=overwrite)
    scalar_file = Path(parameters) if parameters and _is_file(parameters) else None
    if scalar_file is not None:
        expect_kind(scalar_file, ContentKind.NPY, or_else=(ContentKind.FILE,))
    asked = layout.reading(parameters=options.keys(None if scalar_file else parameters))
    given = _given(surrogate, run, inputs, scalar_file, asked, resample=resample)
    # Numbers are moved to their place first, so that fields never lie there without theirs.
    places = (beside, out) if assessor.writes else (out,)
    with workers_at(scheduler) as workers:
        shape = _write(
            given, assessor, places, resample=resample, overwrite=overwrite, workers=workers
        )
    content = {"samples": given.samples, "shape": list(shape), **assessor.summary(beside)}
    print_outcome(f"{given.samples} fields in {out}", out, content, json=json)
    if not json:
        assessor.show(beside)


class _Given(NamedTuple):
    """Inputs of a prediction, with an axis of samples, and whether they came without one."""

    fields: Any
    scalars: np.ndarray | None
    single: bool

    @property
    def samples(self) -> int:
        given = self.scalars if self.fields is None else self.fields
        return len(given) if given is not None and given.ndim else 0


def _given(
    surrogate: Surrogate,
    run: Path,
    inputs: Path | None,
    scalar_file: Path | None,
    asked: Reading,
    *,
    resample: bool,
) -> _Given:
    """Return what the files hold that a surrogate predicts from."""
    from twoscale.data import Reading
    from twoscale.files.npy import open_npy
    from twoscale.surrogate.inputs import with_samples_axis

    if inputs is not None and (inputs.suffix != ".npy" or asked != Reading()):
        return _Given(*_read_arrays(surrogate, run, inputs, scalar_file, asked), single=False)
    _check_given(surrogate, inputs, scalar_file)
    return _Given(
        *with_samples_axis(
            None if inputs is None else open_npy(inputs),
            None if scalar_file is None else open_npy(scalar_file),
            surrogate.input_space_,
            any_grid=resample,
            rank=surrogate.ranks_[0],
        )
    )


def _write(
    given: _Given,
    assessor: Assessor,
    places: Sequence[Path],
    *,
    resample: bool,
    overwrite: bool,
    workers: DaskWorkers | None,
) -> tuple[int, ...]:
    """Write the predicted fields to the last place, and numbers to the first; return the shape."""
    import numpy as np

    from twoscale.cli.display import progress_bar
    from twoscale.fields.samples import sample_shape
    from twoscale.files import write_json
    from twoscale.files.outputs import atomic_files
    from twoscale.surrogate.inputs import predicted_space

    fields, scalars, single = given
    surrogate = assessor.surrogate
    spaces = (surrogate.input_space_, surrogate.output_space_)
    space = predicted_space(spaces, None if fields is None else fields.shape, resample=resample)
    shape = sample_shape(space, surrogate.ranks_[1])
    written = shape if single else (given.samples, *shape)
    number = "<f8" if assessor.polishes else "<f4"
    with (
        atomic_files(*places, overwrite=overwrite) as prepared,
        progress_bar() as progress,
        prepared[-1].open("wb") as stream,  # not mapped: a full disk would then end the process
    ):
        header: dict[str, Any] = {"descr": number, "fortran_order": False, "shape": written}
        np.lib.format.write_array_header_1_0(stream, header)
        parts = surrogate.input_parts(fields, parameters=scalars, resample=resample)
        done = 0
        for predicted in _predicted(assessor, (one for _, one in parts), workers):
            stream.write(np.ascontiguousarray(predicted, dtype=number).data)
            done += len(predicted)
            progress("fields", done, given.samples, "")
        if assessor.writes:
            write_json(prepared[0], assessor.record())
    return written


def _predicted(
    assessor: Assessor, parts: Iterator[dict[str, Any]], workers: DaskWorkers | None
) -> Iterator[np.ndarray]:
    """Yield the fields of all parts in their order; workers predict all but the first one."""
    if workers is None:
        yield from map(assessor.predict, parts)
        return
    from twoscale.cli.trust import predicted_elsewhere

    yield from map(assessor.predict, islice(parts, 1))  # it has the table of two starts
    for fields, found in workers.each(partial(predicted_elsewhere, assessor.apart()), parts):
        assessor.take(found)
        yield fields


def _is_file(text: str) -> bool:
    """Say whether parameters are given as a file, not as names of arrays."""
    return text.endswith(".npy") or os.path.lexists(text)


def _read_arrays(
    surrogate: Surrogate, run: Path, inputs: Path, scalar_file: Path | None, asked: Reading
) -> tuple[Any, np.ndarray | None]:
    """Return the input fields and the parameters that a dataset or a file of arrays holds."""
    from twoscale.data import open_data
    from twoscale.data.direct import dataset_inputs, file_inputs, is_stored
    from twoscale.files.npy import open_npy
    from twoscale.run.folder import recorded_reading

    space = surrogate.input_space_
    if is_stored(inputs):
        stored = dataset_inputs(open_data(inputs, asked), fields=space.field_channels > 0)
        given = stored.parameters if space.parameters else None
        return stored.fields, given if scalar_file is None else open_npy(scalar_file)
    reading = recorded_reading(run).for_other(asked)
    if scalar_file is not None or not space.parameters:
        reading = replace(reading, parameters=())
    elif not reading.parameters:
        raise TwoscaleError(
            f"this surrogate reads {space.parameters} parameters of each sample: name their arrays "
            f"in {inputs} with --parameters, or give an npy file"
        )
    if not space.field_channels:
        reading = replace(reading, inputs=())
    stored = file_inputs(inputs, reading, fields=space.field_channels > 0)
    scalars = stored.parameters if scalar_file is None else open_npy(scalar_file)
    return stored.fields, scalars


def _check_given(surrogate: Surrogate, inputs: Path | None, parameters: Path | None) -> None:
    """Raise if a file is missing, or one too many."""
    space = surrogate.input_space_
    if inputs is None and space.field_channels:
        raise TwoscaleError(f"this surrogate reads input fields of {space}: give an npy file")
    if inputs is not None and not space.field_channels:
        raise TwoscaleError(
            f"this surrogate reads {space.parameters} parameters and no input fields: drop "
            f"{inputs}, and give --parameters"
        )
    if parameters is None and space.parameters:
        raise TwoscaleError(
            f"this surrogate reads {space.parameters} parameters of each sample: give an npy file "
            f"(samples, {space.parameters}) as --parameters"
        )
    if parameters is not None and not space.parameters:
        raise TwoscaleError("this surrogate reads no parameters: drop --parameters")
