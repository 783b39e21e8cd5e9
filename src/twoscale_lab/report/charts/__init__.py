"""Charts of study records, chosen by the name of their kind; importing them fills `KINDS`."""

from twoscale_lab.report.charts import bars, comparisons, fields, leaderboard, lines, points
from twoscale_lab.report.charts.cases import Chart
from twoscale_lab.report.charts.error_time import error_time_chart
from twoscale_lab.report.charts.kinds import KINDS, check_kind, draw

__all__ = [
    "KINDS",
    "Chart",
    "bars",
    "check_kind",
    "comparisons",
    "draw",
    "error_time_chart",
    "fields",
    "leaderboard",
    "lines",
    "points",
]
