"""Cells of studies on workers: killed, waited for, abandoned, and finished with the same bytes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from threading import Thread

import pytest

from tests.cluster.tools import Here, TcpCluster
from tests.lab.study.tiny import TEXT, finished, read_tiny, tiny_study
from twoscale.cluster import connected
from twoscale.files import WorkFolder
from twoscale.runtime.tasks import Abandoned, Caller, called_by
from twoscale.runtime.threads import one_thread
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.on_workers import RunGroup, Running, run_groups
from twoscale_lab.study.planning import make_plan
from twoscale_lab.study.runner import run_study

EPOCHS = 6
FNO = TEXT.replace("local: {epochs: 2}", f"fno: {{epochs: {EPOCHS}, modes: 2, width: 4}}").replace(
    "cases:\n  - {method: local}\n  - {method: two-scale, objective: [null, A1]}",
    "cases:\n  - {method: fno}",
)

# In a worker: states are saved after each epoch, the process dies once after epoch 2, and after
# epoch 4 it waits until nobody wants the cell any more.
HURT = """
import os, time
from pathlib import Path
from twoscale.files import checkpoints
from twoscale.runtime.tasks import caller
from twoscale.training.loop import Member, Training

notes = Path({notes!r})
checkpoints._FIRST_SECONDS = checkpoints._SHARE_AT_RISK = checkpoints._COST_LIMIT = 0
# Dask runs this file more than once.
record = getattr(Member.record_epoch, "original", Member.record_epoch)
save = getattr(Training.save_if_due, "original", Training.save_if_due)

def recorded(member, *arguments):
    record(member, *arguments)
    with (notes / "epochs").open("a") as file:
        print(len(member.history.validation_loss), file=file)

def first_time(name):
    try:
        (notes / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def saved(self, epoch, groups=0):
    save(self, epoch, groups)
    if (epoch, groups) == (2, 0) and first_time("died"):
        os._exit(1)
    if (epoch, groups) == (4, 0) and first_time("waits"):
        while True:
            caller().check()
            time.sleep(0.02)

recorded.original, saved.original = record, save
Member.record_epoch, Training.save_if_due = recorded, saved
"""

COMMAND = """
import sys
from tests.lab.test_cluster_studies import FNO, connected, run_study, tiny_study

with connected(sys.argv[1]) as workers:
    run_study(tiny_study(FNO), sys.argv[2], device="cpu", seeds=[0], workers=workers)
"""


def weights(out):
    (file,) = out.glob("cells/*/weights.safetensors")
    return file.read_bytes()


def test_a_long_cell_goes_on_after_its_worker_and_its_command_were_killed(tmp_path):
    with one_thread():
        run_study(tiny_study(FNO), tmp_path / "here", device="cpu", seeds=[0])
    (tmp_path / "hurt.py").write_text(HURT.format(notes=str(tmp_path)))
    out = tmp_path / "there"
    with TcpCluster(preload=tmp_path / "hurt.py") as cluster:
        command = [sys.executable, "-c", COMMAND, cluster.address, str(out)]
        with subprocess.Popen(command) as process:
            while not (tmp_path / "waits").exists():
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        assert list(out.glob("cells/.group-*.twoscale-work/checkpoints/*"))
        with connected(cluster.address) as workers:
            outcome = run_study(tiny_study(FNO), out, device="cpu", seeds=[0], workers=workers)
    assert not outcome.failed
    assert (tmp_path / "died").exists()
    epochs = (tmp_path / "epochs").read_text().split()
    assert epochs == [str(number + 1) for number in range(EPOCHS)]
    assert weights(out) == weights(tmp_path / "here")
    assert not list(out.rglob("*.twoscale-work"))
    log = next(out.glob("logs/*.log")).read_text()
    assert "stopped: Abandoned" in log
    assert "finished, relative error" in log


@pytest.fixture
def group(tmp_path):
    """A study folder with its data, and the group of its cells on codes."""
    folder = StudyFolder(tmp_path)
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[5], only=["local"])
    (group,) = make_plan(folder, tiny_study().cells(seeds=[0], only=["local"])).groups
    return folder, group


def test_a_group_that_another_worker_runs_is_waited_for(group, monkeypatch):
    folder, group = group
    monkeypatch.setattr("twoscale_lab.study.groups._PAUSE", 0.01)
    other = WorkFolder(folder.group(group.name))
    waiting = folder.log(group.cells[0])
    failed = []
    thread = Thread(target=lambda: failed.append(RunGroup(folder.path, "cpu")(group)))
    thread.start()
    while not (waiting.exists() and "waiting for another worker (process" in waiting.read_text()):
        assert thread.is_alive()
    assert not folder.has_run(group.cells[0])
    other.release()
    thread.join()
    assert failed == [[]]
    assert folder.has_run(group.cells[0])


def test_cells_that_workers_died_of_have_failed_and_the_others_run(tmp_path):
    wanted = {"device": "cpu", "seeds": [0]}

    def deadly(group):
        return group.cells[0].case.method == "fno"

    text = TEXT.replace("local: {epochs: 2}", "fno: {epochs: 1, modes: 2, width: 4}")
    study = tiny_study(text.replace("{method: local}", "{method: fno}"))
    outcome = run_study(study, tmp_path, workers=Here(deadly), **wanted)
    (failed,) = outcome.failed
    assert (failed["case"], failed["error"]) == ("poisson-16 fno", "several workers died of it")
    assert "several workers died" in (tmp_path / "logs" / f"{failed['key']}.log").read_text()
    assert len(finished(outcome.record)) == 2
    assert not run_study(study, tmp_path, workers=Here(), **wanted).failed


def test_cells_that_were_finished_before_workers_died_have_not_failed(group, monkeypatch):
    folder, group = group
    RunGroup(folder.path, "cpu")(group)
    tasks = Here(lambda item: True)
    ((_, failed),) = run_groups([group], folder.path, "cpu", tasks, lambda *report: None)
    assert failed == []


def test_a_task_that_nobody_wants_ends_at_once(group):
    folder, group = group
    with called_by(Caller(lambda: False, lambda message: None)), pytest.raises(Abandoned):
        RunGroup(folder.path, "cpu")(group)
    assert not folder.has_run(group.cells[0])


def leave_checkpoint(place):
    """Leave a checkpoint beside a place as a killed worker does."""
    work = WorkFolder(place)
    work.checkpoints.mkdir()
    (work.checkpoints / "x.safetensors").write_text("not one")
    work.release()
    return work.checkpoints


@pytest.mark.parametrize("resume", [True, False])
def test_only_a_study_that_resumes_takes_checkpoints_over(group, monkeypatch, resume):
    folder, group = group
    places = folder.group(group.name), folder.cell(group.cells[0])
    kept = [leave_checkpoint(place) for place in places]
    seen = []

    def look(self, one):
        seen.extend(one.exists() for one in kept)
        return []

    monkeypatch.setattr(RunGroup, "__call__", look)
    run_study(
        tiny_study(), folder.path, device="cpu", seeds=[0], only=["local"], workers=Here(),
        resume=resume,
    )  # fmt: skip
    assert seen == [resume, resume]


def test_checkpoints_of_finished_groups_vanish(group):
    folder, group = group
    wanted = {"device": "cpu", "seeds": [0], "only": ["local"]}
    run_study(tiny_study(), folder.path, workers=Here(), **wanted)
    kept = leave_checkpoint(folder.group(group.name))
    run_study(tiny_study(), folder.path, workers=Here(), **wanted)
    assert not kept.parent.exists()


def test_the_command_hears_what_runs(tmp_path):
    told = []
    run_study(
        tiny_study(), tmp_path, device="cpu", seeds=[0], workers=Here(),
        progress=lambda *report: told.append(report),
    )  # fmt: skip
    running = [report[1:] for report in told if report[0] == "running"]
    assert running[0] == (2, 3, "poisson-16 local seed 0 with 1 more (starting)")
    assert (1, 1, "poisson-16 two-scale+A1 seed 0 (finetuning 0/2)") in running
    assert finished(read_tiny(tmp_path))
    for cell in read_tiny(tmp_path)["cells"]:
        log = (tmp_path / "logs" / f"{cell['key']}.log").read_text()
        assert "finished, relative error" in log


def test_many_groups_are_counted(tmp_path):
    cells = tiny_study(FNO).cells(seeds=[0, 1, 2])
    groups = make_plan(StudyFolder(tmp_path), cells).groups
    reports = []
    running = Running(groups, lambda *report: reports.append(report))
    for group in groups:
        running.hear((group.name, "training 1/6"))
    running.hear(("no group of this command", "training 1/6"))
    running.report()
    stage, done, total, words = reports[-1]
    assert (stage, done, total) == ("running", 3, 3)
    assert words == (
        "poisson-16 fno seed 0 (training 1/6), poisson-16 fno seed 1 (training 1/6) and 1 more"
    )


def test_the_cells_of_a_study_are_tasks(workers, tmp_path):
    here = run_study(tiny_study(), tmp_path / "here", device="cpu")
    there = run_study(tiny_study(), tmp_path / "there", device="cpu", workers=workers)
    assert not there.failed
    assert finished(read_tiny(tmp_path / "there")) == finished(here.record)
    for one, other in zip(here.record["cells"], there.record["cells"], strict=True):
        assert other["metrics"]["mre"] == pytest.approx(one["metrics"]["mre"], rel=1e-4)
    again = run_study(tiny_study(), tmp_path / "there", device="cpu", workers=workers)
    assert not again.plan.groups


def test_a_cell_that_fails_elsewhere_is_recorded(workers, tmp_path):
    study = tiny_study(TEXT.replace("local: {epochs: 2}", "local: {epochs: 2, patches: 40}"))
    outcome = run_study(study, tmp_path, device="cpu", seeds=[0], workers=workers)
    assert [entry["case"] for entry in outcome.failed] == ["poisson-16 local"]
    assert "patches" in outcome.failed[0]["error"]
