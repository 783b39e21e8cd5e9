"""Surrogates as files that run without twoscale: one graph from input fields to solution fields."""

from twoscale.export.exporting import FORMATS, Exported, export_operator, format_of
from twoscale.export.metadata import describe

__all__ = ["FORMATS", "Exported", "describe", "export_operator", "format_of"]
