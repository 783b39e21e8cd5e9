"""Datasets on disk: written, read, imported, checked, split."""

from twoscale.data.check import Finding, check_dataset
from twoscale.data.generation import generate
from twoscale.data.importing import import_fields
from twoscale.data.split import Shares, Split, split_samples
from twoscale.data.store import Dataset

__all__ = [
    "Dataset",
    "Finding",
    "Shares",
    "Split",
    "check_dataset",
    "generate",
    "import_fields",
    "split_samples",
]
