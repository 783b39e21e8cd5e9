import pytest

from tests.surrogate.tiny import TINY
from twoscale import (
    METHODS,
    Chain,
    Conforming,
    GlobalPCA,
    Grid,
    PatchPCA,
    Surrogate,
    TwoScale,
    TwoscaleError,
)
from twoscale.methods.recipes import get_method, resolve
from twoscale.methods.settings import identifying
from twoscale.networks import FNO2d, RefinementNet
from twoscale.operators.operators import FullFieldOperator, LatentOperator, RefinedOperator
from twoscale.predictors.base import MLPPredictor
from twoscale.predictors.closed_form import AffineMLPPredictor, AffinePredictor, KernelPredictor
from twoscale.predictors.kernel import KERNELS, LENGTH_SCALES
from twoscale.predictors.registry import PREDICTORS
from twoscale.training import Plan

GRID = Grid.square(32)


def build(name, **settings):
    return METHODS[name].build(GRID, resolve(name, settings))


def test_the_methods_of_the_paper_in_its_order_and_what_came_after():
    assert {name: method.title for name, method in METHODS.items()} == {
        "global": "Global PCA-Net",
        "local": "Plain L2L",
        "overlap": "L2L + overlap",
        "refinement": "L2L + RefinementNet",
        "fno": "FNO",
        "two-scale": "Two-scale",
        "three-scale": "Three-scale",
        "conforming": "Conforming",
    }
    paper = ["global", "local", "overlap", "refinement", "fno", "two-scale"]
    assert list(METHODS) == [*paper, "three-scale", "conforming"]


def test_an_unknown_method_is_told_with_those_that_are_known():
    with pytest.raises(TwoscaleError, match="no method is called 'cnn': known are global, local"):
        get_method("cnn")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_builds_with_its_defaults(name):
    operator = build(name)
    operator.check((32, 32), 200)


# The paper's defaults


@pytest.mark.parametrize(
    "name", ["global", "local", "overlap", "two-scale", "three-scale", "conforming"]
)
def test_the_latent_network_and_its_training(name):
    operator = build(name)
    assert isinstance(operator, LatentOperator)
    predictor = operator.predictor
    assert predictor.hidden == (128, 128, 128)
    plan = predictor.plan
    assert plan.small
    assert (plan.epochs, plan.batch_size, plan.patience) == (500, 32, 30)
    assert (plan.learning_rate, plan.weight_decay, plan.early_stop) == (1e-3, 1e-4, None)
    chained = isinstance(operator.outputs, Chain)
    assert predictor.objective == ("block-balanced" if chained else "vector")


def test_global_has_one_pca_on_each_side():
    operator = build("global")
    for side in (operator.inputs, operator.outputs):
        assert isinstance(side, GlobalPCA)
        assert side.rule.variance == 0.99


@pytest.mark.parametrize(("name", "overlap"), [("local", False), ("overlap", True)])
def test_patches_on_both_sides(name, overlap):
    operator = build(name)
    for side in (operator.inputs, operator.outputs):
        assert isinstance(side, PatchPCA)
        assert (side.patches, side.overlap) == ((4, 4), overlap)
        assert side.window == ("hann" if overlap else "uniform")
        assert side.rule.variance == 0.99


def test_two_scale_has_plain_patches_as_input():
    operator = build("two-scale")
    assert isinstance(operator.inputs, PatchPCA)
    assert not operator.inputs.overlap
    outputs = operator.outputs
    assert isinstance(outputs, TwoScale)
    coarse, residual = outputs.stages["coarse"], outputs.stages["residual"]
    assert (coarse.factor, coarse.rule.components, coarse.rule.variance) == (4, 10, None)
    assert (residual.patches, residual.rule.variance) == ((4, 4), 0.995)
    assert not residual.overlap


def test_conforming():
    operator = build("conforming")
    assert isinstance(operator.inputs, PatchPCA)
    outputs = operator.outputs
    assert isinstance(outputs, Conforming)
    assert all(stage.patches == (4, 4) for stage in outputs.stages.values())
    assert all(stage.seam_width == 0.0135 for stage in outputs.stages.values())
    assert outputs.shared_size == 160


def test_refinement_follows_plain_local():
    operator = build("refinement")
    assert isinstance(operator, RefinedOperator)
    assert isinstance(operator.base, LatentOperator)
    assert isinstance(operator.base.outputs, PatchPCA)
    assert isinstance(operator.correction.network, RefinementNet)
    assert operator.correction.plan == Plan(
        epochs=25,
        batch_size=32,
        learning_rate=1e-3,
        weight_decay=1e-4,
        patience=10,
        evaluation_batch=64,
        on_fields=True,
        tuned=True,
    )


def test_fno():
    operator = build("fno")
    assert isinstance(operator, FullFieldOperator)
    network = operator.network
    assert isinstance(network, FNO2d)
    assert len(network.layers) == 4
    assert network.layers[0].modes == 12
    assert (network.lift.out_features, network.head[0].out_features) == (32, 128)
    assert network.padding == 8
    assert operator.plan == Plan(
        epochs=100,
        batch_size=16,
        learning_rate=1e-3,
        weight_decay=0.0,
        patience=5,
        early_stop=15,
        evaluation_batch=64,
        on_fields=True,
        tuned=True,
    )


# Settings reach their place


def test_settings_of_the_representations():
    operator = build("local", patches="2x4", input_variance=0.9, output_variance=0.8, solver="full")
    inputs, outputs = operator.inputs, operator.outputs
    assert inputs.patches == outputs.patches == (2, 4)
    assert (inputs.rule.variance, outputs.rule.variance) == (0.9, 0.8)
    assert inputs.solver == outputs.solver == "full"


def test_settings_of_the_two_scales():
    operator = build(
        "two-scale",
        coarse_factor=8,
        coarse_components=5,
        coarse_variance=0.9,
        residual_variance=0.7,
        objective="vector",
    )
    stages = operator.outputs.stages
    assert (stages["coarse"].factor, stages["coarse"].rule.components) == (8, 5)
    assert (stages["coarse"].rule.variance, stages["residual"].rule.variance) == (0.9, 0.7)
    assert operator.predictor.objective == "vector"


def test_settings_of_the_conforming_chain():
    outputs = build("conforming", patches=2, seam_width=0, code_size=50).outputs
    assert [stage.patches for stage in outputs.stages.values()] == [(2, 2), (2, 2)]
    assert [stage.seam_width for stage in outputs.stages.values()] == [0, 0]
    assert outputs.shared_size == 50


@pytest.mark.parametrize("method", ["global", "two-scale", "three-scale", "conforming"])
def test_a_code_has_the_size_asked_for(method, poisson16):
    surrogate = Surrogate(method, code_size=30, patches=2, predictor="affine", device="cpu")
    surrogate.fit(poisson16.inputs, poisson16.outputs)
    assert surrogate.operator_.outputs.code_size == 30


@pytest.mark.parametrize("method", ["global", "two-scale", "three-scale"])
def test_the_papers_protocol_is_one_of_variances(method):
    assert resolve(method, {})["code_size"] is None
    assert "code_size" not in identifying(resolve(method, {}))


def test_the_conforming_chain_can_keep_a_variance():
    for given in ({"code_size": "none", "variance": 0.9}, {"variance": 0.9}):
        outputs = build("conforming", **given).outputs
        assert outputs.shared_size is None
        assert [stage.rule.variance for stage in outputs.stages.values()] == [0.9, 0.9]
    assert build("conforming", variance=0.9, code_size=40).outputs.shared_size == 40


def test_hybrid_means_a_randomised_coarse_solve_and_full_ones_otherwise():
    operator = build("two-scale", solver="hybrid")
    stages = operator.outputs.stages
    assert (stages["coarse"].solver, stages["residual"].solver) == ("randomized", "full")
    assert operator.inputs.solver == "full"
    assert build("local", solver="hybrid").outputs.solver == "full"


def test_settings_of_the_training():
    operator = build("global", epochs=7, batch_size=9, learning_rate=0.5, patience=3)
    plan = operator.predictor.plan
    assert (plan.epochs, plan.batch_size, plan.learning_rate, plan.patience) == (7, 9, 0.5, 3)
    assert build("global", hidden_layers=2, hidden_width=5).predictor.hidden == (5, 5)


@pytest.mark.parametrize("name", ["global", "local", "overlap", "two-scale"])
def test_the_predictor_is_the_papers_unless_told(name):
    assert type(build(name).predictor) is MLPPredictor
    assert build(name).symmetries == "none"
    assert type(build(name, predictor="affine").predictor) is AffinePredictor
    assert type(build("refinement", predictor="affine").base.predictor) is AffinePredictor


def test_settings_of_the_predictors():
    assert build("local", predictor="affine", ridge=1e-3).predictor.ridge == 1e-3
    both = build("local", predictor="affine-mlp", ridge=1e-3, hidden_width=5, objective="field")
    assert isinstance(both.predictor, AffineMLPPredictor)
    assert both.predictor.affine.ridge == 1e-3
    assert both.predictor.correction.hidden == (5, 5, 5)
    assert both.predictor.correction.objective == "field"
    free = build("local", predictor="kernel").predictor
    assert isinstance(free, KernelPredictor)
    assert (tuple(free.kinds), tuple(free.length_scales)) == (tuple(KERNELS), LENGTH_SCALES)
    assert (free.ridge, free.most) == (None, None)
    fixed = {"kernel": "matern-3/2", "length_scale": 3, "kernel_samples": 9, "ridge": 0.0}
    told = build("local", predictor="kernel", **fixed).predictor
    assert not told.nearest
    for predictor in PREDICTORS:
        assert build("local", predictor=predictor, objective="field").predictor.nearest
    assert (told.kinds, told.length_scales, told.most) == (("matern-3/2",), (3.0,), 9)
    assert told.ridge == 0.0


def test_settings_of_the_symmetries():
    operator = build("overlap", symmetries="mirrors", average_symmetries="yes")
    assert (operator.symmetries, operator.average) == ("mirrors", True)


def test_another_base_can_be_refined():
    operator = build("refinement", base="two-scale", coarse_components=4)
    assert isinstance(operator.base.outputs, Chain)
    settings = resolve("refinement", {"base": "two-scale"})
    assert settings["objective"] == "block-balanced"
    assert settings["refinement_epochs"] == 25


def test_a_setting_of_the_base_needs_that_base():
    with pytest.raises(TwoscaleError, match="refinement has no setting 'coarse_components'"):
        resolve("refinement", {"coarse_components": 4})


def test_more_modes_than_the_grid_has_are_refused():
    message = "a 32x32 grid has at most 20 Fourier modes per direction, got modes=21"
    with pytest.raises(TwoscaleError, match=message):
        build("fno", modes=21)
    build("fno", modes=20, width=2, layers=1)


@pytest.mark.parametrize("name", METHODS)
def test_tiny_settings_are_settings(name):
    assert resolve(name, TINY[name])["epochs"] == TINY[name]["epochs"]
