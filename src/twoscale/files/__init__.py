"""Files: read with care, written complete or not at all."""

from twoscale.files.outputs import Parents, beside, complete, put, remove, target
from twoscale.files.reading import read_json
from twoscale.files.writing import to_json, write_json

__all__ = [
    "Parents",
    "beside",
    "complete",
    "put",
    "read_json",
    "remove",
    "target",
    "to_json",
    "write_json",
]
