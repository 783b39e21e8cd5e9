import torch

from twoscale.representation.base import subset


def test_a_subset_goes_by_the_whole_name():
    tensors = {name: torch.tensor(k) for k, name in enumerate(["a.x", "a.b.y", "ab.z", "a"])}
    assert {key: int(value) for key, value in subset(tensors, "a").items()} == {"x": 0, "b.y": 1}
    assert subset(tensors, "c") == {}
