"""The example of an inversion: its chains keep their laws, and a small one runs."""

import sys
from pathlib import Path

import numpy as np
import pytest

from twoscale.files import read_json, write_json

FOLDER = Path(__file__).parents[2] / "examples" / "inversion"


@pytest.fixture
def example(monkeypatch):
    """The modules of the example, which import each other by name."""
    monkeypatch.syspath_prepend(FOLDER)
    import chains
    import inversion
    import picture

    yield inversion, chains, picture
    for name in ("chains", "inversion", "picture"):
        sys.modules.pop(name)


def test_delayed_acceptance_has_the_exact_posterior(example):
    """The target is N(1, 0.5²), and the cheap model is off by 0.2 and too wide."""
    _, chains, _ = example
    reference = chains.Reference(np.zeros(1), np.eye(1))
    potential = lambda x: 2 * float((x[0] - 1) ** 2) - reference.potential(x)  # noqa: E731
    screen = lambda x: 1.5 * float((x[0] - 1.2) ** 2) - reference.potential(x)  # noqa: E731
    found = chains.delayed_acceptance(
        potential, screen, reference, 6000, 3, 0.8, np.random.default_rng(0)
    )
    assert found.effective_samples > 1000
    assert found.samples.mean() == pytest.approx(1.0, abs=0.06)
    assert found.samples.std() == pytest.approx(0.5, abs=0.04)
    plain = chains.metropolis(potential, reference, 6000, 0.8, np.random.default_rng(1))
    assert plain.samples.mean() == pytest.approx(1.0, abs=0.06)
    assert plain.samples.std() == pytest.approx(0.5, abs=0.04)


def test_proposals_keep_their_reference(example):
    _, chains, _ = example
    reference = chains.Reference(np.array([1.0, -2.0]), np.array([[4.0, 1.0], [1.0, 2.0]]))
    found = chains.metropolis(lambda x: 0.0, reference, 8000, 0.9, np.random.default_rng(0))
    assert found.accepted == 1
    np.testing.assert_allclose(found.samples.mean(0), reference.mean, atol=0.05)
    covariance = np.linalg.inv(reference.precision)
    np.testing.assert_allclose(np.cov(found.samples.T), covariance, atol=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_samples_of_an_autoregression(example, correlation):
    _, chains, _ = example
    noise = np.random.default_rng(0).standard_normal(20_000)
    values = np.empty_like(noise)
    values[0] = noise[0]
    for step in range(1, len(noise)):
        values[step] = correlation * values[step - 1] + noise[step]
    expected = len(noise) * (1 - correlation) / (1 + correlation)
    assert chains.effective_size(values) == pytest.approx(expected, rel=0.2)
    assert chains.effective_size(np.ones(5)) == 1


@pytest.mark.filterwarnings("ignore::twoscale.TwoscaleWarning")
def test_a_small_inversion(example, tmp_path):
    inversion, _, picture = example
    assert inversion.Setup().points ** 2 == 169
    record = inversion.run(inversion.SMALL)
    assert record["observations"] == 16
    assert record["map"]["medium_error"] < 0.3
    exact, delayed = (record["chains"][name] for name in ("exact", "delayed"))
    assert exact["exact_solves"] == inversion.SMALL.steps + 1
    assert delayed["exact_solves"] <= inversion.SMALL.steps / inversion.SMALL.subchain + 1
    assert set(record["saved"]) == {"needed_without_surrogate", "used", "saved", "training"}
    write_json(tmp_path / "record.json", record)
    picture.draw(tmp_path / "record.json", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_record_is_of_the_whole_size(example):
    inversion, _, _ = example
    record = read_json(FOLDER.parents[1] / "results" / "inversion.json")
    assert record["setup"] == vars(inversion.Setup())
    assert record["observations"] == 169
    other = read_json(FOLDER.parents[1] / "results" / "inversion-low-noise.json")
    assert other["setup"] == record["setup"] | {"noise": 0.02, "steps": 30_000}
