import pytest
import torch

from twoscale.data import description, generate, generation
from twoscale.problems import Darcy, Poisson
from twoscale_lab.study.datasets import GeneratedDataset


@pytest.mark.parametrize("problem", [Poisson(), Darcy()], ids=lambda p: p.name)
def test_a_dataset_in_memory_has_the_fields_of_a_stored_one(tmp_path, monkeypatch, problem):
    monkeypatch.setitem(generation._BATCH_VALUES, "cpu", 3 * 13 * 13)  # several batches
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 13 * 13)
    asked = {"resolution": 13, "samples": 7, "seed": 3}
    stored = generate(problem, tmp_path / "data.zarr", **asked)
    kept = GeneratedDataset(problem, **asked)
    assert kept.problem == stored.problem
    assert (kept.samples, kept.layout) == (stored.samples, stored.layout)
    assert kept.identity != GeneratedDataset(problem, **(asked | {"seed": 4})).identity
    for name in ("input", "output"):
        assert torch.equal(kept.load(name, [2, 5]), stored.load(name, [2, 5]))
