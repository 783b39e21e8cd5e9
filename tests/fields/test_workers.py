"""Sums over ranges have the same bytes, whoever adds them up."""

import pytest
import torch

from twoscale.fields.workers import ARITY, tree_sum


def make_parts(count):
    generator = torch.Generator().manual_seed(count)
    return [
        (torch.randn(5, generator=generator), torch.randn((), generator=generator).double())
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 200, 520])
@pytest.mark.parametrize("size", [ARITY, ARITY**2])
def test_groups_are_added_up_to_the_same_bytes(count, size):
    parts = make_parts(count)
    whole = tree_sum(parts)
    groups = [tree_sum(parts[start : start + size]) for start in range(0, count, size)]
    assert all(map(torch.equal, tree_sum(groups), whole))
    exact = torch.stack([one.double() for one, _ in parts]).sum(0)
    torch.testing.assert_close(whole[0].double(), exact, rtol=0, atol=1e-5)


def test_parts_stay_as_they_are():
    parts = make_parts(20)
    copies = [tuple(one.clone() for one in part) for part in parts]
    tree_sum(parts)
    for part, copied in zip(parts, copies, strict=True):
        assert all(map(torch.equal, part, copied))


def test_few_sums_are_held():
    """Each level holds one: parts that were added are gone."""
    alive, most = set(), 0

    class Part(torch.Tensor):
        def __del__(self):
            alive.discard(id(self))

    def parts():
        nonlocal most
        for _ in range(ARITY**3):
            one = torch.ones(1).as_subclass(Part)
            alive.add(id(one))
            most = max(most, len(alive))
            yield (one,)

    (total,) = tree_sum(parts())
    assert total.item() == ARITY**3
    assert most <= 8
