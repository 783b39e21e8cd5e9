import pytest
import torch

from tests.sources import ChunkSource, field_pairs


class Source(ChunkSource):
    """Fields in chunks of given lengths."""

    def __init__(self, fields, lengths):
        self.fields, self.lengths = fields, lengths
        self.shape = tuple(fields.shape)

    def chunks(self):
        yield from self.fields.split(self.lengths)


@pytest.mark.parametrize(
    ("first", "second", "lengths"),
    [
        ([4, 4, 2], [4, 4, 2], [4, 4, 2]),
        ([10], [3, 3, 3, 1], [3, 3, 3, 1]),
        ([3, 3, 3, 1], [10], [3, 3, 3, 1]),
        ([4, 6], [3, 3, 4], [3, 1, 2, 4]),
    ],
)
def test_batches_hold_the_same_samples(first, second, lengths):
    inputs = torch.arange(10.0).reshape(10, 1, 1, 1)
    outputs = inputs.expand(10, 2, 3, 3)
    batches = list(field_pairs(Source(inputs, first), Source(outputs, second)).chunks())
    assert [len(one) for one, _ in batches] == lengths
    assert all(torch.equal(one.fields[:, 0, 0, 0], other[:, 1, 2, 2]) for one, other in batches)
    assert torch.equal(torch.cat([one.fields for one, _ in batches]), inputs)
