"""Charts of study records, chosen by the name of their kind."""

from twoscale.report.charts.error_time import error_time_chart
from twoscale.report.charts.kinds import KINDS, Kind, draw

__all__ = ["KINDS", "Kind", "draw", "error_time_chart"]
