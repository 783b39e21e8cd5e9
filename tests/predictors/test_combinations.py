"""Any input representation, any predictor, any output representation."""

import numpy as np
import pytest
import torch

from tests.covering import covering
from tests.sources import field_pairs, fit_on
from twoscale import Chain, Conforming, GlobalPCA, Grid, PatchPCA, Surrogate, ThreeScale, TwoScale
from twoscale.domain.space import Space
from twoscale.fields.source import ArraySource
from twoscale.operators.spec import SurrogateSpec
from twoscale.predictors import (
    FNO,
    MLP,
    Affine,
    AffineMLP,
    Encoder,
    Kernel,
    Refinement,
    SpectralFilter,
    predictors,
)
from twoscale.representation import WholeField

NETWORK = {"hidden_layers": 1, "hidden_width": 8, "epochs": 2}
TRANSFORM = {"layers": 1, "width": 3, "modes": 3, "padding": 2, "epochs": 2}
TINY = {
    "mlp": (MLP, NETWORK),
    "affine": (Affine, {}),
    "affine-mlp": (AffineMLP, NETWORK),
    "kernel": (Kernel, {}),
    "encoder": (Encoder, {"width": 4, "blocks": 1, "epochs": 2}),
    "fno": (FNO, TRANSFORM),
    "filter": (SpectralFilter, {}),
}
INPUTS = {
    "whole field": WholeField,
    "global": lambda: GlobalPCA(0.95),
    "patches": lambda: PatchPCA(0.95, patches=(2, 2)),
    "chain": lambda: Chain({"whole": GlobalPCA(4), "rest": PatchPCA(0.9, patches=(2, 2))}),
}
OUTPUTS = {
    "whole field": WholeField,
    "overlap": lambda: PatchPCA(0.99, patches=(2, 2), overlap=True),
    "two-scale": lambda: TwoScale(patches=(2, 2), coarse_components=4),
    "three-scale": lambda: ThreeScale(coarse_components=4),
    "conforming": lambda: Conforming(patches=(2, 2), code_size=30),
}
SOME_INPUTS = ["whole field", "patches"]
SOME_OUTPUTS = ["whole field", "two-scale"]
BETWEEN_GRIDS = [name for name in TINY if name != "filter"]
any_predictor = pytest.mark.parametrize("predictor", TINY)
any_three = pytest.mark.parametrize(
    ("inputs", "predictor", "outputs"), covering(INPUTS, TINY, OUTPUTS)
)
other_grids = pytest.mark.parametrize(
    ("inputs", "predictor", "outputs"), covering(SOME_INPUTS, BETWEEN_GRIDS, SOME_OUTPUTS)
)
between_grids = pytest.mark.parametrize("predictor", BETWEEN_GRIDS)
some_three = pytest.mark.parametrize(
    ("inputs", "predictor", "outputs"), covering(SOME_INPUTS, TINY, SOME_OUTPUTS)
)


@pytest.fixture(scope="module")
def few_pairs(poisson16):
    """Training and validation pairs of 40 and 10 samples, for what any training must keep."""
    x, u = poisson16.batch
    parts = slice(40), slice(40, 50)
    return tuple(field_pairs(ArraySource(x[part]), ArraySource(u[part])) for part in parts)


def make(name, **arguments):
    kind, tiny = TINY[name]
    return kind(**{**tiny, **arguments})


def test_every_predictor_is_combined():
    assert set(TINY) == set(predictors())


@any_three
def test_any_three_parts_are_fitted_described_and_restored(
    inputs, predictor, outputs, few_pairs, poisson16
):
    parts = SurrogateSpec(INPUTS[inputs](), make(predictor), OUTPUTS[outputs]())
    operator = fit_on(parts.operator(), *few_pairs)
    x = poisson16.batch.inputs[150:156]
    with torch.no_grad():
        expected = operator(x)
    assert expected.shape == x.shape
    assert bool(torch.isfinite(expected).all())
    again = SurrogateSpec.from_description(parts.describe()).operator()
    again.restore(operator.state_dict(), Space(Grid.square(16)), Space(Grid.square(16)))
    with torch.no_grad():
        assert torch.equal(again(x), expected)


@some_three
def test_with_symmetries(inputs, predictor, outputs, few_pairs, poisson16):
    parts = SurrogateSpec(
        INPUTS[inputs](),
        make(predictor),
        OUTPUTS[outputs](),
        symmetries="square",
        average_symmetries=True,
    )
    operator = fit_on(parts.operator(), *few_pairs)
    x = poisson16.batch.inputs[150:153]
    with torch.no_grad():
        turned = operator(x.rot90(1, (2, 3)))
        torch.testing.assert_close(turned, operator(x).rot90(1, (2, 3)), rtol=1e-3, atol=1e-5)


@other_grids
def test_channels_and_grids_may_differ(inputs, predictor, outputs, generator):
    """Three channels on 12 x 9 nodes to two on 17 x 14, periodic columns."""
    spaces = (Space(Grid((12, 9)), 3), Space(Grid((17, 14), periodic=(False, True)), 2))
    made = [torch.randn(40, *space.shape, generator=generator) for space in spaces]
    part = field_pairs(*map(ArraySource, made), spaces)
    representation = TwoScale(patches=(2, 2), coarse_components=3, few_features=False)
    parts = SurrogateSpec(
        INPUTS[inputs](),
        make(predictor),
        WholeField() if outputs == "whole field" else representation,
    )
    operator = fit_on(parts.operator(), part, part)
    with torch.no_grad():
        predicted = operator(made[0][:5])
    assert predicted.shape == (5, 2, 17, 14)
    assert bool(torch.isfinite(predicted).all())


@between_grids
@pytest.mark.parametrize("outputs", ["whole field", "two-scale"])
def test_parameters_alone(predictor, outputs, arrays):
    _, u, _, _ = arrays
    scalars = np.random.default_rng(0).standard_normal((len(u), 3))
    surrogate = Surrogate(
        inputs=PatchPCA(0.9), predictor=make(predictor), outputs=OUTPUTS[outputs](), device="cpu"
    )
    surrogate.fit(None, u, parameters=scalars)
    assert surrogate.predict(None, parameters=scalars[:4]).shape == (4, 16, 16)


@pytest.mark.parametrize(
    "correction", [Refinement(epochs=1, channels=3), make("encoder"), make("fno")], ids=repr
)
def test_any_network_on_fields_may_correct(correction, arrays, tmp_path):
    x, u, new, _ = arrays
    surrogate = Surrogate(
        inputs=WholeField(),
        predictor=Affine(),
        outputs=TwoScale(coarse_components=4),
        correction=correction,
        device="cpu",
    )
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    assert repr(loaded) == repr(surrogate)
