import threading

import pytest
import torch

from twoscale.runtime.cuda_graphs import exclusive_stream, record, side_by_side, warm_up


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_works_side_by_side_give_what_each_of_them_gives(device):
    values = torch.ones(2**20, device=device)

    def work():
        values.add_(1)  # before all of them
        found = side_by_side([lambda k=k: values * k for k in range(9)], values.device)
        values.zero_()  # after all of them
        return torch.stack(found).sum(0)

    for _ in range(3):
        values.fill_(2)
        assert work().unique().tolist() == [3.0 * 36]


@pytest.mark.gpu
def test_works_side_by_side_can_be_recorded():
    values = torch.zeros(2**20, device="cuda")

    def work():
        found = side_by_side([lambda k=k: (values + k) * 2 for k in range(9)], values.device)
        values.add_(1)
        return torch.stack(found).sum(0)

    warm_up(work, values.device)
    graph, total = record(work, values.device)
    for start in (0.0, 5.0):
        values.fill_(start)
        graph.replay()
        assert total.unique().tolist() == [2 * (9 * start + 36)]
        assert values.unique().tolist() == [start + 1]


@pytest.mark.gpu
def test_recorded_work_is_done_when_it_is_replayed():
    values = torch.ones(4, device="cuda")
    warm_up(lambda: values * 2, values.device)
    graph, doubled = record(lambda: values * 2, values.device)
    values.fill_(3)
    graph.replay()
    assert doubled.tolist() == [6.0] * 4


@pytest.mark.gpu
def test_warming_up_does_the_work_in_order():
    values = torch.zeros(2**20, device="cuda")
    values.add_(1)
    warm_up(lambda: values.mul_(2), values.device, times=3)
    values.add_(1)
    assert float(values.min()) == float(values.max()) == 9.0


@pytest.mark.gpu
def test_turns_of_threads_on_their_own_streams_are_in_order():
    """Each turn reads and writes the same memory in several steps."""
    values = torch.zeros(2**22, device="cuda")

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                with exclusive_stream(values.device):
                    values.copy_(values.clone().add_(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert float(values.min()) == float(values.max()) == 200.0
