"""Replayed predictions are the operator's, whatever happens to it, to them, or beside them."""

import copy
import gc
import pickle
import threading
from functools import partial

import pytest
import torch
from torch import nn

from tests.surrogate.tiny import TINY
from twoscale import METHODS, Surrogate
from twoscale.runtime import cuda_graphs
from twoscale.runtime.cuda_graphs import (
    Recordings,
    exclusive_stream,
    record,
    replayed,
    side_by_side,
    warm_up,
)
from twoscale.runtime.precision import tensor_cores

any_method = pytest.mark.parametrize("method", METHODS)


class Fake:
    """A recording without a GPU."""

    made: list[tuple[int, ...]]

    def __init__(self, operator, fields, pool):
        self.made.append(tuple(fields.shape))
        self.graph = self

    def pool(self):
        return self


@pytest.fixture
def recordings(monkeypatch):
    monkeypatch.setattr(Fake, "made", [], raising=False)
    monkeypatch.setattr(cuda_graphs, "Recording", Fake)
    return Recordings()


def batch(size):
    return torch.zeros(size, 8, 8)


def in_threads(works):
    """Do all works at the same time, each in a thread."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# What is recorded, and when


def test_on_a_cpu_it_is_the_operator_and_nothing_is_kept():
    operator = nn.Linear(3, 3)
    fields = torch.randn(2, 3, requires_grad=True)
    for _ in range(3):
        predicted = replayed(operator, fields)
        torch.testing.assert_close(predicted, operator(fields))
    assert not predicted.requires_grad
    assert operator not in cuda_graphs._RECORDINGS


def test_the_second_batch_of_a_shape_is_recorded_and_the_shapes_used_last_are_kept(recordings):
    operator = nn.Linear(3, 3)
    for size in (1, 2, 3, 4):
        assert recordings.find(operator, batch(size)) is None
        assert isinstance(recordings.find(operator, batch(size)), Fake)
    first = recordings.find(operator, batch(1))
    assert Fake.made == [(size, 8, 8) for size in (1, 2, 3, 4)]
    recordings.find(operator, batch(5))  # takes the place of 2
    assert recordings.find(operator, batch(1)) is first
    assert recordings.find(operator, batch(2)) is None
    assert len(recordings.known) == 4


CHANGES = {
    "another type": lambda operator: operator.double(),
    "another weight": lambda operator: operator[0].register_parameter(
        "weight", nn.Parameter(torch.zeros(3, 3))
    ),
    "other memory": lambda operator: setattr(operator[0].weight, "data", torch.zeros(3, 3)),
    "another buffer": lambda operator: operator[1].register_buffer("running_mean", torch.ones(3)),
    "another layer": lambda operator: setattr(operator, "1", nn.Linear(3, 3)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_operator_or_precision_is_recorded_anew_and_new_values_are_not(recordings, change):
    operator = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    found = [recordings.find(operator, batch(1)) for _ in range(2)][1]
    with tensor_cores():
        assert recordings.find(operator, batch(1)) is None
    operator[0].load_state_dict(nn.Linear(3, 3).state_dict())
    assert recordings.find(operator, batch(1)) is found
    CHANGES[change](operator)
    assert recordings.find(operator, batch(1)) is None


# On a GPU


@pytest.fixture(scope="module")
def arrays(poisson16):
    x, u = poisson16
    return x[:160], u[:160], x[160:]


@pytest.fixture(scope="module")
def fitted(arrays):
    x, u, _ = arrays
    return {
        method: Surrogate(method, device="cuda", **TINY[method]).fit(x, u) for method in METHODS
    }


def eager(surrogate, fields):
    with torch.no_grad():
        return surrogate.operator_(fields[:, None])[:, 0]


def check_close(found, expected):
    assert float((found - expected).norm()) <= 1e-5 * float(expected.norm())


@pytest.mark.gpu
@any_method
@pytest.mark.parametrize("size", [1, 7])
def test_replayed_predictions_are_the_eager_ones(method, size, fitted, arrays):
    surrogate, new = fitted[method], arrays[2].cuda()
    results = [(new[k : k + size], surrogate.predict(new[k : k + size])) for k in range(5)]
    recorded = cuda_graphs._RECORDINGS[surrogate.operator_].known
    assert size in [shape[0] for ((shape, *_), *_) in recorded]
    for fields, predicted in results:  # none was overwritten by a later one
        check_close(predicted, eager(surrogate, fields))


@pytest.mark.gpu
def test_arrays_and_strided_fields_are_replayed_too(fitted, arrays):
    surrogate, new = fitted["two-scale"], arrays[2]
    expected = eager(surrogate, new[::4].cuda()).cpu()
    for _ in range(3):
        check_close(surrogate.predict(new.cuda()[::4]).cpu(), expected)
        check_close(torch.from_numpy(surrogate.predict(new[::4].numpy())), expected)


@pytest.mark.gpu
def test_large_batches_are_not_recorded(fitted, arrays, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_LARGEST", 3 * 16 * 16)
    surrogate, new = copy.deepcopy(fitted["local"]), arrays[2].cuda()
    for _ in range(3):
        check_close(surrogate.predict(new[:4]), eager(surrogate, new[:4]))
    assert surrogate.operator_ not in cuda_graphs._RECORDINGS


@pytest.mark.gpu
def test_tensor_cores_are_recorded_where_the_operator_uses_them(arrays):
    """Products of 32 channels in full precision differ from rounded ones by far more than 1e-6."""
    x, u, new = arrays
    settings = {"epochs": 1, "layers": 2, "width": 32, "modes": 4}
    surrogate = Surrogate("fno", device="cuda", **settings).fit(x, u)
    fields = new[:2].cuda()
    expected = eager(surrogate, fields)
    operator = surrogate.operator_
    with torch.no_grad():
        scaled = operator.inputs.scale(fields[:, None])
        plain = operator.outputs.scale.undo(operator.predictor.network(scaled))[:, 0]
    found = [surrogate.predict(fields) for _ in range(3)][2]
    distance = (plain - expected).norm()
    assert distance > 0
    assert (found - expected).norm() < 0.1 * distance


@pytest.mark.gpu
def test_predictions_follow_the_operator(fitted, arrays):
    x, u, new = arrays
    fields = new[:2].cuda()
    surrogate = copy.deepcopy(fitted["two-scale"])
    for change in (
        lambda: surrogate.fit(x, u),
        lambda: surrogate.operator_.predictor.trained[0].weight.data.mul_(2),
        lambda: surrogate.operator_.double().float(),
        lambda: setattr(surrogate, "state_", copy.deepcopy(fitted["local"].state_)),
    ):
        for _ in range(3):
            before = surrogate.predict(fields)
        change()
        torch.empty(2**24, device="cuda").fill_(torch.nan)  # over whatever was freed
        for _ in range(3):
            check_close(surrogate.predict(fields), eager(surrogate, fields))
    assert not torch.equal(before, surrogate.predict(fields))


@pytest.mark.gpu
def test_recordings_are_neither_saved_nor_copied_and_end_with_the_operator(
    fitted, arrays, tmp_path
):
    fields = arrays[2][:2].cuda()
    surrogate = copy.deepcopy(fitted["local"])
    expected = [surrogate.predict(fields) for _ in range(3)][2]
    surrogate.save(tmp_path / "s")
    again = Surrogate.load(tmp_path / "s", device="cuda")
    for other in (copy.deepcopy(surrogate), pickle.loads(pickle.dumps(surrogate)), again):
        known = cuda_graphs._RECORDINGS.get(other.operator_, Recordings()).known
        assert all(one is None for one in known.values())
        for _ in range(3):
            check_close(other.predict(fields), expected)
    gc.collect()
    count = len(cuda_graphs._RECORDINGS)
    del surrogate
    gc.collect()
    assert len(cuda_graphs._RECORDINGS) == count - 1


@pytest.mark.gpu
@pytest.mark.parametrize("own_streams", [False, True])
def test_threads_do_not_disturb_each_other(fitted, arrays, own_streams):
    new = arrays[2].cuda()
    surrogates = [fitted["two-scale"], fitted["two-scale"], fitted["local"], fitted["fno"]]
    expected = [[eager(one, new[k : k + 2]) for k in range(20)] for one in surrogates]
    torch.cuda.synchronize()
    wrong = []

    def work(place):
        stream = torch.cuda.Stream() if own_streams else torch.cuda.current_stream()
        with torch.cuda.stream(stream):
            for turn in range(200):
                k = (turn + 5 * place) % 20
                found, right = surrogates[place].predict(new[k : k + 2]), expected[place][k]
                if float((found - right).norm()) > 1e-5 * float(right.norm()):
                    wrong.append((place, turn))

    in_threads([partial(work, place) for place in range(len(surrogates))])
    assert wrong == []


@pytest.mark.gpu
def test_inference_mode_and_mixed_precision_come_and_go(fitted, arrays):
    surrogate, fields = copy.deepcopy(fitted["two-scale"]), arrays[2][:3].cuda()
    expected = eager(surrogate, fields)
    with torch.inference_mode():
        for _ in range(3):
            check_close(surrogate.predict(fields), expected)
    for _ in range(2):
        check_close(surrogate.predict(fields.clone()), expected)
    with torch.autocast("cuda"):
        mixed = surrogate.predict(fields)
    assert 0 < float((mixed - expected).norm()) < 0.1 * float(expected.norm())
    check_close(surrogate.predict(fields), expected)


# Recorded work


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_works_side_by_side_give_what_each_of_them_gives(device):
    values = torch.ones(2**20, device=device)
    for _ in range(3):
        values.fill_(2).add_(1)  # before all of them
        found = side_by_side([lambda k=k: values * k for k in range(9)], values.device)
        values.zero_()  # after all of them
        assert torch.stack(found).sum(0).unique().tolist() == [3.0 * 36]


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
def test_turns_of_threads_on_their_own_streams_are_in_order():
    """Each turn reads and writes the same memory in several steps."""
    values = torch.zeros(2**22, device="cuda")

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                with exclusive_stream(values.device):
                    values.copy_(values.clone().add_(1))

    torch.cuda.synchronize()
    in_threads([work] * 4)
    torch.cuda.synchronize()
    assert float(values.min()) == float(values.max()) == 200.0
