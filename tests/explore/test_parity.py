"""What the page computes is what twoscale computes: predictions, solutions, trust, certificates."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
import torch

from tests.explore.conftest import SCRIPTS
from twoscale import Darcy, Grid, Poisson, Surrogate
from twoscale.explore.parts import describe_operator
from twoscale.explore.server import field_parts
from twoscale.explore.tensors import ArrayPacker, unpacked
from twoscale.explore.trust import describe_trust
from twoscale.fields.source import Batch
from twoscale.trust import certify

NUMERIC = SCRIPTS[: SCRIPTS.index("worker.js") + 1]
SAMPLES = 90


@pytest.fixture(scope="module")
def tab(browser):
    """An empty page with the scripts that compute."""
    opened = browser.new_page()
    for name in NUMERIC:
        text = (files("twoscale.explore") / "front" / name).read_text(encoding="utf-8")
        opened.add_script_tag(content=text)
    yield opened
    opened.close()


def relative(found, wanted):
    found, wanted = (np.asarray(one, float).ravel() for one in (found, wanted))
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def smooth(samples, channels, height, width, seed=0):
    """Random smooth fields."""
    values = torch.randn(
        samples, channels, height, width, generator=torch.Generator().manual_seed(seed)
    )
    return 0.1 * values.cumsum(2).cumsum(3)


def make(
    problem, grid, method, *, samples=SAMPLES, positive=False, channels=1, parameters=0, **settings
):
    """Return a fitted surrogate and three new inputs with parameters."""
    if problem is not None:
        x = problem.sample(grid, range(samples), seed=0)[:, None].float()
        u = problem.solve(x)
    else:
        x = smooth(samples, channels, *grid.shape)
        x = x.exp() if positive else x
        u = x.cumsum(2).sum(1, keepdim=True) + 0.2 * x[:, :1] ** 2
        u = torch.cat([u, u.flip(3)], 1) if channels > 1 else u
    scalars = torch.rand(samples, parameters, generator=torch.Generator().manual_seed(1))
    if parameters:
        u = u * (1 + scalars[:, :1, None, None])
    cut = samples - 3
    surrogate = Surrogate(method, problem=problem, periodic=grid.periodic, device="cpu", **settings)
    given = {"parameters": scalars[:cut]} if parameters else {}
    surrogate.fit(x[:cut], u[:cut], **given)
    return surrogate, x[cut:], scalars[cut:]


P26, D17 = (Poisson(), Grid((26, 26))), (Darcy(), Grid((17, 17)))
CASES = {
    "global affine": (*P26, "global", {"predictor": "affine"}),
    "local mlp": (*P26, "local", {"predictor": "mlp", "epochs": 2}),
    "overlap affine": (*P26, "overlap", {"predictor": "affine"}),
    "two-scale affine": (*P26, "two-scale", {"predictor": "affine", "few_features": False}),
    "three-scale kernel": (*D17, "three-scale", {"predictor": "kernel", "few_features": False}),
    "conforming affine-mlp": (*P26, "conforming", {"predictor": "affine-mlp", "epochs": 2}),
    "whole-field filter": (*P26, "whole-field", {"predictor": "filter"}),
    "two-scale filter": (*P26, "two-scale", {"predictor": "filter", "few_features": False}),
    "periodic filter": (
        None,
        Grid((16, 12), periodic=(True, False)),
        "whole-field",
        {"predictor": "filter"},
    ),
    "filter of channels": (
        None,
        Grid((11, 9), periodic=(True, True)),
        "whole-field",
        {"predictor": "filter", "channels": 2, "parameters": 1},
    ),
    "symmetries": (
        *D17,
        "two-scale",
        {"predictor": "affine", "symmetries": "square", "average_symmetries": True},
    ),
    "channels": (None, Grid((18, 13)), "conforming", {"predictor": "affine", "channels": 2}),
    "parameters": (None, Grid((12, 15)), "local", {"predictor": "kernel", "parameters": 2}),
    "logarithm": (
        None,
        Grid((16, 16)),
        "local",
        {"predictor": "affine", "input_transform": "log", "positive": True},
    ),
    "periodic": (None, Grid((16, 12), periodic=(True, False)), "overlap", {"predictor": "affine"}),
}


def described(surrogate, fields):
    space = surrogate.input_space_
    return {
        "model": describe_operator(surrogate.operator_, ArrayPacker()),
        "shape": [space.channels, *space.grid.shape],
        "input": ArrayPacker()(fields),
    }


PREDICT = """({model, shape, input, most}) => {
  const fields = Float64Array.from(Numerics.unpack(input));
  return Model.load(model, shape).parts(fields, most).map((part) => [...part]);
}"""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_page_predicts_what_the_surrogate_predicts(tab, case):
    problem, grid, method, settings = CASES[case]
    surrogate, x, scalars = make(problem, grid, method, **settings)
    given = {"parameters": scalars[:1]} if scalars.shape[1] else {}
    wanted = surrogate.predict(x[:1], **given)[0]
    planes = scalars[0, :, None, None].expand(-1, *grid.shape)
    fields = torch.cat([x[0], planes])
    parts = tab.evaluate(PREDICT, described(surrogate, fields) | {"most": None})
    assert relative(np.sum(parts, axis=0), wanted) <= 1e-5
    own = field_parts(surrogate, Batch(x[:1], scalars[:1]))
    for found, part in zip(parts, own, strict=True):
        assert relative(found, part[0]) <= 2e-5


def test_few_modes_and_half_precision(tab):
    surrogate, x, _ = make(*P26, "two-scale", predictor="affine", few_features=False)
    content = described(surrogate, x[0])
    found = tab.evaluate(PREDICT, content | {"most": 2})
    wanted = field_parts(surrogate, Batch.of(x[:1]), modes=2)
    assert all(relative(one, other[0]) <= 1e-5 for one, other in zip(found, wanted, strict=True))
    whole = tab.evaluate(PREDICT, content | {"most": None})
    small = ArrayPacker(small=True)
    content["model"] = describe_operator(surrogate.operator_, small)
    rounded = tab.evaluate(PREDICT, content | {"most": None})
    assert 0 < relative(np.sum(rounded, 0), np.sum(whole, 0)) < 5e-3


SOLVE = """({name, shape, input}) =>
  [...Solver.solve(name, Float64Array.from(Numerics.unpack(input)), shape)]"""


@pytest.mark.parametrize(
    "problem", [Poisson(), Darcy(high=100.0, low=1.0)], ids=["poisson", "darcy"]
)
@pytest.mark.parametrize("shape", [(33, 33), (17, 40)], ids=str)
def test_the_page_solves_equations(tab, problem, shape):
    x = problem.sample(Grid(shape), [3], seed=1).float()
    asked = {"name": problem.name, "shape": shape, "input": ArrayPacker()(x[0])}
    assert relative(tab.evaluate(SOLVE, asked), problem.solve(x)[0]) <= 1e-8


CERTIFY = """({name, shape, input, field}) => {
  const read = (packed) => Float64Array.from(Numerics.unpack(packed));
  const asked = { version: Math.random(), name, shape };
  return SolverWorker.answer({ ...asked, input: read(input), prediction: read(field) });
}"""


@pytest.mark.parametrize("problem", [Poisson(), Darcy()], ids=["poisson", "darcy"])
@pytest.mark.parametrize("wrong", [0.0, 1e-3, 3.0])
def test_the_page_certifies(tab, problem, wrong):
    x = problem.sample(Grid((20, 25)), [0], seed=2).float()
    u = problem.solve(x)
    field = (u + wrong * u.abs().max() * smooth(1, 1, 20, 25)[0]).double().numpy()
    pack = ArrayPacker()
    asked = {"name": problem.name, "shape": (20, 25)}
    asked |= {"input": pack(x[0], "exact"), "field": pack(field[0], "exact")}
    found = tab.evaluate(CERTIFY, asked)["certificate"]
    wanted = certify(field, x, problem)
    for name, values in wanted.as_dict().items():
        rounding = 1e-9 if wrong else 1e-12
        assert found[name] == pytest.approx(values[0], rel=1e-4, abs=rounding), name


TRUST = """({trust, shape, outputs, input, field, parameters, name, level}) => {
  const read = (packed) => Float64Array.from(Numerics.unpack(packed));
  const distances = Trust.knownInputs(trust.known)(read(input), parameters, shape);
  const scores = { distance: Trust.unusual(distances) };
  if (name) {
    const sides = outputs.slice(1);
    const system = Solver.system(name, read(input), sides);
    scores.residual = Solver.residualScore(system, read(field), sides);
  }
  const widths = trust.band.levels.find((one) => one.level === level);
  const { radius, width } = Trust.banded(trust.band, scores, widths, read(field), outputs);
  return { distances, radius, width: [...width] };
}"""


@pytest.mark.parametrize("kind", ["poisson", "darcy", "unknown"])
def test_the_page_knows_radius_and_range(tab, kind):
    problem = {"poisson": Poisson(), "darcy": Darcy()}.get(kind)
    options = {} if problem else {"parameters": 1}
    surrogate, x, scalars = make(
        problem, Grid((18, 18)), "global", samples=400, predictor="affine", **options
    )
    given = {"parameters": scalars} if scalars.shape[1] else {}
    with pytest.warns(UserWarning, match="unlike"):
        wanted = surrogate.assess(1.6 * x, level=0.9, **given)
    pack = ArrayPacker()
    for place in range(len(x)):
        asked = {
            "trust": describe_trust(surrogate, pack),
            "shape": [1, 18, 18],
            "outputs": [1, 18, 18],
            "input": pack(1.6 * x[place]),
            "field": pack(wanted.fields[place]),
            "parameters": scalars[place].tolist(),
            "name": problem.name if problem else None,
            "level": 0.9,
        }
        found = tab.evaluate(TRUST, asked)
        for name in ("roughness", "code", "values"):
            assert np.allclose(
                found["distances"][name],
                getattr(wanted.flags, name)[place][: len(found["distances"][name])],
                rtol=1e-3,
            ), name
        assert found["radius"] == pytest.approx(wanted.radius[place], rel=2e-3)
        width = (wanted.upper[place] - wanted.lower[place]) / 2
        assert relative(found["width"], width) < 5e-3


def test_numbers_survive_packing(tab):
    pack = ArrayPacker()
    values = torch.tensor([0.0, 1.5, -2.0e-3, 65504.0, 6e-8, float("inf")])
    for packed in (pack(values), pack(values[:3], "half"), pack(values.double(), "exact")):
        found = tab.evaluate("(packed) => [...Numerics.unpack(packed)].map(String)", packed)
        assert np.allclose(np.array(found, float), unpacked(packed).astype(float), equal_nan=True)
