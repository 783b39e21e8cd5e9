"""Two sources of fields, passed over together."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from twoscale.fields.source import FieldSource


def paired_chunks(first: FieldSource, second: FieldSource) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of the same samples of two sources.

    Fields of another size come in chunks of another length: the longer ones are cut.
    """
    others = second.chunks()
    other: Tensor | None = None
    for chunk in first.chunks():
        while len(chunk):
            if other is None or not len(other):
                other = next(others)
            length = min(len(chunk), len(other))
            yield chunk[:length], other[:length]
            chunk, other = chunk[length:], other[length:]
