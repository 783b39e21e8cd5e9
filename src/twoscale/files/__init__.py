"""Files: read with care, written complete or not at all."""

from twoscale.files.checkpoints import Checkpoint, Checkpoints, State
from twoscale.files.checksums import (
    SUMS,
    check_file,
    content_digest,
    read_checked_json,
    read_sums,
    tensor_digest,
    tensor_digests,
    write_sums,
)
from twoscale.files.moves import flush, new_folder, remove
from twoscale.files.outputs import Output, atomic_output, check_target, claimed, is_file, told
from twoscale.files.reading import check_regular, read_json, read_text
from twoscale.files.work_folder import WorkFolder, sweep
from twoscale.files.writing import plain_json, to_json, write_json

__all__ = [
    "SUMS",
    "Checkpoint",
    "Checkpoints",
    "Output",
    "State",
    "WorkFolder",
    "atomic_output",
    "check_file",
    "check_regular",
    "check_target",
    "claimed",
    "content_digest",
    "flush",
    "is_file",
    "new_folder",
    "plain_json",
    "read_checked_json",
    "read_json",
    "read_sums",
    "read_text",
    "remove",
    "sweep",
    "tensor_digest",
    "tensor_digests",
    "to_json",
    "told",
    "write_json",
    "write_sums",
]
