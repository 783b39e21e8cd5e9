"""Files: read with care, written complete or not at all."""

from twoscale.files.checkpoints import Checkpoint, Checkpoints
from twoscale.files.checksums import SUMS, check_file, content_digest, read_sums
from twoscale.files.moves import new_folder, remove
from twoscale.files.outputs import atomic_output, check_target, claimed, resolve_target
from twoscale.files.reading import open_file, plain_json, read_json, read_text, to_json, write_json
from twoscale.files.work_folder import WorkFolder, working

__all__ = [
    "SUMS",
    "Checkpoint",
    "Checkpoints",
    "WorkFolder",
    "atomic_output",
    "check_file",
    "check_target",
    "claimed",
    "content_digest",
    "new_folder",
    "open_file",
    "plain_json",
    "read_json",
    "read_sums",
    "read_text",
    "remove",
    "resolve_target",
    "to_json",
    "working",
    "write_json",
]
