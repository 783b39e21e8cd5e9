"""Which device a name means."""

import pytest
import torch

from twoscale.errors import TwoscaleError
from twoscale.surrogate.options import resolve_device, shared_device


def test_auto_is_a_gpu_where_there_is_one():
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:1"])
def test_without_workers_any_device_will_do(name):
    assert shared_device(None, name) == name


@pytest.mark.parametrize("name", ["auto", "cpu", torch.device("cpu")])
def test_workers_use_cpus(name):
    assert shared_device("local:2", name) == "cpu"


def test_workers_refuse_another_device():
    with pytest.raises(TwoscaleError, match="not on cuda:1"):
        shared_device("local:2", "cuda:1")
