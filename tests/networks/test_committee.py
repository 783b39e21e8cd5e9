"""Networks side by side and their mean."""

import torch

from twoscale.networks import Committee, FieldEncoder


def test_the_mean_of_all_members():
    members = [FieldEncoder((8, 8), width=4, seed=seed) for seed in (0, 1)]
    committee = Committee(members)
    x = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        each = committee.each(x)
        assert each.shape == (2, 3, 1, 8, 8)
        torch.testing.assert_close(each[1], members[1](x))
        torch.testing.assert_close(committee(x), (members[0](x) + members[1](x)) / 2)
