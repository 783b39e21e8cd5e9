"""Pictures of one sample: truth, predictions and errors with seams, spectra, densities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.report.axes import log_axis, new_figure
from twoscale.report.field_pictures import draw_beside
from twoscale.report.method_looks import TRUTH, colour
from twoscale_lab.report.charts.cases import CaseValue, CaseValues, Chart, Style, styles
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.results import CaseResult, StudyResult

_SIDE, _SMALL_SIDE = 1.75, 1.4  # inches of one field, and of one among many
_MANY = 5  # columns
_LETTERS = 12  # of a title per inch
_ENERGY, _DENSITY = "energy at wave number", "density at value"


@chart_kind("One field", vector=False)
def qualitative(study: StudyResult, *, place: str | None = None) -> Chart:
    """One test field, chosen by the median error of Plain L2L. The first row shows the truth and
    the predictions. The second row shows the input and the errors on one colour scale, with the
    patch borders. Below are the spectra and densities of the whole test set.
    """
    where = place or next(iter(study.places), "")
    prediction = f"{where}/prediction/"
    cases = [case for case in study.places.get(where, []) if prediction + case.id in study.fields]
    if not cases:
        raise TwoscaleError(
            f"the record of {study.name} has no fields of {where or 'any case'}: "
            f"{study.record.with_suffix('.npz').name} holds them, run the study again"
        )
    truth = study.fields[f"{where}/truth"]
    columns = 1 + len(cases)
    side = _SIDE if columns <= _MANY else _SMALL_SIDE
    predictions = {
        fill(case.label, int(_LETTERS * side)): study.fields[prediction + case.id] for case in cases
    }
    seams = Grid(truth.shape).common_partition(tuple(cases[0].settings["patches"])).seams
    figure = new_figure(max(side * columns + 0.8, 8), 2 * side + 3.3)
    heights = [2 * side + 0.5, 2.8]
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    draw_beside(
        upper.subplots(2, columns, squeeze=False),
        truth,
        predictions,
        inputs=study.fields[f"{where}/input"],
        seams=seams,
    )
    left, right = lower.subplots(1, 2)
    everything: list[CaseResult | str] = [TRUTH, *cases]
    table = CaseValues(
        [row for case in everything for row in _curves(study, where, case)],
        "Means over the test set. The fields are in the record's .npz file.",
    )
    _draw_curves(left, right, table, styles(cases), study.fields[f"{where}/density/edges"])
    handles, labels = left.get_legend_handles_labels()
    lower.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))
    return Chart(figure, table)


def _curves(study: StudyResult, place: str, case: CaseResult | str) -> Iterator[CaseValue]:
    """Yield the spectrum and the density of a case or of the truth."""
    name = case if isinstance(case, str) else case.id
    edges = study.fields[f"{place}/density/edges"]
    spectrum = study.fields[f"{place}/spectrum/{name}"]
    density = study.fields[f"{place}/density/{name}"]
    for wave, energy in enumerate(spectrum[1:], 1):
        yield CaseValue(case, _ENERGY, float(energy), more={"at": wave})
    for at, share in zip((edges[1:] + edges[:-1]) / 2, density, strict=True):
        yield CaseValue(case, _DENSITY, float(share), more={"at": float(at)})


def _draw_curves(
    left: Axes, right: Axes, table: CaseValues, style: Mapping[str, Style], edges: np.ndarray
) -> None:
    """Draw all spectra on the left and all densities on the right."""
    for case in table.cases:
        look: dict[str, Any] = {"color": colour(TRUTH), "linewidth": 3, "alpha": 0.35}
        if isinstance(case, CaseResult):
            own = style[case.id]
            look = {"color": own.colour, "linestyle": own.line, "linewidth": 1.2}
        spectrum, density = (table.rows_of(case, name) for name in (_ENERGY, _DENSITY))
        waves = [float(row.more["at"]) for row in spectrum]
        label = case if isinstance(case, str) else case.label
        left.loglog(waves, [row.value for row in spectrum], label=label, **look)
        right.stairs([row.value for row in density], edges, **look)
    log_axis(left, "x", waves)
    left.set(xlabel="radial wave number", ylabel="mean energy")
    right.set(xlabel="value", ylabel="density", yscale="log")
