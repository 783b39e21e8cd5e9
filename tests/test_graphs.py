import threading

import pytest
import torch

from twoscale.graphs import record, turn, warm_up

pytestmark = pytest.mark.gpu


def test_recorded_work_is_done_when_it_is_replayed():
    values = torch.ones(4, device="cuda")
    warm_up(lambda: values * 2, values.device)
    graph, doubled = record(lambda: values * 2, values.device)
    values.fill_(3)
    graph.replay()
    assert doubled.tolist() == [6.0] * 4


def test_warming_up_does_the_work_in_order():
    values = torch.zeros(2**20, device="cuda")
    values.add_(1)
    warm_up(lambda: values.mul_(2), values.device, times=3)
    values.add_(1)
    assert float(values.min()) == float(values.max()) == 9.0


def test_turns_of_threads_on_their_own_streams_are_in_order():
    """Each turn reads and writes the same memory in several steps."""
    values = torch.zeros(2**22, device="cuda")

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                with turn(values.device):
                    values.copy_(values.clone().add_(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert float(values.min()) == float(values.max()) == 200.0
