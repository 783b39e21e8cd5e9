"""A small figure for tests of pages and files."""

from matplotlib.figure import Figure

from twoscale.report.axes import chart_style


@chart_style()
def bars(title, heights):
    """Draw one bar per method."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    axis = figure.subplots()
    axis.bar_label(axis.bar(list(heights), list(heights.values())), fmt="%.2g")
    axis.set(title=title, yscale="log")
    return figure
