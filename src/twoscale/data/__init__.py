"""Datasets on disk: written, read, imported, checked, split."""

from twoscale.data.check import Finding, check_dataset
from twoscale.data.direct import FileDataset, open_data
from twoscale.data.generation import generate
from twoscale.data.importing import FieldArrays, import_fields, load_fields
from twoscale.data.reading import Reading
from twoscale.data.split import Shares, Split, split_samples
from twoscale.data.store import Dataset

__all__ = [
    "Dataset",
    "FieldArrays",
    "FileDataset",
    "Finding",
    "Reading",
    "Shares",
    "Split",
    "check_dataset",
    "generate",
    "import_fields",
    "load_fields",
    "open_data",
    "split_samples",
]
