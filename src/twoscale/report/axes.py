"""The style of all figures, their axes and legends, and names beside points."""

from __future__ import annotations

import colorsys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.representation import pca_stages
from twoscale.runtime.stages import STAGES

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
    from matplotlib.transforms import Bbox, BboxBase
except ImportError as error:
    raise missing_extra("matplotlib", "report") from error

matplotlib.use("Agg")

Point = tuple[float, float]

_PCA_LOOKS = (
    ("#0072B2", ""),
    ("#56B4E9", "////"),
    ("#E69F00", ""),
    ("#F0E442", "xxxx"),
    ("#009E73", "\\\\\\\\"),
    ("#D55E00", "----"),
    ("#CC79A7", "++++"),
    ("#BBBBBB", "||||"),
)
GREY, LEARNED, ERROR, ORACLE = "#555555", "#0072B2", "#D55E00", "#999999"
HALF = 4.5  # inches: half of a page, and all of a phone
_WIDTH, _HEIGHT = 3.4, 2.7  # inches of one panel
_AT_MOST = 3  # panels in a row
_RANGE = 2.5  # from here on an axis is logarithmic
_MANTISSAS = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3))  # of the numbers on a logarithmic axis
_LARGEST = 2000.0  # square inches of a figure: some 130 MB of pixels
_LETTER = 0.07  # inches of a letter in a legend
# Of a name from its point, in points, and the share of its width that is left of there.
_OFFSETS = [(9, -3, 0.0), (-9, -3, 1.0), (0, 8, 0.5), (0, -14, 0.5)]
_OFFSETS += [(9, 8, 0.0), (9, -14, 0.0), (-9, 8, 1.0), (-9, -14, 1.0)]
_OFFSETS += [(0, 20, 0.5), (0, -26, 0.5), (9, 20, 0.0), (9, -26, 0.0)]


@contextmanager
def chart_style() -> Iterator[None]:
    """Draw figures in the one style of all charts and pictures; also a decorator."""
    with matplotlib.rc_context(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.labelsize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": "#e4e7eb",
            "grid.linewidth": 0.7,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "hatch.linewidth": 0.7,
            "errorbar.capsize": 2.5,
            "lines.markersize": 6.5,
            "svg.hashsalt": "twoscale",
        }
    ):
        yield


def bar(colour: str, hatch: str) -> dict[str, Any]:
    """Return the options of a horizontal bar of a colour and hatch."""
    look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
    return look | {"height": 0.72, "ecolor": "#222222"}


def stage_look(name: str) -> tuple[str, str]:
    """Return the colour and hatch of a time: one of the PCA fit, or of another stage."""
    if name == "pca_fit":
        return _PCA_LOOKS[0]
    if (stage := STAGES.get(name.removeprefix("timings."))) is not None:
        return stage.colour, stage.hatch
    places = {one: place for place, one in enumerate(pca_stages())}
    return _PCA_LOOKS[places[name] % len(_PCA_LOOKS)] if name in places else (GREY, "")


def shade(colour: str, factor: float) -> str:
    """Return a colour with its lightness multiplied."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    return to_hex(colorsys.hls_to_rgb(hue, lightness * factor, saturation))


def lighten(colour: str, share: float) -> str:
    """Return a colour mixed with a share of white."""
    red, green, blue = ((1 - share) * part + share for part in to_rgb(colour))
    return to_hex((red, green, blue))


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, with small margins."""
    if width * height > _LARGEST:
        raise TwoscaleError(f"it would be {width:.0f} by {height:.0f} inches large")
    room = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    return Figure(figsize=(width, height), layout=room)


def one_panel(height: float) -> tuple[Figure, Axes]:
    """Return a figure that fits half of a page or a phone, and its only axis."""
    figure = new_figure(HALF, height)
    return figure, figure.subplots()


def label_width(labels: Collection[str]) -> float:
    """Return the inches that the longest of some labels takes."""
    return _LETTER * max(map(len, labels), default=0)


def panels(
    count: int,
    *,
    width: float = _WIDTH,
    height: float = _HEIGHT,
    columns: int = _AT_MOST,
    labels: Collection[str] = (),
    heights: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of some panels, a few in a row, and their axes.

    `width` and `height` are of one panel in inches; `labels` stand left or right of each row.
    `heights` gives each row of panels its own height.
    """
    across = min(count, columns)
    down = -(-count // across)
    heights = [height] * down if heights is None else heights
    figure = new_figure(width * across + label_width(labels) + 0.3, sum(heights) + 0.3)
    axes = list(figure.subplots(down, across, squeeze=False, height_ratios=heights).flat)
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def shared_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Draw one legend below all panels, in as many columns as there is room for."""
    entries: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= {
            label: handle
            for handle, label in zip(handles, labels, strict=True)
            if label not in entries
        }
    if entries:
        width = label_width(entries) + 0.55
        columns = max(1, min(len(entries), int(figure.get_figwidth() / width)))
        figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=columns
        )


def log_axis(axis: Axes, which: str, values: Sequence[float], *, most: int = 6) -> None:
    """Make an axis logarithmic, with at most `most` plain numbers on it.

    It stays linear if the largest value is less than 2.5 times the smallest.
    """
    positive = np.array([value for value in values if value > 0])
    line = getattr(axis, f"{which}axis")
    if not len(positive) or positive.max() < _RANGE * positive.min():
        line.set_major_locator(MaxNLocator(most))
        axis.ticklabel_format(axis="x" if which == "x" else "y", scilimits=(-3, 5))
        return
    getattr(axis, f"set_{which}scale")("log")
    decades = np.log10(positive.max() / positive.min())
    subs = next((k for k in _MANTISSAS if len(k) * decades < most), (1,))
    line.set_major_locator(LogLocator(subs=tuple(map(float, subs)), numticks=most + 1))
    line.set_major_formatter(FuncFormatter(_plain))
    line.set_minor_locator(NullLocator())


def ticks(axis: Axes, positions: Sequence[float], labels: Sequence[str]) -> None:
    """Put these ticks, and no others, on the horizontal axis."""
    axis.xaxis.set_major_locator(FixedLocator(list(positions)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda _, k: labels[k] if k is not None else ""))
    axis.xaxis.set_minor_locator(NullLocator())


def _plain(value: float, _: int) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:,.10g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other is below in both coordinates, from left to right.

    >>> pareto_front([(1, 3), (2, 2), (3, 3), (4, 1)])
    [(1, 3), (2, 2), (4, 1)]
    """
    best: list[Point] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def label_points(axis: Axes, points: Mapping[str, Point], *, others: Iterable[Point] = ()) -> None:
    """Write each point's name beside it, where it overlaps other points and names least.

    `others` are points without names, which are not to be covered either.
    Call it last: the limits of the axis must not change afterwards.
    """
    figure = axis.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    pixels = axis.transData.transform([*points.values(), *others])
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in pixels]
    for (name, point), (x, y) in zip(points.items(), pixels, strict=False):
        width, height = 5.1 * scale * len(name), 10 * scale
        boxes = [
            Bbox.from_bounds(x + across * scale - share * width, y + up * scale, width, height)
            for across, up, share in _OFFSETS
        ]
        crowding = [
            sum(_shared_area(box, other) for other in taken)
            + width * height
            - _shared_area(box, axis.bbox)
            for box in boxes
        ]
        best = int(np.argmin(crowding))
        across, up, share = _OFFSETS[best]
        taken.append(boxes[best])
        axis.annotate(
            name,
            point,
            (across, up),
            textcoords="offset points",
            ha=("left", "center", "right")[int(2 * share)],
            fontsize=9,
        )


def _shared_area(one: BboxBase, other: BboxBase) -> float:
    shared = Bbox.intersection(one, other)
    return 0.0 if shared is None else float(shared.width * shared.height)
