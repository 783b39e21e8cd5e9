"""Sources of fields for tests: a subclass says what the chunks are."""

from __future__ import annotations

from twoscale.fields.workers import THREADS


class ChunkSource:
    """A source that is one range of `self.chunks()`, and has a `shape`."""

    workers = THREADS

    def ranges(self):
        return [slice(0, self.shape[0])]

    def read(self, samples):
        assert samples == slice(0, self.shape[0])
        yield from self.chunks()
