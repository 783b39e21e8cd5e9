"""Files: read with care, written complete or not at all."""

from twoscale.files.npy import NpyHeader, open_npy, read_npy_header
from twoscale.files.outputs import Parents, beside, complete, put, remove, target
from twoscale.files.reading import (
    is_a,
    open_file,
    parse_json,
    parsing,
    read_bytes,
    read_json,
    read_text,
    unreadable,
)
from twoscale.files.writing import to_json, write_json

__all__ = [
    "NpyHeader",
    "Parents",
    "beside",
    "complete",
    "is_a",
    "open_file",
    "open_npy",
    "parse_json",
    "parsing",
    "put",
    "read_bytes",
    "read_json",
    "read_npy_header",
    "read_text",
    "remove",
    "target",
    "to_json",
    "unreadable",
    "write_json",
]
