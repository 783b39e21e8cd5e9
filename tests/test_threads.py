import pytest
import torch

from twoscale.threads import one_thread

pytestmark = pytest.mark.usefixtures("two_threads")


def test_there_is_one_thread_inside_and_as_many_as_before_outside():
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_threads_come_back_after_an_error():
    with pytest.raises(RuntimeError, match="boom"), one_thread():
        raise RuntimeError("boom")
    assert torch.get_num_threads() == 2


def test_blocks_can_be_nested():
    with one_thread():
        with one_thread():
            pass
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
