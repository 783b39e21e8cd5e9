import numpy as np
import pytest
import torch

from twoscale import PatchLayout, TwoscaleError
from twoscale.domain import patches as patches_module
from twoscale.domain.cuts import Axis, Cuts
from twoscale.domain.grid import Grid
from twoscale.domain.patches import WINDOWS

WRAPPED = Grid.square(16, periodic=True)


def strided(shape, patch, stride):
    """Patches of one size at a fixed stride."""
    axes = []
    for size, side, step in zip(shape, patch, stride, strict=True):
        starts = tuple(range(0, size - side + 1, step))
        axes.append(Cuts(Axis(size), starts, (side,) * len(starts)))
    return PatchLayout(tuple(axes))


LAYOUTS = {
    "tiling": Grid((16, 16)).partition((4, 4)),
    "unequal counts": Grid((16, 24)).partition((2, 6)),
    "half stride": Grid((32, 32)).partition((4, 4), overlap=True),
    "half stride, rectangular": Grid((16, 24)).partition((2, 6), overlap=True),
    "free strides": strided((17, 23), (5, 7), (4, 4)),
    "overlap along one axis": strided((12, 15), (4, 5), (4, 2)),
    "stride one": strided((9, 8), (3, 4), (1, 1)),
    "one patch": Grid((9, 10)).partition((1, 1)),
    "unequal sides": Grid((17, 23)).partition((4, 4)),
    "unequal sides, overlap": Grid((17, 23)).partition((4, 3), overlap=True),
    "unequal along one axis": Grid((16, 23)).partition((4, 4)),
    "line": Grid((1, 30)).partition((4, 4)),
    "line, overlap": Grid((1, 30)).partition((4, 4), overlap=True),
    "periodic": WRAPPED.partition((4, 4)),
    "periodic, overlap": WRAPPED.partition((4, 2), overlap=True),
    "periodic, unequal": Grid((17, 13), periodic=(True, True)).partition((4, 3), overlap=True),
    "periodic rows": Grid((17, 12), periodic=(True, False)).partition((4, 3), overlap=True),
    "periodic, one patch": Grid((9, 8), periodic=(True, True)).partition((1, 1), overlap=True),
}

any_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
any_window = pytest.mark.parametrize("window", WINDOWS)


def patch_nodes(layout):
    """The rows and the columns of every patch, row by row; numbers wrap along periodic axes."""

    def intervals(cuts):
        return [
            [node % cuts.size for node in range(start, start + side)]
            for start, side in zip(cuts.starts, cuts.sides, strict=True)
        ]

    return [(i, j) for i in intervals(layout.rows) for j in intervals(layout.columns)]


def filled_up(block, layout):
    """A block (..., rows, columns) with zeros up to the size of the largest patch, flat."""
    full = np.zeros((*block.shape[:-2], *layout.patch))
    full[..., : block.shape[-2], : block.shape[-1]] = block
    return full.reshape(*block.shape[:-2], -1)


def random_fields(layout, generator, batch=3):
    return torch.randn(batch, 2, *layout.shape, dtype=torch.float64, generator=generator)


def random_patches(layout, generator, batch=3):
    """Patches of two channels; zero beyond the smaller ones."""
    shape = (batch, layout.count, 2, layout.features)
    values = torch.randn(shape, dtype=torch.float64, generator=generator)
    return (values * layout.inside[:, None]).flatten(2)


def placed(layout, patches):
    """Assembly by a plain loop: each patch added at its place."""
    channels = patches.shape[2] // layout.features
    fields = np.zeros((len(patches), channels, *layout.shape))
    for k, (rows, columns) in enumerate(patch_nodes(layout)):
        block = patches[:, k].reshape(len(patches), channels, *layout.patch)
        np.add.at(
            fields, np.s_[:, :, *np.ix_(rows, columns)], block[..., : len(rows), : len(columns)]
        )
    return fields


@any_layout
def test_extraction_takes_each_patch_from_its_place(layout, generator):
    fields = random_fields(layout, generator)
    patches = layout.extract(fields)
    assert patches.shape == (3, layout.count, 2 * layout.features)
    assert layout.count == len(patch_nodes(layout))
    for k, (rows, columns) in enumerate(patch_nodes(layout)):
        block = fields.numpy()[:, :, rows][..., columns]
        found = patches[:, k].reshape(3, 2, -1).numpy()
        np.testing.assert_array_equal(found, filled_up(block, layout))


@any_layout
def test_some_patches_are_extracted_from_the_part_of_the_grid_they_lie_in(layout, generator):
    fields = torch.randn(2, 3, *layout.shape, generator=generator)
    expected = layout.extract(fields)
    for start in range(layout.count):
        for stop in range(start + 1, layout.count + 1):
            part = layout.part(slice(start, stop))
            found = part.extract(fields[(..., *part.window)])
            assert torch.equal(found, expected[:, start:stop]), (start, stop)


@any_layout
def test_assembly_adds_each_patch_at_its_place(layout, generator):
    patches = random_patches(layout, generator)
    before, fields = patches.clone(), layout.assemble(patches)
    assert torch.equal(patches, before)
    assert fields.shape == (3, 2, *layout.shape)
    np.testing.assert_allclose(fields.numpy(), placed(layout, patches.numpy()), atol=1e-13)


@any_layout
def test_assembly_is_the_transpose_of_extraction(layout, generator):
    fields, patches = random_fields(layout, generator), random_patches(layout, generator)
    one = (layout.extract(fields) * patches).sum()
    two = (fields * layout.assemble(patches)).sum()
    torch.testing.assert_close(one, two)


@any_layout
@any_window
def test_assembling_the_weighted_patches_of_a_field_is_the_identity(layout, window, generator):
    """Weights are positive inside of patches, and zero where smaller ones are filled up."""
    fields = random_fields(layout, generator)
    before, weights = fields.clone(), layout.weights(window)
    back = layout.assemble(layout.extract(fields) * weights.repeat(1, 2))
    torch.testing.assert_close(back, fields, rtol=1e-12, atol=1e-12)
    assert torch.equal(fields, before)
    assert weights.dtype == torch.float64
    assert torch.equal(weights > 0, layout.inside)


def test_uniform_weights_are_one_over_the_number_of_patches_at_a_node():
    layout = LAYOUTS["free strides"]
    cover = placed(layout, np.ones((1, layout.count, layout.features)))
    expected = 1 / layout.extract(torch.from_numpy(cover))[0]
    torch.testing.assert_close(layout.weights("uniform"), expected)


@any_layout
def test_seams_are_where_patches_start_and_stop(layout):
    """Not at the ends of ordinary axes; across the wrap of periodic ones."""
    for cuts, seams in ((layout.rows, layout.seams.rows), (layout.columns, layout.seams.columns)):
        starts = set(cuts.starts)
        stops = {start + side for start, side in zip(cuts.starts, cuts.sides, strict=True)}
        edges = starts | stops
        if cuts.periodic:
            expected = {edge % cuts.size for edge in edges}
        else:
            expected = edges - {0, cuts.size}
        assert seams == tuple(sorted(expected))
    assert bool(layout.seams) == bool(layout.seams.rows or layout.seams.columns)


def test_seams_of_another_method_have_no_more_patches_than_fit():
    layout = Grid((1, 6)).common_partition((4, 4))
    assert layout.counts == (1, 3)
    assert Grid((32, 32)).common_partition((4, 4)) == Grid((32, 32)).partition((4, 4))


@pytest.mark.parametrize("name", ["unequal sides", "periodic, overlap"])
def test_places_are_sent_to_a_device_once(name, generator):
    """A loss on a GPU must not wait for transfers."""
    layout = LAYOUTS[name]
    fields = random_fields(layout, generator)
    layout.assemble(layout.extract(fields))
    before = patches_module._places.cache_info().misses
    layout.assemble(layout.extract(fields))
    assert patches_module._places.cache_info().misses == before


@pytest.mark.parametrize("count", [9, 16, 0, -1])
def test_more_patches_than_pairs_of_nodes_are_refused(count):
    for shape, counts, side in (((16, 20), (count, 4), "height"), ((20, 16), (4, count), "width")):
        with pytest.raises(TwoscaleError, match=f"{side} .*1 to 8 patches, got {count}"):
            Grid(shape).partition(counts)
