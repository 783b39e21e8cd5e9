import pytest
import torch

from tests.representation.contract import Chunks
from tests.sources import ChunkSource
from twoscale.domain.symmetries import SQUARE, SYMMETRIES, symmetry_group
from twoscale.fields import source as source_module
from twoscale.fields.source import (
    ArraySource,
    BatchSource,
    ImageSource,
    MappedSource,
    SentSource,
    as_source,
    chunk_length,
    fields_at,
    gather,
    in_memory,
    map_fields,
    random_rows,
    slices,
    windowed,
)

GROUPS = {name: symmetry_group(name) for name in SYMMETRIES if name != "shifts"}
any_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)


class Parts(ChunkSource):
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

    def to(self, device):
        return Parts(*(part.to(device) for part in self.parts))


@pytest.fixture
def fields(generator):
    return torch.randn(11, 2, 8, 9, generator=generator)


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
    assert chunk_length(4, 64, 64) == chunk_length(128, 128)
    assert chunk_length(2**13, 2**13) == 1


def test_chunks_of_an_array_are_consecutive(fields, monkeypatch):
    monkeypatch.setattr(source_module, "_CHUNK_VALUES", 4 * 2 * 8 * 9)
    source = ArraySource(fields)
    chunks = list(source.chunks())
    assert source.shape == (11, 2, 8, 9)
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
    monkeypatch.setattr(source_module, "_CHUNK_VALUES", 4 * 2 * 8 * 9)
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


def _coarse(chunk):
    return chunk[:, :1, ::2, ::3]


def test_a_map_may_change_channels_and_grid(fields, parts):
    mapped = map_fields(parts, _coarse, (1, 4, 3))
    assert mapped.shape == (11, 1, 4, 3)
    assert torch.equal(gather(mapped), _coarse(fields))
    assert mapped.to(torch.device("meta")).shape == mapped.shape
    in_one = map_fields(ArraySource(fields), _coarse, (1, 4, 3))
    assert in_one.shape == (11, 1, 4, 3)
    assert torch.equal(gather(in_one), _coarse(fields))


@pytest.fixture
def parameters(generator):
    return torch.randn(11, 3, generator=generator, dtype=torch.float64)


def test_batches_have_the_parameters_of_their_fields(fields, parts, parameters):
    source = BatchSource(parts, parameters)
    for _ in range(2):
        batches = list(source.chunks())
        assert [len(batch) for batch in batches] == [5, 1, 5]
        assert torch.equal(torch.cat([batch.fields for batch in batches]), fields)
        assert torch.equal(torch.cat([batch.parameters for batch in batches]), parameters)


def test_windows_have_the_chunks_of_whole_fields(fields, parts):
    rows, columns = slice(2, 5), slice(0, 9)
    for source in (parts, ArraySource(fields), map_fields(parts, torch.square)):
        window = windowed(source, (rows, columns))
        assert window.shape == (11, 2, 3, 9)
        for part, whole in zip(window.chunks(), source.chunks(), strict=True):
            assert torch.equal(part, whole[:, :, 2:5])
        assert windowed(source, (slice(None), columns)) is source


def test_arrays_are_in_memory(fields, parts):
    assert in_memory(ArraySource(fields))
    assert not in_memory(parts)
    assert not in_memory(MappedSource(ArraySource(fields), _coarse))


def test_random_rows_are_spread_over_all_and_the_same_each_time():
    rows = random_rows(10_000, 100)
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert len(rows) == 100
    assert int(rows[0]) < 1000 < 9000 < int(rows[-1])
    assert torch.equal(rows, random_rows(10_000, 100))
    assert not torch.equal(rows, random_rows(10_000, 100, seed=1))
    assert random_rows(3, 10).tolist() == [0, 1, 2]
    assert random_rows(0, 10).tolist() == []


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4, 5, 6], [3], [0, 6], [1, 2, 5], []])
def test_fields_at_some_rows(rows):
    """They are those of the whole array; no chunk after the last of them is read."""
    values = torch.arange(7.0)[:, None, None, None].expand(-1, 2, 3, 4)
    read = []

    class Counted(Parts):
        def chunks(self):
            for number, part in enumerate(self.parts):
                read.append(number)
                yield part

    found = fields_at(Counted(*values.split([3, 2, 2])), torch.tensor(rows, dtype=torch.int64))
    assert torch.equal(found, values[rows])
    last = [0, 0, 0, 1, 1, 2, 2][rows[-1]] if rows else 0  # whose device is told
    assert read == list(range(last + 1))


# Images under symmetries


@any_group
def test_a_source_of_images_has_every_image_of_every_field(group, generator):
    fields = torch.randn(9, 2, 6, 6, generator=generator)
    source = ImageSource(Chunks(fields, (4, 2)), group)
    assert source.shape == (9 * len(group), 2, 6, 6)
    passes = [torch.cat(list(source.chunks())) for _ in range(2)]
    assert torch.equal(*passes)
    found = {tuple(image.flatten().tolist()) for image in passes[0]}
    assert found == {tuple(g(field).flatten().tolist()) for field in fields for g in group}
    assert source.to(torch.device("cpu")).shape == source.shape


def test_sources_of_inputs_and_outputs_stay_in_step(generator):
    fields = torch.randn(9, 1, 6, 6, generator=generator)
    one, two = (ImageSource(Chunks(values, (4, 2)), SQUARE) for values in (fields, 2 * fields))
    for a, b in zip(one.chunks(), two.chunks(), strict=True):
        assert torch.equal(2 * a, b)
