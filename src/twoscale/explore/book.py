"""Everything a page holds of its runs: models, samples, trust; and how large it may become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twoscale._version import __version__
from twoscale.explore.parts import NotInPage, describe_operator, stage_words
from twoscale.explore.samples import SampleBook, describe_inputs
from twoscale.explore.tensors import ArrayPacker, unpacked
from twoscale.explore.trust import describe_trust, solved_in_page
from twoscale.report.method_looks import method_title
from twoscale.run import Run
from twoscale.run.folder import tested_dataset
from twoscale.surrogate import Surrogate
from twoscale.trust import is_elliptic

MOST_BYTES = 9_500_000
"""Of the data in a page; code and styles add a tenth of a megabyte."""


def describe_runs(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Return the data of a page: runs by name, their samples and inputs."""
    pack = ArrayPacker()
    book = SampleBook(pack)
    inputs: dict[str, dict[str, Any]] = {}
    entries = []
    for name, run in runs.items():
        key = str(tested_dataset(run.config)["identity"])
        if key not in inputs:
            inputs[key] = describe_inputs(run, pack)
        entry = _entry(name, run, pack)
        entry |= {"inputs": list(inputs).index(key), "samples": book.of_run(run)}
        entries.append(entry)
    surrogates = [run.surrogate for run in runs.values()]
    weights = affordable_weights(surrogates, MOST_BYTES - pack.bytes)
    for entry, surrogate, (model, reason) in zip(entries, surrogates, weights, strict=True):
        entry |= {"model": model, "reason": reason}
        if model is None:
            entry["predictions"] = _stored(surrogate, entry["samples"], book, pack)
    return {
        "version": __version__,
        "runs": entries,
        "inputs": list(inputs.values()),
        "samples": book.samples,
    }


def _entry(name: str, run: Run, pack: ArrayPacker) -> dict[str, Any]:
    """Return what a page says of a run, without its weights."""
    surrogate = run.surrogate
    problem, space = surrogate.problem, surrogate.output_space_
    layout = surrogate.operator_.layout
    seams = layout.seams if layout is not None and layout.seams else None
    return {
        "name": name,
        "method": method_title(surrogate.method),
        "predictor": str(surrogate.settings.get("predictor", "")),
        "error": run.metrics.get("mean_relative_l2"),
        "problem": None if problem is None else problem.name,
        "solver": solved_in_page(problem) if is_elliptic(problem, space) else None,
        "output": {
            "shape": list(space.shape),
            "names": list(space.channel_names),
            "periodic": list(space.grid.periodic),
            "spacing": list(space.grid.spacing),
        },
        "seams": None if seams is None else {"rows": seams.rows, "columns": seams.columns},
        "stages": stage_words(surrogate.operator_.code_operator.outputs),
        "trust": describe_trust(surrogate, pack),
    }


def affordable_weights(
    surrogates: Sequence[Surrogate], room: int
) -> list[tuple[dict[str, Any] | None, str]]:
    """Return the weights of each run, or None with the reason why they are not in the page.

    They are in float32 if there is room for all of them, otherwise in float16. Runs whose weights
    still find no room, the largest first, are left to the server.
    """
    for small in (False, True):
        found = [_weights(surrogate, small=small) for surrogate in surrogates]
        if sum(size for *_, size in found) <= room:
            break
    while sum(size for *_, size in found) > room:
        largest = max(range(len(found)), key=lambda place: found[place][2])
        size = found[largest][2] / 1e6
        found[largest] = (None, f"its weights have {size:.0f} MB, which is too much for a page", 0)
    return [(content, reason) for content, reason, _ in found]


def _weights(surrogate: Surrogate, *, small: bool) -> tuple[dict[str, Any] | None, str, int]:
    """Return the weights of a run with their bytes, or None and why a page cannot compute it."""
    pack = ArrayPacker(small=small)
    try:
        content = describe_operator(surrogate.operator_, pack)
    except NotInPage as error:
        return None, str(error), 0
    return {**content, "small": small}, "", pack.bytes


def _stored(
    surrogate: Surrogate, places: list[int], book: SampleBook, pack: ArrayPacker
) -> dict[str, Any]:
    """Return the predictions of a run's own samples, for pages that cannot compute them."""
    found = {}
    for place in places:
        sample = book.samples[place]
        given = unpacked(sample["input"])[None] if surrogate.input_space_.channels else None
        scalars = [sample["parameters"]] if surrogate.input_space_.parameters else None
        predicted = surrogate.predict(given, parameters=scalars)
        found[str(place)] = pack(predicted.reshape(surrogate.output_space_.shape))
    return found
