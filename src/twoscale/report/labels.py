"""Names beside points, placed where they cover as little as possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Point = tuple[float, float]


def label_points(axis: Axes, points: Mapping[str, Point], *, others: Iterable[Point] = ()) -> None:
    """Write each point's name beside it, where it overlaps other points and names least.

    `others` are points without names, which are not to be covered either.
    Call it last: the limits of the axis must not change afterwards.
    """
    figure = axis.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    per_point = figure.dpi / 72
    pixels = {name: axis.transData.transform(point) for name, point in points.items()}
    everything = [*points.values(), *others]
    taken = [_Box(x - 6, y - 6, x + 6, y + 6) for x, y in map(axis.transData.transform, everything)]
    frame = _Box(*axis.bbox.extents)
    for name, (x, y) in pixels.items():
        width, height = 5.1 * per_point * len(name), 10 * per_point
        offsets = [(9, -3, 0.0), (-9, -3, 1.0), (0, 8, 0.5), (0, -14, 0.5)]
        offsets += [(9, 8, 0.0), (9, -14, 0.0), (-9, 8, 1.0), (-9, -14, 1.0)]
        offsets += [(0, 20, 0.5), (0, -26, 0.5), (9, 20, 0.0), (9, -26, 0.0)]
        boxes = [
            _Box.of(x + across * per_point - share * width, y + up * per_point, width, height)
            for across, up, share in offsets
        ]
        crowding = [
            sum(box.overlap(other) for other in taken) + box.outside(frame) for box in boxes
        ]
        best = int(np.argmin(crowding))
        across, up, share = offsets[best]
        taken.append(boxes[best])
        axis.annotate(
            name,
            points[name],
            (across, up),
            textcoords="offset points",
            ha=("left", "center", "right")[int(2 * share)],
            fontsize=9,
        )


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def of(cls, left: float, bottom: float, width: float, height: float) -> _Box:
        return cls(left, bottom, left + width, bottom + height)

    def overlap(self, other: _Box) -> float:
        """Return the area that two boxes share."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(wide, 0.0) * max(high, 0.0)

    def outside(self, frame: _Box) -> float:
        """Return the area that lies beyond a frame."""
        area = (self.right - self.left) * (self.top - self.bottom)
        return area - self.overlap(frame)
