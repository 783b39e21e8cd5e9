"""Every method's recipe: which parts its settings make."""

import pytest

from tests.surrogate.tiny import TINY
from twoscale import METHODS, Chain, Grid, PatchPCA, Surrogate, TwoscaleError
from twoscale.domain.space import Space
from twoscale.methods.recipes import assemble, defaults, get_method, resolve
from twoscale.operators.operators import LatentOperator
from twoscale.predictors import Affine, AffineMLP, Encoder, Kernel, predictors
from twoscale.predictors.kernel import KERNELS, LENGTH_SCALES
from twoscale.representation import Conforming, GlobalPCA, ThreeScale, TwoScale, WholeField
from twoscale.settings import defaults_of
from twoscale.training import Plan

SPACE = Space(Grid.square(32))

# Inputs, predictor, outputs and correction of every method, with its defaults.
RECIPES = {
    "global": ("GlobalPCA(0.99)", "MLP(objective='vector')", "GlobalPCA(0.99)"),
    "local": ("PatchPCA(0.99)", "MLP(objective='vector')", "PatchPCA(0.99)"),
    "overlap": (
        "PatchPCA(0.99, overlap=True)",
        "MLP(objective='vector')",
        "PatchPCA(0.99, overlap=True)",
    ),
    "refinement": (
        "PatchPCA(0.99)",
        "MLP(objective='vector')",
        "PatchPCA(0.99)",
        "Refinement()",
    ),
    "fno": ("WholeField()", "FNO()", "WholeField()"),
    "two-scale": ("PatchPCA(0.99)", "MLP()", "TwoScale()"),
    "three-scale": ("PatchPCA(0.99)", "MLP()", "ThreeScale()"),
    "conforming": ("PatchPCA(0.99)", "MLP()", "Conforming()"),
    "whole-field": ("WholeField()", "Encoder()", "WholeField()"),
}


def parts(name, **settings):
    return assemble(name, resolve(name, settings))


def build(name, **settings):
    return parts(name, **settings).operator()


@pytest.mark.parametrize("name", METHODS)
def test_the_recipe_of_every_method(name):
    made = parts(name)
    expected = RECIPES[name]
    assert (repr(made.inputs), repr(made.predictor), repr(made.outputs)) == expected[:3]
    assert repr(made.correction) == (expected[3] if len(expected) > 3 else "None")
    assert (made.symmetries, made.average_symmetries) == ("none", False)


OUTPUTS = {
    "global": {"output_variance", "code_size", "solver"},
    "local": {"output_variance", "solver"},
    "overlap": {"output_variance", "solver"},
    "fno": set(),
    "two-scale": set(defaults_of(TwoScale)),
    "three-scale": set(defaults_of(ThreeScale)),
    "conforming": set(defaults_of(Conforming)),
    "whole-field": set(),
}


@pytest.mark.parametrize("predictor", predictors())
@pytest.mark.parametrize("name", OUTPUTS)
def test_settings_are_those_of_the_representations_and_of_the_predictor(name, predictor):
    wanted = (
        {"patches", "predictor", "input_transform"}
        | OUTPUTS[name]
        | set(defaults_of(predictors()[predictor]))
    )
    if name != "fno":
        wanted |= {"symmetries", "average_symmetries"}
    if name not in ("fno", "whole-field"):
        wanted |= set() if predictors()[predictor].reads_fields else {"input_variance"}
        wanted |= {"solver"}
    elif predictor == METHODS[name].defaults["predictor"]:
        wanted -= {"objective"}  # its own
    assert set(defaults(name, {"predictor": predictor})) == wanted


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
        "whole-field": "Whole field",
    }
    paper = ["global", "local", "overlap", "refinement", "fno", "two-scale"]
    assert list(METHODS) == [*paper, "three-scale", "conforming", "whole-field"]


def test_an_unknown_method_is_told_with_those_that_are_known():
    with pytest.raises(TwoscaleError, match="no method is called 'cnn': known are global, local"):
        get_method("cnn")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_fitted_with_its_defaults(name):
    build(name).check(SPACE, SPACE, 200)


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
    assert isinstance(operator.base, LatentOperator)
    assert isinstance(operator.base.outputs, PatchPCA)
    assert isinstance(operator.correction.inputs, WholeField)
    assert operator.correction.predictor.channels == 32
    assert operator.correction.predictor.plan == Plan(
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
    assert isinstance(operator, LatentOperator)
    assert operator.predictor.sizes == {"layers": 4, "width": 32, "modes": 12, "padding": 8}
    assert operator.predictor.plan == Plan(
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
def test_another_predictor_takes_the_place_of_the_papers(name):
    assert repr(parts(name, predictor="affine").predictor) == repr(
        Affine(objective=parts(name).predictor.objective)
    )
    assert isinstance(build("refinement", predictor="affine").base.predictor, Affine)


def test_settings_of_the_predictors():
    assert build("local", predictor="affine", ridge=1e-3).predictor.ridge == 1e-3
    both = build("local", predictor="affine-mlp", ridge=1e-3, hidden_width=5, objective="field")
    assert isinstance(both.predictor, AffineMLP)
    assert both.predictor.affine.ridge == 1e-3
    assert both.predictor.correction.hidden == (5, 5, 5)
    assert both.predictor.correction.objective == "field"
    free = build("local", predictor="kernel").predictor
    assert isinstance(free, Kernel)
    assert (tuple(free.kinds), tuple(free.length_scales)) == (tuple(KERNELS), LENGTH_SCALES)
    assert (free.ridge, free.kernel_samples) == (None, None)
    fixed = {"kernel": "matern-3/2", "length_scale": 3, "kernel_samples": 9, "ridge": 0.0}
    told = build("local", predictor="kernel", **fixed).predictor
    assert not told.targets_nearest_codes
    for predictor in predictors():
        assert build(
            "local", predictor=predictor, objective="field"
        ).predictor.targets_nearest_codes
    assert (told.kinds, told.length_scales, told.kernel_samples) == (("matern-3/2",), (3.0,), 9)
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


def test_a_predictor_that_reads_fields_gets_them_whole():
    for predictor in ("encoder", "fno"):
        made = parts("two-scale", predictor=predictor)
        assert isinstance(made.inputs, WholeField)
        assert isinstance(made.outputs, TwoScale)
    assert isinstance(parts("fno", predictor="encoder").predictor, Encoder)
    assert parts("fno", predictor="encoder", objective="vector").predictor.objective == "vector"


@pytest.mark.parametrize("name", METHODS)
def test_tiny_settings_are_settings(name):
    assert resolve(name, TINY[name])["epochs"] == TINY[name]["epochs"]
