"""Running studies: each cell once, whatever happens in between."""

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.lab.study.tiny import CASES, TEXT, finished, read_tiny, tiny_study
from twoscale import TwoscaleError
from twoscale.errors import UnreachableDataError
from twoscale.files import Checkpoint, WorkFolder
from twoscale.predictors import Affine
from twoscale.run import Run
from twoscale_lab.study import datasets, groups
from twoscale_lab.study.catalogue import parse_study
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.planning import make_plan
from twoscale_lab.study.quantities import values_by_seed
from twoscale_lab.study.runner import run_studies, run_study

ALL = [(case, seed) for case in CASES for seed in (0, 1)]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished study; tests must not write to it."""
    out = tmp_path_factory.mktemp("study")
    run_study(tiny_study(), out, device="cpu")
    return out


@pytest.fixture
def copy(done, tmp_path):
    return shutil.copytree(done, tmp_path / "copy")


@pytest.fixture
def fits(monkeypatch):
    """The names of the cells that are fitted or fine-tuned from now on."""
    seen = []

    def fit(dataset, requests, **options):
        seen.extend((one.method, one.seed) for one in requests)
        return fit_runs(dataset, requests, **options)

    def tune(base, out, **options):
        seen.append((f"+{options['objective']}", base.surrogate.seed))
        return finetune_run(base, out, **options)

    fit_runs, finetune_run = groups.fit_runs, groups.finetune_run
    monkeypatch.setattr(groups, "fit_runs", fit)
    monkeypatch.setattr(groups, "finetune_run", tune)
    return seen


def test_the_record_holds_every_cell(done):
    record = read_tiny(done)
    assert record["study"] == "tiny"
    assert record["scale"] == "paper"
    assert str(done) not in json.dumps(record)
    assert finished(record) == ALL
    assert record["failed"] == []
    assert len(record["environments"]) == 1
    for cell in record["cells"]:
        run = Run.open(done / "cells" / cell["key"], device="cpu")
        assert cell["metrics"] | {"measured_on": "test"} == run.metrics
        assert cell["config_hash"] == run.config["hash"]
        assert cell["model_bytes"] > 1000
        assert cell["training"] == 80
        assert (cell["epochs"]["finetuning" if cell["objective"] else "training"]["run"]) == 2
        assert ("weights" in cell) == (cell["objective"] is not None)
        log = (done / "logs" / f"{cell['key']}.log").read_text()
        assert f"{cell['case']} seed {cell['seed']}" in log
        assert "finished, relative error" in log
    assert {path.suffix for path in (done / "data").iterdir()} == {".zarr", ".json"}


def test_nothing_is_run_twice(copy, fits):
    before = read_tiny(copy)
    outcome = run_study(tiny_study(), copy, device="cpu")
    assert not fits
    assert not outcome.plan.groups
    assert read_tiny(copy) == before


def test_records_alone_are_enough_to_go_on(done, tmp_path, fits):
    """Runs are large and may stay on another machine; what is tuned later needs its base again."""
    shutil.copytree(done / "records", tmp_path / "records")
    assert not run_study(tiny_study(), tmp_path, device="cpu").plan.groups
    assert not fits
    more = tiny_study(TEXT.replace("[null, A1]", "[null, A1, A2]"))
    outcome = run_study(more, tmp_path, device="cpu", seeds=[0])
    assert fits[0] == ("two-scale", 0)
    assert set(fits[1:]) == {("+A1", 0), ("+A2", 0)}  # of the same network
    assert len(outcome.record["cells"]) == 7
    kept = np.load(tmp_path / "records" / "tiny.npz")
    assert "poisson-16/prediction/poisson-16 local" in kept
    assert "poisson-16/prediction/poisson-16 two-scale+A2" in kept


def test_seeds_and_methods_are_added_bit_by_bit(tmp_path, fits):
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["local"])
    assert finished(read_tiny(tmp_path)) == [("poisson-16 local", 0)]
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[5], only=["local"])
    assert fits == [("local", 0), ("local", 5)]
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["two-scale"])
    assert finished(read_tiny(tmp_path)) == [
        ("poisson-16 local", 0),
        ("poisson-16 local", 5),
        ("poisson-16 two-scale", 0),
        ("poisson-16 two-scale+A1", 0),
    ]


def test_a_damaged_run_folder_is_named_with_what_to_do(copy):
    key = read_tiny(copy)["cells"][0]["key"]
    (copy / "records" / "tiny.json").unlink()
    (copy / "cells" / key / "weights.safetensors").unlink()
    message = rf"poisson-16 local seed 0 is damaged .*: remove .*{key} to run it again"
    with pytest.raises(TwoscaleError, match=message):
        run_study(tiny_study(), copy, device="cpu")


def test_scales_do_not_mix(done):
    with pytest.raises(TwoscaleError, match="is a record at the paper scale: choose another path"):
        run_study(tiny_study(), done, scale="small", device="cpu")


KILLED = """
import os, signal, sys
from tests.lab.study.tiny import tiny_study
from twoscale_lab.study.runner import run_study

def progress(stage, done, total, remark):
    if stage == "finetuning":
        os.kill(os.getpid(), signal.SIGKILL)

run_study(tiny_study(), sys.argv[1], device="cpu", progress=progress)
"""


def test_a_killed_study_is_finished_by_running_it_again(tmp_path, fits):
    process = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert finished(read_tiny(tmp_path)) == ALL[:4]
    assert list((tmp_path / "cells").glob(".*.twoscale-work"))
    run_study(tiny_study(), tmp_path, device="cpu")
    assert fits == [("+A1", 0), ("+A1", 1)]
    assert finished(read_tiny(tmp_path)) == ALL
    assert not list(tmp_path.rglob("*.twoscale-work"))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_study_goes_on_where_it_was(tmp_path, fits, stop):
    def progress(stage, done, total, remark):
        if stage == "training":
            raise stop

    with pytest.raises(stop):
        run_study(tiny_study(), tmp_path, device="cpu", progress=progress)
    assert not list(tmp_path.glob("cells/*"))
    assert any("stopped: " in log.read_text() for log in (tmp_path / "logs").iterdir())
    fits.clear()
    run_study(tiny_study(), tmp_path, device="cpu", only=["local"])
    assert fits == [("local", 0), ("local", 1)]


def test_a_failure_is_recorded_and_tried_again(tmp_path, fits, monkeypatch):
    """The others go on; what was to be fine-tuned from the failed one fails with it."""
    from twoscale.representation import TwoScale

    def fail(*arguments, **options):
        raise RuntimeError("the device\nis gone")

    with monkeypatch.context() as broken:
        broken.setattr(TwoScale, "fit", fail)
        outcome = run_study(tiny_study(), tmp_path, device="cpu", seeds=[0])
    assert finished(read_tiny(tmp_path)) == [("poisson-16 local", 0)]
    errors = {entry["case"]: entry["error"] for entry in read_tiny(tmp_path)["failed"]}
    assert errors == {
        "poisson-16 two-scale": "RuntimeError: the device is gone",
        "poisson-16 two-scale+A1": "there is no poisson-16 two-scale seed 0 to fine-tune: "
        "it failed before",
    }
    assert outcome.failed == read_tiny(tmp_path)["failed"]
    log = tmp_path / "logs" / f"{outcome.failed[0]['key']}.log"
    assert "Traceback" in log.read_text()
    fits.clear()
    again = run_study(tiny_study(), tmp_path, device="cpu", seeds=[0])
    assert fits == [("two-scale", 0), ("+A1", 0)]
    assert again.failed == []
    assert read_tiny(tmp_path)["failed"] == []


def test_a_failure_that_is_not_tried_again_stays_recorded(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise TwoscaleError("no")

    with monkeypatch.context() as broken:
        broken.setattr(groups, "fit_runs", fail)
        run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["two-scale"])
    outcome = run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["local"])
    assert outcome.failed == []
    assert len(outcome.record["failed"]) == 2


def test_progress_counts_cells(tmp_path):
    told = []

    def progress(stage, done, total, remark):
        told.append((stage, done, total))

    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], progress=progress)
    assert [one for one in told if one[0] == "cells"] == [
        ("cells", 0, 3),
        ("cells", 2, 3),
        ("cells", 3, 3),
    ]
    assert {"samples", "loading", "training", "finetuning"} <= {stage for stage, _, _ in told}


def test_studies_run_together_share_cells_and_training(tmp_path, fits):
    other = parse_study(TEXT.replace("[null, A1]", "[null]"), name="other")
    outcomes = run_studies([tiny_study(), other], tmp_path, device="cpu")
    assert sorted(fits) == sorted(
        [(name, seed) for name in ("local", "two-scale", "+A1") for seed in (0, 1)]
    )
    assert [len(outcomes[name].record["cells"]) for name in ("tiny", "other")] == [6, 4]
    assert [len(outcomes[name].plan.pending) for name in ("tiny", "other")] == [6, 4]
    kept = {cell["key"]: cell for cell in outcomes["tiny"].record["cells"]}
    for cell in outcomes["other"].record["cells"]:
        assert cell == kept[cell["key"]]
        assert cell["metrics"]["trained_together"] == 4


def test_seeds_that_shall_be_alone_do_not_share_their_time(tmp_path):
    study = tiny_study(TEXT.replace("seeds: [0, 1]\n", "seeds: [0, 1, 2]\nalone: [1]\n", 1))
    record = run_study(study, tmp_path, device="cpu").record
    together = {
        (cell["case"], cell["seed"]): cell["metrics"]["trained_together"]
        for cell in record["cells"]
    }
    for case in CASES:
        assert [together[case, seed] for seed in (0, 1, 2)] == [4, 1, 4]
        cells = [cell for cell in record["cells"] if cell["case"] == case]
        assert set(values_by_seed(cells, "total")) == {1}
        assert set(values_by_seed(cells, "mre")) == {0, 1, 2}


def test_a_dataset_that_cannot_be_made_fails_its_cells_only(tmp_path, monkeypatch):
    """Cells on other datasets go on; the next run tries again."""
    text = TEXT.replace("resolution: 16\n", "resolution: [16, 8]\n", 1).replace("{16: 8}", "{}")
    generate = datasets.generate

    def broken(problem, path, *, resolution, **options):
        if resolution == 16:
            raise TwoscaleError("no room on the disk")
        return generate(problem, path, resolution=resolution, **options)

    monkeypatch.setattr(datasets, "generate", broken)
    outcome = run_study(tiny_study(text), tmp_path, device="cpu", seeds=[0], only=["local"])
    assert finished(outcome.record) == [("poisson-8 local", 0)]
    assert [entry["error"] for entry in outcome.failed] == ["no room on the disk"]
    monkeypatch.setattr(datasets, "generate", generate)
    outcome = run_study(tiny_study(text), tmp_path, device="cpu", seeds=[0], only=["local"])
    assert len(finished(outcome.record)) == 2
    assert not outcome.failed


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), UnreachableDataError("the disk is away")])
def test_a_group_goes_on_from_its_own_checkpoints(tmp_path, monkeypatch, request, stop):
    """They are those that a worker would leave or go on from; an outage keeps them too."""
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    told, stops = [], [stop]

    def progress(stage, done, total, remark):
        if stage == "training":
            told.append(done)
            if done == 2 and stops:
                raise stops.pop()

    def run():
        return run_study(tiny_study(), tmp_path, progress=progress, **wanted)

    wanted = {"device": "cpu", "seeds": [0], "only": ["local"]}
    if isinstance(stop, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run()
    else:
        assert [one["error"] for one in run().failed] == ["the disk is away"]
    cells = tiny_study().cells(seeds=[0], only=["local"])
    (group,) = make_plan(StudyFolder(tmp_path), cells).groups
    assert list(tmp_path.glob(f"cells/.group-{group.name}.twoscale-work/checkpoints/*"))
    request.getfixturevalue("two_threads")  # as where others go on
    before = len(told)
    assert not run().failed
    assert min(told[before:]) > 0
    assert not list(tmp_path.rglob("*.twoscale-work"))


def test_a_group_is_run_once_its_worker_has_stopped(tmp_path, monkeypatch):
    """A worker may go on for a moment after its command was killed; its finished cells are kept."""
    monkeypatch.setattr(groups, "_PAUSE", 0.0)
    wanted = {"device": "cpu", "seeds": [0, 1], "only": ["local"]}
    done = run_study(tiny_study(), tmp_path / "worker", **wanted).record["cells"]
    run_study(tiny_study(), tmp_path / "own", device="cpu", seeds=[5], only=["local"])
    folder = StudyFolder(tmp_path / "own")
    cells = tiny_study().cells(seeds=[0, 1], only=["local"])
    (group,) = make_plan(folder, cells).groups
    worker = WorkFolder(folder.group(group.name))
    claim = WorkFolder(folder.cell(cells[0]))
    waited = []

    def progress(stage, done, total, remark):
        if stage == "waiting":
            waited.append(remark)
            if len(waited) == 3:
                shutil.copytree(tmp_path / "worker/cells" / cells[0].key, folder.cell(cells[0]))
                claim.remove()
                worker.release()

    outcome = run_study(tiny_study(), folder.path, progress=progress, **wanted)
    assert not outcome.failed
    assert len(waited) == 3
    assert waited[0].startswith("for another worker (process")
    assert finished(outcome.record) == [("poisson-16 local", seed) for seed in (0, 1, 5)]
    assert outcome.record["cells"][0]["metrics"] == done[0]["metrics"]
    assert folder.log(cells[0]).read_text().count("waiting for another worker") == 1
    assert not list(folder.path.rglob("*.twoscale-work"))


def test_logs_are_written_into_files_of_the_study_only(tmp_path):
    """A link among the logs does not lead to somebody else's file."""
    key = next(cell.key for cell in tiny_study().cells(seeds=[0], only=["local"]))
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "out" / "logs").mkdir(parents=True)
    (tmp_path / "out" / "logs" / f"{key}.log").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(TwoscaleError, match="cannot write"):
        run_study(tiny_study(), tmp_path / "out", device="cpu", seeds=[0], only=["local"])
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_sample_that_is_not_in_the_test_set_is_chosen_anew(copy):
    """A field file of somebody else's may name any; pictures of that sample are dropped."""
    file = copy / "records" / "tiny.npz"
    fields = dict(np.load(file))
    np.savez_compressed(file, **{**fields, "poisson-16/sample": np.array(10**6)})
    record = read_tiny(copy)
    local, two_scale = (
        next(cell for cell in record["cells"] if (cell["case"], cell["seed"]) == (case, 0))
        for case in CASES[:2]
    )
    record["cells"].remove(local)
    record.pop("checksum", None)
    (copy / "records" / "tiny.json").write_text(json.dumps(record))
    for cell in (local, two_scale):
        shutil.rmtree(copy / "cells" / cell["key"])
    run_study(tiny_study(), copy, device="cpu", seeds=[0], only=["local"])
    found = np.load(file)
    assert int(found["poisson-16/sample"]) == int(fields["poisson-16/sample"])
    assert f"poisson-16/prediction/{CASES[0]}" in found
    assert f"poisson-16/prediction/{CASES[1]}" not in found


def test_what_is_not_the_studys_survives(tmp_path):
    mine = {".lock": "1", "notes.txt": "mine", "cells/mine/notes.txt": "mine", "logs/mine.log": "a"}
    for name, text in mine.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["local"])
    assert finished(read_tiny(tmp_path)) == ALL[:1]
    assert {name: (tmp_path / name).read_text() for name in mine} == mine


def test_a_predictor_of_ones_own_may_have_no_epochs(tmp_path, own_parts):
    class Ridge(Affine):
        name = "own"

        def __init__(self, *, strength=1e-6):
            super().__init__(ridge=strength)

    cases = "cases:\n  - {method: local, settings: {predictor: own}}\n"
    study = tiny_study(TEXT[: TEXT.index("cases:")] + cases + TEXT[TEXT.index("small:") :])
    outcome = run_study(study, tmp_path / "out", device="cpu")
    assert outcome.failed == []
    assert finished(outcome.record) == [("poisson-16 local predictor=own", seed) for seed in (0, 1)]
