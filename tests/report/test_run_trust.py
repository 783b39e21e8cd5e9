"""Trust on the page of a run: shares, radii and bounds of test samples, and their pictures."""

from dataclasses import replace

import numpy as np
import pytest

from tests.surrogate.tiny import make
from twoscale import Darcy
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import as_samples
from twoscale.report import run_trust
from twoscale.report.run_samples import measure_samples
from twoscale.report.trust_charts import trust_charts
from twoscale.report.trust_words import break_even_text, trust_text
from twoscale.trust.break_even import FULL, BreakEven

FRESH = 60


@pytest.fixture(scope="module")
def case():
    """A Darcy surrogate with 40 calibration fields, and test pairs."""
    problem = Darcy()
    x, u = (one.float() for one in problem.pairs(problem.grid(16, 16), range(400), seed=0))
    surrogate = make("global", predictor="affine", problem=problem)
    surrogate.fit(x[:260], u[:260], calibration=(x[260:300], u[260:300]))
    return surrogate, x[300 : 300 + FRESH], u[300 : 300 + FRESH]


def look(surrogate, x, u):
    test = Pairs(as_samples(x, "input"), as_samples(u, "output"))
    return measure_samples(surrogate, test, list(range(len(x)))).trust


@pytest.fixture(scope="module")
def trust(case):
    return look(*case)


def test_errors_radii_and_distances_are_those_of_an_assessment(case, trust):
    surrogate, x, u = case
    expected = surrogate.assess(x)
    np.testing.assert_allclose(trust.radii.radii, expected.radius, rtol=1e-5)
    np.testing.assert_array_equal(trust.outside, expected.outside)
    stated = surrogate.evaluate(x, u)["trust"]
    assert trust.radii.held.mean() == pytest.approx(stated["coverage"])
    assert dict(zip(trust.radii.levels, trust.radii.covered, strict=True))[0.95] == pytest.approx(
        stated["coverage"]
    )


def test_true_errors_are_between_their_bounds(trust):
    proofs = trust.proofs
    assert len(proofs.errors) == FRESH
    assert bool((proofs.lower <= (1 + 1e-3) * proofs.errors).all())
    assert bool((proofs.errors <= (1 + 1e-3) * proofs.upper).all())


def test_levels_go_as_far_as_the_calibration(case, trust):
    assert trust.radii.levels.tolist() == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    _, x, u = case
    few = make("global", predictor="affine").fit(x[:50], u[:50], calibration=(x[50:], u[50:]))
    radii = look(few, x, u).radii
    assert radii.level == 0.9
    assert radii.calibrated == 10


def test_what_does_not_apply_is_left_out(case):
    surrogate, x, u = case
    unknown = look(surrogate.with_problem(None), x, u)
    assert (unknown.radii, unknown.proofs) == (None, None)
    assert len(unknown.distances) == FRESH
    untrusted = make("global", predictor="affine").fit(x, u, calibration=False)
    assert look(untrusted, x, u) is None


def test_of_large_fields_the_first_are_looked_at(case, trust, monkeypatch):
    monkeypatch.setattr(run_trust, "_SCORED", 20 * 16**2)
    monkeypatch.setattr(run_trust, "_CERTIFIED", 5 * 16**2)
    found = look(*case)
    np.testing.assert_allclose(found.radii.radii, trust.radii.radii[:20], rtol=1e-6)
    np.testing.assert_allclose(found.proofs.upper, trust.proofs.upper[:5], rtol=1e-6)
    assert len(found.distances) == FRESH


def test_chance_is_what_exchangeable_samples_do(trust):
    """Ratios are drawn alike: in 95 % of the experiments the share is within the range."""
    radii, rng = trust.radii, np.random.default_rng(0)
    low, high = radii.chance
    place = radii.levels.tolist().index(0.8)
    calibration, fresh = rng.random((4000, radii.calibrated)), rng.random((4000, FRESH))
    bound = np.sort(calibration)[:, int(np.ceil(0.8 * (radii.calibrated + 1))) - 1]
    share = (fresh <= bound[:, None]).mean(1)
    inside = (low[place] - 1e-9 <= share) & (share <= high[place] + 1e-9)
    assert 0.94 < inside.mean() < 0.985


def test_all_charts_are_drawn(trust):
    outside = np.arange(FRESH) == 3
    radii = replace(trust.radii, errors=np.where(outside, np.inf, trust.radii.errors))
    far = replace(trust, radii=radii, distances=np.where(outside, 300.0, trust.distances))
    charts = {chart.name: chart for chart in trust_charts(np.arange(FRESH), far)}
    assert list(charts) == ["reliability", "errors-and-radii", "certificates", "distances"]
    drawn = {name: chart.picture().figure for name, chart in charts.items()}
    assert drawn["errors-and-radii"].axes[0].get_xlabel() == "radius at level 0.95 (%)"
    legend = [one.get_text() for one in drawn["distances"].legends[0].texts]
    assert legend[-2:] == [f"outside: {far.outside.sum()}", "limit"]
    assert charts["errors-and-radii"].draw().table["radius %"] == pytest.approx(100 * radii.radii)


# Words

TRUST = {"outside": 0.025, "level": 0.95, "calibration_samples": 20}
RADII = {"coverage": 0.95, "mean_radius": 0.0231}


def test_the_radius_in_words():
    text = trust_text({"samples": 40, "trust": TRUST | RADII})
    for fact in ("level 0.95: 2.31 %", "38 of 40 samples", "on 20. 1 of 40 inputs is unlike"):
        assert fact in text
    assert trust_text({"samples": 40}) == ""


@pytest.mark.parametrize(
    ("calibrated", "facts"), [(4, ("needs 19", "are 4", "at least 38")), (30, ("the equation",))]
)
def test_why_there_is_no_radius(calibrated, facts):
    text = trust_text({"samples": 40, "trust": TRUST | {"calibration_samples": calibrated}})
    assert text.startswith("No error radius")
    assert all(fact in text for fact in facts)


def test_the_break_even_in_words():
    steps = BreakEven(0.001, 0.003, "3 steps of conjugate gradients", 0.012, 10.0)
    never = BreakEven(0.003, 0.001, FULL, 0.012, 10.0)
    facts = {steps: ("1 ms", "gradients take 3 ms", "1.2 %", "about 5,000"), never: ("never",)}
    for found, words in facts.items():
        text = break_even_text({"break_even": found.as_dict()})
        assert all(word in text for word in words)
    assert break_even_text({}) == ""
