import pytest
import torch

from twoscale.fields import source as source_module
from twoscale.fields.source import (
    ArraySource,
    MappedSource,
    SentSource,
    as_source,
    chunk_length,
    gather,
    map_fields,
    slices,
)


class Parts:
    """A source that hands out given parts and counts the passes over them."""

    def __init__(self, *parts):
        self.parts = parts
        self.passes = 0

    @property
    def shape(self):
        return (sum(len(part) for part in self.parts), *self.parts[0].shape[1:])

    def chunks(self):
        self.passes += 1
        yield from self.parts


@pytest.fixture
def fields(generator):
    return torch.randn(11, 8, 9, generator=generator)


@pytest.fixture
def parts(fields):
    return Parts(fields[:5], fields[5:6], fields[6:])


@pytest.mark.parametrize(("samples", "length"), [(10, 3), (9, 3), (2, 5), (1, 1), (0, 4)])
def test_slices_cover_everything_once(samples, length):
    parts = list(slices(samples, length))
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(samples))
    assert all(0 < part.stop - part.start <= length for part in parts)


def test_a_chunk_is_16_mebibytes_on_a_cpu_and_64_on_a_gpu_and_never_empty():
    assert chunk_length(128, 128) * 128 * 128 * 4 == 16 * 2**20
    assert chunk_length(128, 128, cuda=True) * 128 * 128 * 4 == 64 * 2**20
    assert chunk_length(2**13, 2**13) == 1


def test_chunks_of_an_array_are_consecutive(fields, monkeypatch):
    monkeypatch.setattr(source_module, "_CHUNK_VALUES", 4 * 8 * 9)
    source = ArraySource(fields)
    chunks = list(source.chunks())
    assert source.shape == (11, 8, 9)
    assert [len(chunk) for chunk in chunks] == [4, 4, 3]
    assert torch.equal(torch.cat(chunks), fields)
    assert torch.equal(torch.cat(list(source.chunks())), fields)


def test_gathering_restores_the_order(fields, parts):
    assert torch.equal(gather(parts), fields)


def test_gathering_an_array_copies_nothing(fields):
    assert gather(ArraySource(fields)) is fields


def test_a_mapped_source_is_computed_on_every_pass(fields, parts):
    mapped = map_fields(parts, lambda chunk: 2 * chunk)
    assert isinstance(mapped, MappedSource)
    assert parts.passes == 0
    assert mapped.shape == parts.shape
    for passes in (1, 2):
        assert torch.equal(gather(mapped), 2 * fields)
        assert parts.passes == passes


def test_an_array_is_mapped_in_memory(fields, monkeypatch):
    monkeypatch.setattr(source_module, "_CHUNK_VALUES", 4 * 8 * 9)
    mapped = map_fields(ArraySource(fields), lambda chunk: chunk + 1)
    assert isinstance(mapped, ArraySource)
    assert torch.equal(mapped.fields, fields + 1)


DEVICES = ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_sent_source_has_the_same_chunks_on_the_device(parts, device):
    sent = SentSource(parts, torch.device(device))
    assert sent.shape == parts.shape
    for passes in (1, 2):
        chunks = list(sent.chunks())
        assert parts.passes == passes
        assert [chunk.device.type for chunk in chunks] == [device] * 3
        assert [chunk.shape for chunk in chunks] == [part.shape for part in parts.parts]
        if device != "meta":  # tensors without values
            for chunk, part in zip(chunks, parts.parts, strict=True):
                assert torch.equal(chunk.cpu(), part)


def test_a_sent_source_can_be_sent_elsewhere(parts):
    here = SentSource(parts, torch.device("cpu"))
    there = here.to(torch.device("meta"))
    assert there.source is here.source is parts
    assert (here.device.type, there.device.type) == ("cpu", "meta")
    assert {chunk.device.type for chunk in there.chunks()} == {"meta"}


def test_a_tensor_becomes_a_source_and_a_source_stays_one(fields, parts):
    assert torch.equal(gather(as_source(fields)), fields)
    assert as_source(parts) is parts
