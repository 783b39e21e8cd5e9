"""Files: read with care, written complete or not at all."""

from twoscale.files.checkpoints import Checkpoint, Checkpoints, State
from twoscale.files.checksums import (
    SUMS,
    check_file,
    content_digest,
    file_digest,
    read_checked_json,
    read_sums,
    tensor_digest,
    tensor_digests,
    write_sums,
)
from twoscale.files.moves import flush, new_folder, remove
from twoscale.files.npy import NpyHeader, open_npy, read_npy_header
from twoscale.files.outputs import (
    Output,
    atomic_files,
    atomic_output,
    check_name,
    check_target,
    claimed,
    is_file,
    resolve_target,
)
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
from twoscale.files.work_folder import WorkFolder, reporting_os_errors, sweep, tidy, working
from twoscale.files.writing import plain_json, rewrite_json, to_json, write_json

__all__ = [
    "SUMS",
    "Checkpoint",
    "Checkpoints",
    "NpyHeader",
    "Output",
    "State",
    "WorkFolder",
    "atomic_files",
    "atomic_output",
    "check_file",
    "check_name",
    "check_target",
    "claimed",
    "content_digest",
    "file_digest",
    "flush",
    "is_a",
    "is_file",
    "new_folder",
    "open_file",
    "open_npy",
    "parse_json",
    "parsing",
    "plain_json",
    "read_bytes",
    "read_checked_json",
    "read_json",
    "read_npy_header",
    "read_sums",
    "read_text",
    "remove",
    "reporting_os_errors",
    "resolve_target",
    "rewrite_json",
    "sweep",
    "tensor_digest",
    "tensor_digests",
    "tidy",
    "to_json",
    "unreadable",
    "working",
    "write_json",
    "write_sums",
]
