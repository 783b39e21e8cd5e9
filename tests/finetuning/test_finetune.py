import json

import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from twoscale import Darcy, Grid, Surrogate, TwoscaleError
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.math.measures import Compared, relative_l2, trace_error
from twoscale.math.traces import TRACES
from twoscale.predictors import Affine, AffineMLP


@pytest.fixture(scope="module")
def arrays():
    x, u = (fields.numpy() for fields in make_poisson((32, 32), 260))
    return x[:200], u[:200], x[200:230], u[200:230], x[230:], u[230:]


@pytest.fixture(scope="module")
def base(arrays):
    x, u, xv, uv, _, _ = arrays
    surrogate = Surrogate("two-scale", problem="poisson", device="cpu", epochs=150)
    return surrogate.fit(x, u, validation=(xv, uv))


AT_ONCE = {"warm_up": 0, "ramp": 1}  # every epoch trains the whole objective


def tune(base, arrays, **plan):
    x, u, xv, uv, _, _ = arrays
    return base.finetune(x, u, validation=(xv, uv), **{"epochs": 20, **plan})


def test_warm_up_and_ramp():
    plan = FinetunePlan()
    shares = [plan.share(epoch) for epoch in range(50)]
    assert shares[:5] == [0.0] * 5
    assert shares[5:15] == pytest.approx([k / 10 for k in range(1, 11)])
    assert set(shares[15:]) == {1.0}


def test_a_ramp_of_none_or_one_epoch_starts_with_the_full_weights():
    for ramp in (0, 1):
        plan = FinetunePlan(warm_up=2, ramp=ramp)
        assert [plan.share(epoch) for epoch in range(4)] == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("objective", "A9", "one of A1, A2, A3, A4, A5, flux"),
        ("space", "elsewhere", "one of code, field"),
        ("epochs", 0, "a whole number of at least 1"),
        ("epochs", 2.5, "a whole number of at least 1"),
        ("epochs", True, "a whole number of at least 1"),
        ("batch_size", 0, "a whole number of at least 1"),
        ("batch_size", "many", "a whole number of at least 1"),
        ("learning_rate", 0.0, "a positive number"),
        ("learning_rate", float("nan"), "a positive number"),
        ("learning_rate", float("inf"), "a positive number"),
        ("learning_rate", None, "a positive number"),
        ("learning_rate", True, "a positive number"),
        ("warm_up", -1, "a whole number of at least 0"),
        ("ramp", -1, "a whole number of at least 0"),
    ],
)
def test_bad_options_are_told(option, value, wanted):
    with pytest.raises(TwoscaleError, match=f"{option} must be {wanted}.*, got '{value}'"):
        FinetunePlan(**{option: value})


def test_an_unknown_option_is_told_with_the_known_ones(base, arrays):
    with pytest.raises(
        TwoscaleError, match=r"no setting 'epoch' \(did you mean epochs\?\)"
    ) as told:
        tune(base, arrays, epoch=3)
    for option in vars(FinetunePlan()):
        assert option in str(told.value)


def test_options_become_plain_numbers():
    plan = FinetunePlan(epochs=np.int64(7), learning_rate="1e-3")
    assert json.dumps([plan.epochs, plan.learning_rate]) == "[7, 0.001]"


def test_a_warm_up_that_never_ends_is_told():
    wanted = "A3 differs from A1 only after a warm-up of 5 epochs: pass at least 6 epochs"
    with pytest.raises(TwoscaleError, match=wanted):
        FinetunePlan(epochs=5)
    assert FinetunePlan(epochs=6).share(5) > 0
    assert FinetunePlan("A1", epochs=1).epochs == 1


def test_the_ladder_is_cumulative_with_the_papers_shares():
    assert OBJECTIVES["A1"] == {}
    assert OBJECTIVES["A2"] == {"value": 0.2}
    assert OBJECTIVES["A3"] == {"value": 0.2, "normal_derivative": 0.2}
    assert OBJECTIVES["A4"] == OBJECTIVES["A3"] | {"spectral": 0.2}
    assert OBJECTIVES["A5"] == OBJECTIVES["A4"] | {"residual": 0.01}


def test_reconstruction_lowers_the_error_and_traces_lower_the_seams(base, arrays):
    new, truth = arrays[4:]
    before = base.evaluate(new, truth)
    a1, a3 = (tune(base, arrays, objective=name).evaluate(new, truth) for name in ("A1", "A3"))
    assert a1["mre"] < before["mre"]
    for name in ("value_trace_error", "normal_derivative_trace_error"):
        assert a3[name] < a1[name]
    assert a3["oracle_mre"] == before["oracle_mre"]


@pytest.mark.parametrize(
    "predictor", [Affine(), AffineMLP(hidden_width=8, hidden_layers=1, epochs=5)], ids=repr
)
def test_predictors_in_closed_form_can_be_tuned_where_they_have_weights(
    predictor, arrays, tmp_path
):
    x, u, xv, uv, new, truth = arrays
    start = Surrogate("two-scale", problem="poisson", device="cpu", predictor=predictor)
    start.fit(x, u, validation=(xv, uv))
    tuned = tune(start, arrays, objective="A3", learning_rate=1e-3, **AT_ONCE)
    before, after = (one.evaluate(new, truth) for one in (start, tuned))
    for name in ("value_trace_error", "normal_derivative_trace_error"):
        assert after[name] < before[name]
    tuned.save(tmp_path / "tuned")
    again = Surrogate.load(tmp_path / "tuned", device="cpu")
    np.testing.assert_array_equal(again.predict(new), tuned.predict(new))


def test_a_kernel_has_nothing_to_tune(arrays):
    x, u, xv, uv, _, _ = arrays
    surrogate = Surrogate("local", device="cpu", predictor="kernel", patches=2)
    surrogate.fit(x[:40], u[:40], validation=(xv, uv))
    wanted = "weights can be trained, and this one has none: fit with another predictor"
    with pytest.raises(TwoscaleError, match=wanted):
        surrogate.finetuning_keeps_fields(objective="A1")


@pytest.mark.parametrize("objective", ["A3", "A5"])
def test_code_space_training_is_field_space_training(base, arrays, objective):
    new = arrays[4]
    tuned = [
        tune(base, arrays, objective=objective, epochs=4, warm_up=1, ramp=2, space=space)
        for space in ("code", "field")
    ]
    predictions = [surrogate.predict(new) for surrogate in tuned]
    moved = np.abs(predictions[1] - base.predict(new)).max()
    assert np.abs(predictions[0] - predictions[1]).max() < 0.01 * moved
    weights = [surrogate.finetuning_["weights"] for surrogate in tuned]
    assert weights[0] == pytest.approx(weights[1], rel=1e-4)


def test_weights_are_calibrated_on_the_first_validation_fields(base, arrays):
    _, _, xv, uv, _, _ = arrays
    tuned = tune(base, arrays, objective="A2", epochs=1, warm_up=0)
    predicted, truth = (torch.from_numpy(one)[:, None] for one in (base.predict(xv), uv))
    measure = trace_error(TRACES["value"], base.operator_.layout.seams)
    parts = [slice(0, 16), slice(16, 30)]
    sizes = [
        sum(float(m(Compared(predicted[p], truth[p]))) for p in parts)
        for m in (relative_l2, measure)
    ]
    assert tuned.finetuning_["weights"]["value"] == pytest.approx(
        0.2 * sizes[0] / sizes[1], rel=1e-4
    )


def test_the_base_is_left_as_it_was_and_pca_is_frozen(base, arrays):
    before = {name: value.clone() for name, value in base.operator_.state_dict().items()}
    tuned = tune(base, arrays, epochs=2, **AT_ONCE)
    after, changed = base.operator_.state_dict(), tuned.operator_.state_dict()
    for name, value in before.items():
        assert torch.equal(value, after[name])
        if name.startswith(("inputs.", "outputs.")):
            assert torch.equal(value, changed[name])
    assert any(not torch.equal(before[name], changed[name]) for name in before)


def test_validation_chooses_with_the_full_weights(base, arrays):
    tuned = tune(base, arrays, objective="A3")
    history, weights = tuned.history_["finetuning"], tuned.finetuning_["weights"]
    components = history["components"]
    assert list(components) == ["reconstruction", "value", "normal_derivative"]
    for epoch, loss in enumerate(history["validation_loss"]):
        total = components["reconstruction"][epoch]
        total += sum(weights[name] * components[name][epoch] for name in weights)
        assert loss == pytest.approx(total, rel=1e-5)
    assert history["best_epoch"] == int(np.argmin(history["validation_loss"]))
    assert set(history["learning_rate"]) == {1e-4}


def test_same_seed_same_result(base, arrays):
    one, two = (tune(base, arrays, epochs=2, **AT_ONCE).predict(arrays[4]) for _ in range(2))
    assert np.array_equal(one, two)


def test_cost_is_cumulative(base, arrays):
    timings = tune(base, arrays, objective="A1", epochs=1).timings_
    assert set(base.timings_) < set(timings)
    assert {"finetune_prepare", "finetuning"} <= set(timings)
    assert timings["training"] == base.timings_["training"]


def test_tuning_twice_adds_the_seconds_of_each_stage(base, arrays):
    x, u, xv, uv, _, _ = arrays
    once = tune(base, arrays, objective="A1", epochs=2)
    twice = once.finetune(x[:100], u[:100], validation=(xv, uv), objective="A1", epochs=2)
    for stage in ("finetune_prepare", "finetuning"):
        assert twice.timings_[stage] > once.timings_[stage] > 0
    assert twice.timings_["training"] == base.timings_["training"]
    assert (once.training_samples_, twice.training_samples_) == (200, 100)


def test_another_equation_can_be_given(base, arrays):
    unknown = base.with_problem(None)
    with pytest.raises(TwoscaleError, match="the residual objective needs a known problem"):
        tune(unknown, arrays, objective="A5")
    tuned = tune(unknown, arrays, objective="A1", epochs=1)
    assert tuned.evaluate(*arrays[4:])["residual_rms"] is None
    assert base.problem.name == "poisson"


def test_a_tuned_surrogate_is_saved_and_loaded(base, arrays, tmp_path):
    tuned = tune(base, arrays, epochs=2, **AT_ONCE)
    tuned.save(tmp_path / "s")
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["finetuning"]["objective"] == "A3"
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    assert np.array_equal(loaded.predict(arrays[4]), tuned.predict(arrays[4]))
    assert loaded.finetuning_["weights"] == tuned.finetuning_["weights"]


@pytest.mark.parametrize("method", ["global", "local", "overlap"])
def test_every_pca_method_can_be_tuned(method, arrays):
    x, u, xv, uv, new, truth = arrays
    surrogate = Surrogate(method, problem="poisson", device="cpu", epochs=3).fit(x, u)
    before = surrogate.evaluate(new, truth)["mre"]
    tuned = surrogate.finetune(x, u, validation=(xv, uv), objective="A3", epochs=3, **AT_ONCE)
    assert tuned.evaluate(new, truth)["mre"] < before


def test_darcy_flux_and_residual(tmp_path):
    problem = Darcy()
    inputs = problem.sample(Grid.square(16), range(120), seed=0)
    outputs = problem.solve(inputs)
    surrogate = Surrogate("local", problem=problem, device="cpu", epochs=5).fit(inputs, outputs)
    for objective in ("A5", "flux"):
        tuned = surrogate.finetune(inputs, outputs, objective=objective, epochs=3, **AT_ONCE)
        metrics = tuned.evaluate(inputs[:20], outputs[:20])
        assert metrics["flux_trace_error"] > 0
        assert set(tuned.finetuning_["weights"]) == set(OBJECTIVES[objective])


def test_what_cannot_be_tuned_is_told(base, arrays):
    x, u, xv, uv, _, _ = arrays
    with pytest.raises(
        TwoscaleError, match="training inputs are 16x16 fields, validation inputs 32x32 fields"
    ):
        base.finetune(x[:, ::2, ::2], u[:, ::2, ::2], validation=(xv, uv))
    unknown = Surrogate("local", device="cpu", epochs=1).fit(x, u)
    with pytest.raises(TwoscaleError, match="the residual objective needs a known problem"):
        unknown.finetune(x, u, objective="A5")
    with pytest.raises(TwoscaleError, match="flux of poisson is its normal derivative"):
        tune(base, arrays, objective="flux")
    with pytest.raises(TwoscaleError, match="not fitted yet"):
        Surrogate("local").finetune(x, u)
    network = Surrogate("fno", device="cpu", epochs=1, width=2, modes=2, layers=1).fit(x, u)
    with pytest.raises(
        TwoscaleError, match="fine-tuning needs a surrogate with a compressed output code"
    ):
        network.finetune(x, u)


@pytest.mark.parametrize("method", ["global", "local", "overlap", "two-scale"])
def test_a_single_patch_has_no_seams(method, arrays):
    x, u, xv, uv, _, _ = arrays
    surrogate = Surrogate(method, patches=1, device="cpu", epochs=1).fit(x, u)
    with pytest.raises(TwoscaleError, match="a single patch has no seams: use the objective A1"):
        surrogate.finetune(x, u, objective="A2")
    surrogate.finetune(x, u, validation=(xv, uv), objective="A1", epochs=1)


def test_seams_along_one_axis_are_enough(arrays):
    x, u, xv, uv, _, _ = arrays
    surrogate = Surrogate("local", patches=(1, 4), device="cpu", epochs=1).fit(x, u)
    tuned = surrogate.finetune(x, u, validation=(xv, uv), epochs=2, **AT_ONCE)
    assert np.isfinite(tuned.history_["finetuning"]["validation_loss"]).all()


@pytest.mark.gpu
def test_cuda_tunes_as_the_cpu_does(base, arrays, tmp_path):
    base.save(tmp_path / "s")
    moved = Surrogate.load(tmp_path / "s", device="cuda")
    here, there = (tune(s, arrays, epochs=3, objective="A5", **AT_ONCE) for s in (base, moved))
    assert here.finetuning_["weights"] == pytest.approx(there.finetuning_["weights"], rel=1e-3)
    change = np.abs(here.predict(arrays[4]) - base.predict(arrays[4])).max()
    assert np.abs(here.predict(arrays[4]) - there.predict(arrays[4])).max() < 0.05 * change


@pytest.mark.gpu
@pytest.mark.parametrize("objective", ["A3", "A5", "flux"])
def test_device_memory_does_not_grow_with_all_training_fields(objective, monkeypatch):
    """Four times the samples may add codes and seam values to the device, never whole fields."""
    for name in ("_CHUNK_VALUES", "_CHUNK_VALUES_CUDA"):
        monkeypatch.setattr(f"twoscale.fields.source.{name}", 2**18)  # chunks of 64 fields
    darcy, grid = Darcy(), Grid((64, 64))
    x = darcy.sample(grid, range(2000), seed=0, device="cuda")
    x, u = x.cpu(), darcy.solve(x).cpu()
    peaks = []
    for samples in (500, 2000):
        base = Surrogate("local", problem=darcy, device="cuda", epochs=1, input_variance=0.5)
        base.fit(x[:samples], u[:samples], validation=(x[:50], u[:50]))
        plan = {"objective": objective, "epochs": 1, "batch_size": 4, **AT_ONCE}
        tuned = base.finetune(x[:samples], u[:samples], validation=(x[:50], u[:50]), **plan)
        peaks.append(tuned.peak_device_gigabytes_)
    whole_fields = 1500 * 2 * 64 * 64 * 4 / 1e9
    assert peaks[1] - peaks[0] < 0.5 * whole_fields
