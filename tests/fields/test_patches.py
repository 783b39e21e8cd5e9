import numpy as np
import pytest
import torch

from twoscale import PatchLayout, TwoscaleError
from twoscale.fields.patches import WINDOWS

LAYOUTS = {
    "tiling": PatchLayout.tiling((16, 16), (4, 4)),
    "unequal counts": PatchLayout.tiling((16, 24), (2, 6)),
    "half stride": PatchLayout.tiling((32, 32), (4, 4), overlap=True),
    "half stride, rectangular": PatchLayout.tiling((16, 24), (2, 6), overlap=True),
    "free strides": PatchLayout((17, 23), (5, 7), (4, 4)),
    "overlap along one axis": PatchLayout((12, 15), (4, 5), (4, 2)),
    "stride one": PatchLayout((9, 8), (3, 4), (1, 1)),
    "one patch": PatchLayout.tiling((9, 10), (1, 1)),
}

any_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
any_window = pytest.mark.parametrize("window", WINDOWS)


def corners(layout):
    """The first row and column of every patch, row by row."""
    rows = range(0, layout.shape[0] - layout.patch[0] + 1, layout.stride[0])
    columns = range(0, layout.shape[1] - layout.patch[1] + 1, layout.stride[1])
    return [(i, j) for i in rows for j in columns]


def random_fields(layout, generator, batch=3):
    return torch.randn(batch, *layout.shape, dtype=torch.float64, generator=generator)


def random_patches(layout, generator, batch=3):
    shape = (batch, layout.count, layout.features)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def placed(layout, patches):
    """Assembly by a plain loop: each patch added at its place."""
    fields = np.zeros((len(patches), *layout.shape))
    for k, (i, j) in enumerate(corners(layout)):
        block = patches[:, k].reshape(-1, *layout.patch)
        fields[:, i : i + layout.patch[0], j : j + layout.patch[1]] += block
    return fields


@any_layout
def test_extraction_takes_each_patch_from_its_place(layout, generator):
    fields = random_fields(layout, generator)
    patches = layout.extract(fields)
    assert patches.shape == (3, layout.count, layout.features)
    assert layout.count == len(corners(layout))
    for k, (i, j) in enumerate(corners(layout)):
        block = fields[:, i : i + layout.patch[0], j : j + layout.patch[1]]
        assert torch.equal(patches[:, k], block.reshape(3, -1))


@any_layout
def test_assembly_adds_each_patch_at_its_place(layout, generator):
    patches = random_patches(layout, generator)
    fields = layout.assemble(patches)
    assert fields.shape == (3, *layout.shape)
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
    fields = random_fields(layout, generator)
    back = layout.assemble(layout.extract(fields) * layout.weights(window))
    torch.testing.assert_close(back, fields, rtol=1e-12, atol=1e-12)


@any_layout
@any_window
def test_weights_are_a_partition_of_unity(layout, window):
    weights = layout.weights(window)
    assert weights.dtype == torch.float64
    assert weights.shape == (layout.count, layout.features)
    assert bool((weights > 0).all())
    torch.testing.assert_close(
        layout.assemble(weights[None])[0],
        torch.ones(layout.shape, dtype=torch.float64),
        rtol=1e-12,
        atol=1e-12,
    )


@any_layout
def test_hann_weights_are_the_floored_product_of_numpy_windows(layout):
    rows, columns = (np.hanning(side) for side in layout.patch)
    profile = np.maximum(np.outer(rows, columns), 1e-6).reshape(-1)
    repeated = np.broadcast_to(profile, (1, layout.count, layout.features))
    total = torch.from_numpy(placed(layout, repeated))
    expected = profile / layout.extract(total)[0].numpy()
    np.testing.assert_allclose(layout.weights("hann").numpy(), expected, rtol=1e-9)


def test_uniform_weights_are_one_over_the_number_of_patches_at_a_node():
    layout = LAYOUTS["free strides"]
    cover = placed(layout, np.ones((1, layout.count, layout.features)))
    expected = 1 / layout.extract(torch.from_numpy(cover))[0]
    torch.testing.assert_close(layout.weights("uniform"), expected)


@pytest.mark.parametrize("window", WINDOWS)
def test_without_overlap_every_weight_is_one(window):
    weights = LAYOUTS["tiling"].weights(window)
    assert torch.equal(weights, torch.ones_like(weights))


@any_layout
def test_seams_are_the_interior_starts_and_stops(layout):
    for axis, seams in enumerate(layout.seams):
        starts = {corner[axis] for corner in corners(layout)}
        stops = {start + layout.patch[axis] for start in starts}
        assert seams == sorted((starts | stops) - {0, layout.shape[axis]})


def test_seams_by_hand():
    assert LAYOUTS["tiling"].seams == ([4, 8, 12], [4, 8, 12])
    assert LAYOUTS["half stride"].seams == ([4, 8, 12, 16, 20, 24, 28],) * 2
    assert LAYOUTS["free strides"].seams == ([4, 5, 8, 9, 12, 13], [4, 7, 8, 11, 12, 15, 16, 19])
    assert LAYOUTS["one patch"].seams == ([], [])


def test_half_stride_of_the_paper():
    layout = PatchLayout.tiling((128, 128), (4, 4), overlap=True)
    assert (layout.patch, layout.stride) == ((32, 32), (16, 16))
    assert (layout.counts, layout.count) == ((7, 7), 49)
    assert layout.overlaps
    assert not PatchLayout.tiling((128, 128), (4, 4)).overlaps


@any_layout
def test_arguments_are_left_unchanged(layout, generator):
    fields, patches = random_fields(layout, generator), random_patches(layout, generator)
    before = fields.clone(), patches.clone()
    layout.extract(fields)
    layout.assemble(patches)
    assert torch.equal(fields, before[0])
    assert torch.equal(patches, before[1])


@any_layout
def test_extraction_and_assembly_carry_gradients(layout, generator):
    fields = random_fields(layout, generator, batch=1).requires_grad_()
    layout.assemble(layout.extract(fields) * layout.weights("hann")).sum().backward()
    torch.testing.assert_close(fields.grad, torch.ones_like(fields))


@pytest.mark.parametrize(
    ("patch", "stride", "axis"),
    [
        ((5, 4), (4, 4), "height"),
        ((4, 4), (4, 5), "width"),
        ((4, 4), (0, 4), "height"),
        ((17, 4), (4, 4), "height"),
        ((4, 4), (4, 7), "width"),
    ],
)
def test_a_layout_that_does_not_cover_the_grid_is_refused(patch, stride, axis):
    with pytest.raises(TwoscaleError, match=f"do not cover a {axis} of 16: the stride must be"):
        PatchLayout((16, 16), patch, stride)


@pytest.mark.parametrize("counts", [(5, 4), (16, 4), (32, 4), (0, 4)])
def test_counts_that_do_not_divide_are_refused_with_those_that_do(counts):
    message = f"{counts[0]} patches do not divide a height of 16: use one of \\[1, 2, 4, 8\\]"
    with pytest.raises(TwoscaleError, match=message):
        PatchLayout.tiling((16, 16), counts)


def test_half_stride_needs_even_patches():
    with pytest.raises(TwoscaleError, match="needs patches of even side, got 5x4"):
        PatchLayout.tiling((20, 16), (4, 4), overlap=True)
