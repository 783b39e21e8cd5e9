"""Many runs of different kinds fitted at once."""

import math

import pytest

from twoscale import TwoscaleError
from twoscale.data import Dataset
from twoscale.math import pca
from twoscale.representation.block_pca import BlockPCA
from twoscale.run import RunRequest, fit_run, fit_runs
from twoscale.surrogate import driver

QUICK = {"epochs": 2}


def requests(place, *wanted):
    return [
        RunRequest(place / str(number), method, seed, QUICK | settings, training)
        for number, (method, seed, settings, training) in enumerate(wanted)
    ]


@pytest.fixture
def fits(monkeypatch):
    """The representations that are fitted, not taken over."""
    done, fit = [], BlockPCA._fit

    def counted(self, *arguments, **options):
        done.append(repr(self))
        return fit(self, *arguments, **options)

    monkeypatch.setattr(BlockPCA, "_fit", counted)
    return done


def test_they_are_the_runs_alone(data, tmp_path):
    wanted = requests(
        tmp_path / "together",
        ("two-scale", 1, {}, None),
        ("local", 0, {}, None),
        ("refinement", 0, {"refinement_epochs": 1}, None),
        ("two-scale", 0, {"residual_variance": 0.9}, None),
        ("local", 0, {}, 30),
    )
    runs = fit_runs(Dataset(data), wanted)
    for request, run in zip(wanted, runs, strict=True):
        assert run.path == request.out
        alone = fit_run(
            Dataset(data),
            tmp_path / "alone" / request.out.name,
            method=request.method,
            seed=request.seed,
            settings=dict(request.settings),
            training_samples=request.training_samples,
        )
        assert run.config["hash"] == alone.config["hash"]
        assert run.metrics["mre"] == pytest.approx(alone.metrics["mre"], rel=1e-4)


def test_equal_representations_of_a_split_are_fitted_once(data, tmp_path, fits):
    wanted = requests(
        tmp_path,
        ("local", 0, {}, None),
        ("two-scale", 0, {}, None),
        ("local", 0, {"learning_rate": 1e-2}, None),
        ("local", 1, {}, None),
    )
    runs = fit_runs(Dataset(data), wanted)
    # Seed 0: the input, local's output, two-scale's two stages; seed 1: input and output.
    assert len(fits) == 6
    times = [run.metrics["timings"]["pca_input"] for run in runs[:3]]
    assert times[0] == times[1] == times[2] > 0


@pytest.mark.parametrize("solver", ["full", "randomized"])
def test_what_differs_is_fitted_anew(data, tmp_path, fits, solver):
    assert solver in pca.SOLVERS
    wanted = requests(
        tmp_path,
        ("local", 0, {"solver": solver}, None),
        ("local", 0, {"solver": solver, "input_variance": 0.9}, None),
        ("overlap", 0, {"solver": solver}, None),
        ("local", 0, {"solver": solver}, 30),
    )
    fit_runs(Dataset(data), wanted)
    assert len(fits) == 7


def test_a_run_that_fails_is_reported_and_the_others_appear(data, tmp_path):
    wanted = requests(
        tmp_path,
        ("local", 0, {}, None),
        ("two-scale", 0, {"coarse_factor": 9}, None),
        ("two-scale", 0, {}, None),
    )
    reported = []
    runs = fit_runs(
        Dataset(data), wanted, on_error=lambda request, error: reported.append((request, error))
    )
    assert [run.path.name for run in runs] == ["0", "2"]
    ((request, error),) = reported
    assert request is wanted[1]
    assert "got 9" in str(error)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2"]


def test_without_a_place_for_errors_nothing_appears(data, tmp_path):
    wanted = requests(tmp_path / "new", ("local", 0, {}, None), ("local", 0, {"patches": 9}, None))
    with pytest.raises(TwoscaleError, match="patches"):
        fit_runs(Dataset(data), wanted)
    assert list(tmp_path.iterdir()) == []


def test_a_member_that_diverges_does_not_take_the_others_with_it(data, tmp_path):
    rates = [1e-3, 10.0, 1e-3]
    wanted = requests(tmp_path, *(("local", 0, {"learning_rate": r}, None) for r in rates))
    failing = wanted[1].settings["learning_rate"]

    reported = []
    with pytest.MonkeyPatch.context() as patch:
        from twoscale.training.loop import Member

        validate = Member.validate
        patch.setattr(
            Member,
            "validate",
            lambda self: (
                validate(self) * (math.nan if self.task.plan.learning_rate == failing else 1)
            ),
        )
        runs = fit_runs(
            Dataset(data), wanted, on_error=lambda request, error: reported.append(request)
        )
    assert reported == [wanted[1]]
    assert len(runs) == 2
    assert runs[0].metrics["mre"] == runs[1].metrics["mre"]


def test_a_finished_run_is_there_before_the_others_are_done(data, tmp_path):
    wanted = requests(tmp_path, ("fno", 0, {"epochs": 1}, None), ("local", 0, {}, None))
    seen = []

    def progress(stage, done, total, remark):
        if stage == "training" and wanted[0].out.exists():
            seen.append(stage)

    fit_runs(
        Dataset(data),
        wanted,
        progress=progress,
        on_error=lambda request, error: pytest.fail(str(error)),
    )
    assert seen


def test_too_many_for_the_device_are_trained_one_by_one(data, tmp_path, monkeypatch):
    train = driver.train_members

    def small_device(tasks, contexts, **options):
        if len(tasks) > 1:
            raise RuntimeError("out of memory")
        train(tasks, contexts, **options)

    wanted = requests(tmp_path, ("local", 0, {}, None), ("local", 1, {}, None))
    reported = []
    monkeypatch.setattr(driver, "train_members", small_device)
    runs = fit_runs(Dataset(data), wanted, on_error=lambda *error: reported.append(error))
    assert not reported
    assert [run.metrics["trained_together"] for run in runs] == [1, 1]
