import pytest
import torch

from twoscale import TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.symmetries import (
    MIRRORS,
    SQUARE,
    SYMMETRIES,
    Symmetry,
    irreducible,
    is_closed,
    products,
    symmetry_group,
)

GROUPS = {name: symmetry_group(name) for name in SYMMETRIES if name != "shifts"}
any_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
FIELD = torch.arange(25.0).reshape(5, 5)


# Group laws


@any_group
def test_the_symmetries_of_a_group_are_distinct_and_the_identity_comes_first(group):
    images = {tuple(g(FIELD).flatten().tolist()) for g in group}
    assert len(images) == len(group)
    assert torch.equal(group[0](FIELD), FIELD)


def test_the_groups_are_what_their_names_say():
    images = {name: [g(FIELD) for g in group[1:]] for name, group in GROUPS.items()}
    half = FIELD.flip(0, 1)
    assert torch.equal(*images["mirror-rows"], FIELD.flip(0))
    assert torch.equal(*images["mirror-columns"], FIELD.flip(1))
    assert torch.equal(*images["half-turn"], half)
    assert torch.equal(*images["transpose"], FIELD.T)
    assert torch.equal(images["rotations"][0], FIELD.T.flip(0))
    assert torch.equal(images["rotations"][1], half)


@any_group
def test_the_inverse_undoes(group):
    for g in group:
        assert g.inverse in group
        assert torch.equal(g.inverse(g(FIELD)), FIELD)
        assert g.after(g.inverse) == g.inverse.after(g) == Symmetry()


@any_group
def test_the_table_of_products(group):
    table = products(group)
    for a, row in enumerate(table):
        assert sorted(row) == list(range(len(group)))
        for b, place in enumerate(row):
            assert group[place] == group[a].after(group[b])
            assert torch.equal(group[place](FIELD), group[a](group[b](FIELD)))
    assert is_closed(group)


# Action on fields


@pytest.mark.parametrize("name", sorted(GROUPS.keys() - {"transpose"}))
def test_a_rectangle_keeps_those_that_fit(name, generator):
    fields = torch.randn(2, 3, 5, 7, generator=generator)
    group = symmetry_group(name, Grid((5, 7)))
    assert all(g(fields).shape == fields.shape for g in group)
    assert set(group) == set(GROUPS[name]) & set(MIRRORS)
    assert symmetry_group(name, Grid((7, 7))) == GROUPS[name]


@pytest.mark.parametrize(
    ("grids", "group"),
    [
        ((Grid((7, 7)), Grid((9, 9))), SQUARE),
        ((Grid((7, 7)), Grid((9, 8))), MIRRORS),
        ((Grid.square(8, periodic=True),), SQUARE),
        ((Grid((8, 8), periodic=(True, False)),), MIRRORS),
    ],
)
def test_quarter_turns_map_all_grids_onto_themselves(grids, group):
    assert symmetry_group("square", *grids) == group


# Shifts

PERIODIC = Grid.square(12, periodic=True)
SHIFTED = {
    "square": (PERIODIC,),
    "rows": (Grid((12, 7), periodic=(True, False)),),
    "line": (Grid((1, 30), periodic=(False, True)),),
    "two grids": (PERIODIC, Grid((18, 24), periodic=(True, True))),
    "few": (Grid((4, 9), periodic=(True, True)), Grid((6, 15), periodic=(True, True))),
}
any_shift = pytest.mark.parametrize("grids", SHIFTED.values(), ids=SHIFTED)


@any_shift
def test_shifts_are_undone_exactly(grids, generator):
    for grid in grids:
        fields = torch.randn(2, 3, *grid.shape, generator=generator)
        for shift in symmetry_group("shifts", *grids):
            assert torch.equal(shift.inverse(shift(fields)), fields)
            assert torch.equal(shift(shift.inverse(fields)), fields)


def test_shifts_move_by_the_same_share_of_every_grid():
    """One field on a grid of 12 nodes and on one twice as fine, which has the nodes in common."""
    coarse, fine = PERIODIC, Grid.square(24, periodic=True)
    waves = torch.randn(24, 24, generator=torch.Generator().manual_seed(0))
    for shift in symmetry_group("shifts", coarse, fine):
        assert torch.equal(shift(waves)[::2, ::2], shift(waves[::2, ::2]))


ALONG_ROWS, ALONG_COLUMNS = (Grid((12, 12), periodic=(one, not one)) for one in (True, False))


@pytest.mark.parametrize(
    ("name", "grids", "words"),
    [
        ("transpose", (Grid((5, 7)),), "rows as columns, got 5x7"),
        ("transpose", (ALONG_ROWS,), "rows as columns, got 12px12"),
        ("cube", (Grid((8, 8)),), "'cube': known are none, mirror-rows, .*, square, shifts"),
        ("shifts", (Grid((12, 12)),), "an axis along which"),
        ("shifts", (PERIODIC, Grid((12, 12))), "an axis along which"),
        ("shifts", (ALONG_ROWS, ALONG_COLUMNS), "an axis along which"),
        ("shifts", (PERIODIC, Grid((1, 1))), "an axis along which"),
        ("shifts", (), "an axis along which"),
        ("shifts", (PERIODIC, Grid((13, 13), periodic=(True, True))), "no common divisor"),
    ],
)
def test_symmetries_that_grids_do_not_have_are_refused(name, grids, words):
    with pytest.raises(TwoscaleError, match=words):
        symmetry_group(name, *grids)


# Irreducible representations


@any_group
def test_matrices_multiply_as_the_symmetries_do(group):
    table = products(group)
    for matrices in irreducible(group):
        for a, row in enumerate(table):
            for b, place in enumerate(row):
                torch.testing.assert_close(matrices[a] @ matrices[b], matrices[place])
