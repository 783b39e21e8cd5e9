"""Sources and pairs of fields for tests, and fits of operators on them."""

from __future__ import annotations

from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import Source
from twoscale.fields.source import as_source
from twoscale.fields.workers import THREADS
from twoscale.operators.fitting import FitOptions, FitRecord
from twoscale.operators.operators import fit_operator
from twoscale.representation.base import space_of


class ChunkSource:
    """A source that is one range of `self.chunks()`, and has a `shape`."""

    workers = THREADS

    def ranges(self):
        return [slice(0, self.shape[0])]

    def read(self, samples):
        assert samples == slice(0, self.shape[0])
        yield from self.chunks()


def field_pairs(inputs, outputs, spaces=None):
    """Pairs of two sources or tensors (samples, channels, height, width); on ordinary grids."""
    sources = [as_source(one) for one in (inputs, outputs)]
    spaces = spaces or [space_of(one, None) for one in sources]
    return Pairs(*map(Source, sources, spaces))


def fit_on(operator, training, validation, record=None, **options):
    """An operator after its fit; options are those of `FitOptions`."""
    data, record = SplitData(training, validation), record or FitRecord()
    fit_operator(operator, data, FitOptions(**options), record)
    return operator
