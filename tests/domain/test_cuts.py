import pytest

from twoscale.domain.cuts import Axis, Cuts

SIZES = [(8, 4), (9, 4), (10, 4), (11, 4), (17, 5), (85, 4), (97, 4), (101, 7), (6, 1), (1, 1)]
any_size = pytest.mark.parametrize(("size", "count"), SIZES)
any_wrap = pytest.mark.parametrize("periodic", [False, True])


def covered(cuts):
    """How many intervals every node is in, counted one by one."""
    times = [0] * cuts.size
    for start, side in zip(cuts.starts, cuts.sides, strict=True):
        for node in range(start, start + side):
            times[node % cuts.size] += 1
    return times


# Side by side


@any_size
@any_wrap
def test_equal_intervals_cover_every_node_once(size, count, periodic):
    """Their sides differ by a node at most, and are the same from both ends where they can be."""
    cuts = Cuts.equal(Axis(size, periodic), count)
    assert (cuts.count, cuts.starts[0], cuts.overlaps) == (count, 0, False)
    assert covered(cuts) == [1] * size
    assert max(cuts.sides) - min(cuts.sides) <= 1
    assert cuts.side == -(-size // count)
    assert cuts.sides == cuts.sides[::-1] or (size % 2 and count % 2 == 0)
    assert cuts.stride == (None if size % count else cuts.side)


# Overlapping


@any_size
@any_wrap
def test_overlapping_intervals_have_one_side_and_cover_every_node(size, count, periodic):
    cuts = Cuts.overlapping(Axis(size, periodic), count)
    assert len(set(cuts.sides)) == 1
    assert abs(cuts.side - size / count) <= 0.5
    assert min(covered(cuts)) >= 1
    assert cuts.count == (2 * count if periodic else 2 * count - 1)
    assert list(cuts.starts) == sorted(cuts.starts)


@pytest.mark.parametrize(("size", "count"), [(10, 4), (11, 4), (17, 5), (97, 4), (101, 7)])
@any_wrap
def test_overlapping_intervals_are_half_a_side_apart(size, count, periodic):
    """To a node, also across the wrap."""
    cuts = Cuts.overlapping(Axis(size, periodic), count)
    after = [*cuts.starts[1:], cuts.starts[0] + size] if periodic else cuts.starts[1:]
    distances = [b - a for a, b in zip(cuts.starts, after, strict=False)]
    assert max(distances) - min(distances) <= 1
    assert abs(distances[0] - cuts.side / 2) <= 1


def test_half_stride_where_sides_divide():
    cuts = Cuts.overlapping(Axis(128), 4)
    assert cuts.starts == (0, 16, 32, 48, 64, 80, 96)
    assert (cuts.side, cuts.stride, cuts.overlaps) == (32, 16, True)
    wrapped = Cuts.overlapping(Axis(128, True), 4)
    assert wrapped.starts == (*cuts.starts, 112)
    assert wrapped.stride is None


# Places and seams


@any_size
@any_wrap
@pytest.mark.parametrize("make", [Cuts.equal, Cuts.overlapping])
def test_positions_are_the_nodes_of_each_interval(make, size, count, periodic):
    cuts = make(Axis(size, periodic), count)
    assert cuts.positions.shape == cuts.inside.shape == (cuts.count, cuts.side)
    for k, (start, side) in enumerate(zip(cuts.starts, cuts.sides, strict=True)):
        nodes = [node % size for node in range(start, start + side)]
        assert cuts.positions[k][cuts.inside[k]].tolist() == nodes
        assert set(cuts.positions[k].tolist()) == set(nodes)
    assert int(cuts.inside.sum()) == sum(cuts.sides)


def test_seams_by_hand():
    assert Cuts.equal(Axis(10), 4).seams == (3, 5, 7)
    assert Cuts.equal(Axis(10, True), 4).seams == (0, 3, 5, 7)
    assert Cuts.overlapping(Axis(9), 2).seams == (2, 4, 5, 6)
    assert Cuts.overlapping(Axis(8, True), 2).seams == (0, 2, 4, 6)
    assert Cuts.equal(Axis(10), 1).seams == ()
    assert Cuts.equal(Axis(10, True), 1).seams == (0,)
    assert Cuts.equal(Axis(1, True), 1).seams == ()
