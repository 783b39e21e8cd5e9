"""Fits whose codes or fields are in scratch files: nothing that long is in memory."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.conftest import make_poisson
from twoscale import Surrogate, TwoscaleError
from twoscale.fields.source import slices
from twoscale.fields.workers import IN_TURN
from twoscale.operators.operators import CodeOperator
from twoscale.runtime import scratch as module
from twoscale.runtime.scratch import Scratch

SAMPLES = 4000
NODES, SHORTEST_CODE = 64, 10
MEMORY = 200_000  # bytes: no code of a training fits a sixteenth of them
_NET = {"epochs": 1, "hidden_layers": 1, "hidden_width": 8, "batch_size": 8}
_FIELD_NET = {"epochs": 1, "batch_size": 8}

NETWORKS = {
    "mlp": ("two-scale", _NET),
    "mlp on fields' errors": ("two-scale", {**_NET, "objective": "field"}),
    "images": ("local", {**_NET, "symmetries": "mirrors"}),
    "encoder": (
        "whole-field",
        {"predictor": "encoder", "width": 4, "blocks": 1, **_FIELD_NET, "symmetries": "mirrors"},
    ),
    "encoder of codes": (
        "two-scale",
        {"predictor": "encoder", "width": 4, "blocks": 1, **_FIELD_NET},
    ),
    "fno": (
        "fno",
        {"layers": 1, "width": 3, "modes": 2, "padding": 2, "evaluation_batch": 8, **_FIELD_NET},
    ),
    "refinement": (
        "refinement",
        {**_NET, "refinement_epochs": 1, "channels": 2, "refinement_batch_size": 8},
    ),
}
CLOSED_FORMS = {
    "affine": ("two-scale", {"predictor": "affine"}),
    "affine for fields": ("two-scale", {"predictor": "affine", "objective": "field"}),
    "affine-mlp": ("two-scale", {"predictor": "affine-mlp", **_NET}),
    "filter": ("whole-field", {"predictor": "filter"}),
}


class FewAtATime:
    """Fields that come a few at a time, as from a file; all work is done in this thread."""

    workers = IN_TURN

    def __init__(self, fields):
        self.fields = fields

    @property
    def shape(self):
        return tuple(self.fields.shape)

    def ranges(self):
        return list(slices(len(self.fields), 100))

    def read(self, samples):
        yield self.fields[samples].clone()

    def chunks(self):
        for part in self.ranges():
            yield from self.read(part)

    def to(self, device):
        return self


class Watch(TorchDispatchMode):
    """Notes every tensor outside of files that has at least so many bytes."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.found = []
        self.files = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        for one in tree_leaves(result):
            if not isinstance(one, torch.Tensor):
                continue
            storage = one.untyped_storage()
            if min(one.numel() * one.element_size(), storage.nbytes()) >= self.limit:
                self.files += storage.filename is not None
                if storage.filename is None:
                    self.found.append(f"{function}: {tuple(one.shape)}")
        return result


@pytest.fixture(scope="module")
def sources():
    data = make_poisson((8, 8), SAMPLES + 40).batch
    return (
        tuple(FewAtATime(one[:SAMPLES]) for one in data),
        tuple(FewAtATime(one[SAMPLES:]) for one in data),
    )


def fitted(sources, method, settings, **options):
    training, validation = sources
    surrogate = Surrogate(method, device="cpu", **settings)
    return surrogate.fit(*training, validation=validation, calibration=False, **options)


def weights(surrogate):
    return surrogate.operator_.state_dict()


def watched_fit(monkeypatch, tmp_path, sources, method, settings):
    """Return a fit with scratch files, and what was in memory from the encoding on."""
    numbers = NODES if method in ("whole-field", "fno") else SHORTEST_CODE
    watch, encode = Watch(4 * SAMPLES * numbers), CodeOperator.encode_pairs
    begun = []

    def watched(self, *arguments, **options):
        if not begun:
            begun.append(watch.__enter__())
        return encode(self, *arguments, **options)

    monkeypatch.setattr(CodeOperator, "encode_pairs", watched)
    try:
        found = fitted(sources, method, settings, scratch=Scratch(tmp_path / "scratch", MEMORY))
    finally:
        if begun:
            watch.__exit__(None, None, None)
    return found, watch


@pytest.mark.parametrize("case", NETWORKS)
def test_a_network_is_trained_from_files_as_in_memory(case, sources, tmp_path, monkeypatch):
    method, settings = NETWORKS[case]
    monkeypatch.setattr(module, "_PART_VALUES", 2**13)
    expected = fitted(sources, method, settings)
    found, watch = watched_fit(monkeypatch, tmp_path, sources, method, settings)
    assert watch.files
    assert watch.found == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "scratch"]
    for name, one in weights(expected).items():
        if case == "mlp on fields' errors":  # products of parts are rounded otherwise
            torch.testing.assert_close(weights(found)[name], one, rtol=1e-3, atol=1e-5)
        else:
            assert torch.equal(weights(found)[name], one), name


@pytest.mark.parametrize("case", CLOSED_FORMS)
def test_closed_forms_read_files_in_parts(case, sources, tmp_path, monkeypatch):
    method, settings = CLOSED_FORMS[case]
    expected = fitted(sources, method, settings)
    whole = fitted(sources, method, settings, scratch=Scratch(tmp_path / "whole", MEMORY))
    for name, one in weights(expected).items():
        assert torch.equal(weights(whole)[name], one), "one part is all there is at this size"
    monkeypatch.setattr(module, "_PART_VALUES", 2**13)
    monkeypatch.setattr("twoscale.fields.source._CHUNK_VALUES", 2**13)
    found, watch = watched_fit(monkeypatch, tmp_path, sources, method, settings)
    assert watch.files
    assert watch.found == []
    for name, one in found.chosen_.items():
        if isinstance(one, float):
            assert one == pytest.approx(expected.chosen_[name], rel=1e-2)
    x, u = (source.fields for source in sources[1])
    assert found.evaluate(x, u)["mre"] == pytest.approx(expected.evaluate(x, u)["mre"], rel=1e-2)


@pytest.mark.parametrize("objective", ["A3", "A4", "A5"])
def test_fine_tuning_from_files_is_that_in_memory(objective, sources, tmp_path):
    base = fitted(sources, "two-scale", {**_NET, "problem": "poisson"})
    plan = {"objective": objective, "epochs": 1, "warm_up": 0, "ramp": 1, "batch_size": 8}
    training, validation = sources
    expected = base.finetune(*training, validation=validation, **plan)
    scratch = Scratch(tmp_path / "scratch", MEMORY)
    found = base.finetune(*training, validation=validation, scratch=scratch, **plan)
    assert scratch.folder.exists()
    for name, one in weights(expected).items():
        assert torch.equal(weights(found)[name], one), name


def test_a_kernel_keeps_to_the_memory_that_is_allowed(sources, tmp_path):
    settings = {"predictor": "kernel"}
    with pytest.raises(TwoscaleError, match="kernel_samples to at most"):
        fitted(sources, "two-scale", settings, scratch=Scratch(tmp_path, 10**7))
    few = {**settings, "kernel_samples": 200}
    found = fitted(sources, "two-scale", few, scratch=Scratch(tmp_path, 10**7))
    assert len(found.operator_.predictor.regression.centres) == 200
