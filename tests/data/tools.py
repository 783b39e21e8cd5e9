"""Datasets with descriptions and chunks of our own making."""

import json

from twoscale.data.description import description_digest, layout_of
from twoscale.data.shards import index_bytes, read_index


def edit_description(path, change, *, sign=True):
    """Change a dataset's attributes; signed, they pass for what was written."""
    file = path / "zarr.json"
    content = json.loads(file.read_text())
    change(content["attributes"])
    if sign:
        content["attributes"]["digest"] = description_digest(content["attributes"])
    file.write_text(json.dumps(content))


def shard_file(path, name, number=0):
    """Return the file of one shard of an array of fields without channels."""
    return path / name / "c" / str(number) / "0" / "0"


def stop_at(samples):
    """Return a progress that interrupts when so many samples are done."""

    def progress(stage, done, total, remark):
        if done == samples:
            raise KeyboardInterrupt

    return progress


def change_chunk(path, name, row, change, *, tile=0):
    """Change the bytes of one chunk where they lie in their shard; `change` gets a bytearray."""
    attributes = json.loads((path / "zarr.json").read_text())["attributes"]
    chunking = layout_of(attributes).chunkings[name]
    file = path / name / chunking.key(row // chunking.rows)
    content = file.read_bytes()
    room = len(content) - index_bytes(chunking)
    index = read_index(chunking, content[room:], room)
    start, length = index[row % chunking.rows * chunking.tiles + tile].tolist()
    chunk = bytearray(content[start : start + length])
    change(chunk)
    assert len(chunk) == length
    file.write_bytes(content[:start] + chunk + content[start + length :])


def flip(chunk):
    """Change one byte of a chunk's values."""
    chunk[-5] ^= 1
