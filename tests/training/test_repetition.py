"""The same seed, the same weights; nothing else is touched."""

from threading import Barrier

import pytest
import torch

from tests.training.tools import fitted, make_pairs, make_plan, mean_square
from twoscale.networks import DenseNetwork
from twoscale.runtime.precision import precision_flags, tensor_cores
from twoscale.training import Plan, Task, train_together


def test_the_same_seed_gives_the_same_weights(pairs):
    plan = make_plan(epochs=5, batch_size=16)
    one, two = fitted(pairs, plan, seed=3), fitted(pairs, plan, seed=3)
    assert one[1] == two[1]
    states = one[0].state_dict(), two[0].state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_another_seed_gives_another_order(pairs):
    plan = make_plan(epochs=5, batch_size=16)
    assert fitted(pairs, plan, seed=3)[1] != fitted(pairs, plan, seed=4)[1]


def test_the_global_random_state_is_neither_read_nor_written(pairs):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one = fitted(pairs, make_plan(epochs=2))[1]
    assert torch.equal(torch.rand(3), expected)
    assert fitted(pairs, make_plan(epochs=2))[1] == one


def test_data_are_left_unchanged():
    pairs = make_pairs(40), make_pairs(10, seed=1)
    before = [t.clone() for p in pairs for t in (p.inputs, p.targets)]
    fitted(pairs, make_plan(epochs=2))
    after = [t for p in pairs for t in (p.inputs, p.targets)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("small", "threads"), [(True, 1), (False, 2)])
def test_small_steps_are_done_on_one_thread(pairs, small, threads):
    """Afterwards threads and flags are as they were."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    seen = []

    def loss(predicted, true):
        seen.append(torch.get_num_threads())
        return mean_square(predicted, true)

    fitted(pairs, make_plan(epochs=1, small=small), loss=loss)
    assert set(seen) == {threads}
    assert torch.get_num_threads() == 2
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == before


@pytest.mark.parametrize(("on_fields", "tuned"), [(True, True), (True, False), (False, False)])
def test_only_networks_on_fields_use_tensor_cores(pairs, on_fields, tuned):
    """Fine-tuning works on large codes too, and takes differences of decoded fields."""
    before = precision_flags()
    seen = []

    def loss(predicted, true):
        seen.append((precision_flags()[0], torch.backends.cudnn.benchmark))
        return mean_square(predicted, true)

    fitted(pairs, make_plan(epochs=1, on_fields=on_fields, tuned=tuned), loss=loss)
    assert set(seen) == {(on_fields, tuned)}
    assert precision_flags() == before


@pytest.mark.usefixtures("two_threads")
def test_threads_leave_the_flags_as_they_were(pairs, monkeypatch):
    """Also if the first one to start ends first."""
    flags = torch.backends.cudnn
    monkeypatch.setattr(flags, "deterministic", False)
    started = Barrier(2)

    def loss(predicted, true):
        if len(seen) < 2:
            seen.append(flags.deterministic)
            started.wait(timeout=20)
        return mean_square(predicted, true)

    seen = []
    tasks = [
        Task(
            DenseNetwork((3, 4, 2), seed=seed),
            *pairs,
            loss,
            make_plan(epochs=1 + 20 * seed, small=True),
        )
        for seed in range(2)
    ]
    train_together(tasks)
    assert seen == [True, True]
    assert not flags.deterministic


def test_tensor_cores_are_left_in_any_order():
    before = precision_flags()
    first, second = tensor_cores(), tensor_cores()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert precision_flags()[0]
    second.__exit__(None, None, None)
    assert precision_flags() == before


def test_a_plan_says_everything_but_when_to_stop_early():
    with pytest.raises(TypeError, match="missing"):
        Plan(epochs=3)
    plan = make_plan(epochs=3)
    assert (plan.early_stop, plan.small) == (None, False)
