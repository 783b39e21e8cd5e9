"""Charts of study records, chosen by the name of their kind; importing them fills `KINDS`."""

from twoscale_lab.report.charts import audits, bars, fields, leaderboard, lines, pairs, points
from twoscale_lab.report.charts.error_time import error_time_chart
from twoscale_lab.report.charts.kinds import KINDS, check_kind, draw
from twoscale_lab.report.charts.values import Chart, measured

__all__ = [
    "KINDS",
    "Chart",
    "audits",
    "bars",
    "check_kind",
    "draw",
    "error_time_chart",
    "fields",
    "leaderboard",
    "lines",
    "measured",
    "pairs",
    "points",
]
