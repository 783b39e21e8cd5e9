"""Charts of study records, chosen by the name of their kind."""

from twoscale_lab.report.charts.error_time import error_time_chart
from twoscale_lab.report.charts.kinds import KINDS, Kind, draw, drawn_numbers

__all__ = ["KINDS", "Kind", "draw", "drawn_numbers", "error_time_chart"]
