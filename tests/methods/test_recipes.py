"""Every method's recipe: which parts its settings make."""

import pytest

from twoscale import METHODS, Grid, Surrogate, TwoscaleError
from twoscale.domain.space import Space
from twoscale.methods.recipes import assemble, defaults, get_method, resolve
from twoscale.predictors import Affine, AffineMLP, Encoder, Kernel, predictors
from twoscale.predictors.kernel import KERNELS, LENGTH_SCALES
from twoscale.representation import Conforming, ThreeScale, TwoScale, WholeField
from twoscale.settings import defaults_of

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


# The paper's defaults


# Settings reach their place


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


PROTOCOL = {
    "global": {
        "input_variance": 0.99,
        "output_variance": 0.99,
        "code_size": None,
        "objective": "vector",
        "hidden_layers": 3,
        "hidden_width": 128,
        "epochs": 500,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "patience": 30,
    },
    "local": {"patches": (4, 4), "output_variance": 0.99, "solver": "randomized"},
    "two-scale": {
        "objective": "block-balanced",
        "coarse_factor": 4,
        "coarse_components": 10,
        "coarse_variance": None,
        "residual_variance": 0.995,
        "code_size": None,
    },
    "three-scale": {"middle_patches": (2, 2), "residual_variance": 0.8, "code_size": None},
    "conforming": {"code_size": 160, "seam_width": 0.0135, "variance": 0.999},
    "refinement": {
        "channels": 32,
        "refinement_epochs": 25,
        "refinement_batch_size": 32,
        "refinement_learning_rate": 1e-3,
        "refinement_weight_decay": 1e-4,
        "refinement_patience": 10,
    },
    "fno": {
        "layers": 4,
        "width": 32,
        "modes": 12,
        "padding": 8,
        "epochs": 100,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "weight_decay": 0.0,
        "patience": 5,
        "early_stop": 15,
    },
}


@pytest.mark.parametrize(("name", "protocol"), PROTOCOL.items(), ids=list(PROTOCOL))
def test_the_papers_protocol_is_the_default(name, protocol):
    assert protocol.items() <= resolve(name, {}).items()


@pytest.mark.parametrize("method", ["global", "two-scale", "three-scale", "conforming"])
def test_a_code_has_the_size_asked_for(method, poisson16):
    surrogate = Surrogate(method, code_size=30, patches=2, predictor="affine", device="cpu")
    surrogate.fit(poisson16.inputs, poisson16.outputs)
    assert surrogate.operator_.outputs.code_size == 30


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
