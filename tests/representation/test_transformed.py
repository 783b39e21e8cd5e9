import pytest
import torch

from tests.representation.contract import Chunks
from twoscale import Affine, Encoder, GlobalPCA, Surrogate, TwoscaleError, WholeField
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.parts import build, describe
from twoscale.representation import ParameterScale, Representation, Transformed
from twoscale.representation.transformed import TRANSFORMS, worthwhile

SPACE = Space(Grid((8, 8)), 2, names=("k", "f"))


@pytest.fixture
def fields(generator):
    """A positive channel and one that is not, (samples, 2, 8, 8)."""
    values = torch.randn(40, 2, 8, 8, generator=generator)
    values[:, 0] = values[:, 0].exp()
    return values


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_undone(name):
    values = torch.logspace(-3, 3, 20, dtype=torch.float64)
    one = TRANSFORMS[name]
    torch.testing.assert_close(one.undo(one.apply(values)), values)
    if name != "none":
        assert one.apply(torch.tensor([0.0, -1.0])).isnan().all()


@pytest.mark.parametrize("inside", [GlobalPCA(0.9), WholeField()], ids=repr)
def test_codes_are_those_of_the_transformed_fields(inside, fields):
    by_hand = torch.stack([fields[:, 0].log(), fields[:, 1]], 1)
    plain = build(describe(inside), Representation).fit(by_hand, space=SPACE)
    for transform in ("log", ("log", "none")):
        made = Transformed(transform, build(describe(inside), Representation))
        made.fit(Chunks(fields, (7, 9)), space=SPACE)
        assert made.kinds == ("log", "none")
        assert made.compresses == inside.compresses
        # Sums over other chunks are rounded in another way.
        torch.testing.assert_close(made.encode(fields), plain.encode(by_hand), rtol=1e-3, atol=1e-4)
        decoded = made.decode(made.encode(fields))
        torch.testing.assert_close(decoded[:, 0].log(), plain.reconstruct(by_hand)[:, 0])
        torch.testing.assert_close(decoded[:, 1], plain.reconstruct(by_hand)[:, 1])


def test_it_is_described_and_restored(fields):
    made = Transformed("log", GlobalPCA(5)).fit(fields, space=SPACE)
    again = build(describe(made), Representation)
    again.restore(made.state_dict(), SPACE)
    assert again.kinds == made.kinds
    assert torch.equal(again.encode(fields), made.encode(fields))
    for broken in ({}, {"applied": torch.tensor([1, 9])}, {"applied": torch.tensor([1])}):
        with pytest.raises(TwoscaleError, match="transforms of the channels are missing"):
            build(describe(made), Representation).restore(broken, SPACE)


def test_values_that_have_no_logarithm_are_refused(fields):
    made = Transformed("log", GlobalPCA(5)).fit(fields, space=SPACE)
    wrong = fields.clone()
    wrong[3, 0, 2, 2] = -0.25
    with pytest.raises(
        TwoscaleError, match=r"input channel 'k' has the value -0.25, and its logar"
    ):
        made.encode(wrong)
    with pytest.raises(TwoscaleError, match=r"channel 'f' has the value .*, and its reciprocal"):
        Transformed(("log", "reciprocal"), GlobalPCA(5)).fit(fields, space=SPACE)
    with pytest.raises(TwoscaleError, match="positive values only, and there are none: 'k' from"):
        Transformed("log", GlobalPCA(5)).fit(-fields.abs(), space=SPACE)


def test_transforms_that_do_not_fit(fields):
    with pytest.raises(TwoscaleError, match=r"transform must be one of none, log"):
        Transformed("lg", GlobalPCA(5))
    with pytest.raises(TwoscaleError, match=r"one transform per channel .* got 3 \(log, log, log"):
        Transformed(["log"] * 3, GlobalPCA(5)).fit(fields, space=SPACE)
    with pytest.raises(TwoscaleError, match="transforms are for inputs, got outputs=Transformed"):
        Surrogate(outputs=Transformed("log", GlobalPCA(5)))


def test_parameters_are_transformed_before_they_are_scaled(generator):
    scalars = torch.randn(40, 1, generator=generator).exp()
    space = Space(SPACE.grid, 2, parameters=1)
    kinds = Transformed("log", GlobalPCA(5)).parameter_kinds(scalars, space)
    assert kinds == ("log",)
    scale = ParameterScale(("k",)).fit(scalars, kinds)
    logs = scalars.log()
    expected = (logs - logs.mean()) / logs.std(unbiased=False)
    torch.testing.assert_close(scale(scalars), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scale.undo(scale(scalars)), scalars)
    assert Transformed(("log", "none"), GlobalPCA(5)).parameter_kinds(scalars, space) == ("none",)
    with pytest.raises(TwoscaleError, match="'k' has the value -1"):
        scale.check_values(-torch.ones(1, 1))


def test_transforms_that_do_not_fit_parameters(fields):
    scalars, u = fields[:, 0, 0, :2], fields[:, 0]

    def fit(transform, inputs=None):
        made = Surrogate("global", predictor="affine", input_transform=transform)
        return made.fit(inputs, u, parameters=scalars - 100)

    with pytest.raises(TwoscaleError, match=r"for 2 parameters: got 3"):
        fit("log,log,log")
    for inputs in (None, -u.abs()):
        with pytest.raises(TwoscaleError, match=r"positive values only, and there are none: '"):
            fit("log", inputs)


def test_positive_values_of_different_size_are_worth_a_logarithm(fields):
    assert worthwhile(Chunks(fields, (7, 9))) == ("log",)
    assert worthwhile(Chunks(fields[:, 1:], (7, 9))) == ()
    assert worthwhile(Chunks(5 + fields[:, :1].clamp_max(9), (7, 9))) == ()


def test_as_parts_of_a_surrogate(fields):
    k, u = fields[:, 0], fields[:, 0].log().cumsum(2)
    made = Surrogate(
        inputs=Transformed("log", GlobalPCA(0.999)), predictor=Affine(), outputs=GlobalPCA(0.999)
    ).fit(k, u)
    assert made.evaluate(k, u)["mre"] < 0.3
    seen = Surrogate(
        "global", predictor=Encoder(width=4, blocks=1, epochs=1), input_transform="log"
    )
    assert repr(seen.parts.inputs) == "Transformed('log', fields=WholeField())"
    assert seen.fit(k, u).predict(k[:2]).shape == (2, 8, 8)
    with pytest.raises(TwoscaleError, match="input_transform would have no effect: inputs"):
        Surrogate(inputs=GlobalPCA(5), input_transform="log")
