"""What is held of a source is what the source yields."""

import pytest
import torch

from twoscale.fields.held import held
from twoscale.fields.source import ArraySource, MappedSource
from twoscale.fields.workers import IN_TURN


def transposed(chunk):
    """(batch, 1, height, width) as (height, batch, width), as blocks of a PCA are."""
    return chunk[:, 0].transpose(0, 1)


@pytest.fixture
def source(generator, monkeypatch):
    monkeypatch.setattr("twoscale.fields.source._CHUNK_VALUES", 4 * 6 * 10)
    monkeypatch.setattr("twoscale.fields.source._RANGE_VALUES", 4 * 6 * 20)
    monkeypatch.setattr("twoscale.fields.source._RANGE_SAMPLES", 20)
    fields = ArraySource(torch.randn(50, 1, 4, 6, generator=generator))
    return MappedSource(fields, transposed, (1, 4, 6))


def test_ranges_are_held_as_they_are(source):
    kept = held(source, axis=1)
    assert kept.ranges() == source.ranges()
    assert torch.equal(torch.cat(list(kept.chunks()), 1), torch.cat(list(source.chunks()), 1))


def test_on_a_gpu_all_samples_are_one_chunk(source):
    source.source.workers = IN_TURN
    kept = held(source, axis=1)
    (whole,) = kept.chunks()
    assert len(list(source.chunks())) > 1
    assert torch.equal(whole, torch.cat(list(source.chunks()), 1))
