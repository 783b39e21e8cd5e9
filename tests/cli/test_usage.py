"""Usage errors, interruptions, and what --overwrite replaces."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.outcome import contents, refused

# Usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "d"), ("--out",)),
        (("generate", "poisson"), ("--out",)),
        (("generate",), ("issing",)),
        (("generate", "poisson", "--seed", "-1", "--out", "d"), ("--seed", "0")),
        (("generate", "poisson", "--seed", "one", "--out", "d"), ("--seed", "integer")),
        (("generate", "poisson", "--resolution", "0", "--out", "d"), ("--resolution", "1")),
        (("demo", "--samples", "5"), ("--samples",)),
        (("fit", "d", "--colour", "red", "--out", "r"), ("--colour", "fit --help")),
        (("fit", "d", "--metod", "x"), ("--metod", "--method")),
        (("--colour",), ("--colour",)),
        (("ftt",), ("'ftt'", "'fit'")),
    ],
)
def test_usage_errors(twoscale, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    outcome = twoscale(*arguments)
    refused(outcome, *words)
    assert outcome.err.startswith("twoscale: ")
    assert outcome.err.endswith(" --help)\n")
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_without_arguments_there_is_help(twoscale):
    outcome = twoscale()
    assert outcome.status == 0
    assert "Usage" in outcome.out
    assert "demo" in outcome.out
    assert outcome.err == ""


# Interruption


WARNING = "twoscale: warning:"  # of surrogates that have hardly learned anything


def _interrupt(*arguments, **options):
    raise KeyboardInterrupt


def _interrupted(outcome):
    assert outcome.status == 130
    assert "Traceback" not in outcome.err + outcome.out
    (line,) = [line for line in outcome.err.splitlines() if line.strip() and WARNING not in line]
    assert line.partition(";")[0] == "twoscale: interrupted"


@pytest.mark.usefixtures("unsaved")
def test_an_interrupted_fit_leaves_nothing(twoscale, data, tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale.training.loop.mean_loss", _interrupt)
    named = ("--method", "two-scale")
    _interrupted(twoscale("fit", data, *named, "--out", tmp_path / "runs" / "r"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "evaluate", "predict"])
def test_any_command_can_be_interrupted(twoscale, data, run_folder, tmp_path, monkeypatch, command):
    np.save(tmp_path / "x.npy", np.ones((2, 16, 16)))
    arguments = {
        "check": (data,),
        "evaluate": (run_folder,),
        "predict": (run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy"),
    }
    monkeypatch.setattr("twoscale.files.npy.open_npy", _interrupt)
    monkeypatch.setattr("twoscale.data.shards.checksum", _interrupt)
    _interrupted(twoscale(command, *arguments[command]))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(("kind", "moment"), [("run", 1), ("dataset", 2), ("file", 2)])
def test_an_interrupt_while_replacing_keeps_the_old_result(
    twoscale, data, run_folder, tmp_path, monkeypatch, kind, moment
):
    out = tmp_path / "out"
    np.save(tmp_path / "x.npy", np.ones((2, 16, 16)))
    if kind == "file":
        out.write_bytes(b"old")
        command = ("predict", run_folder, tmp_path / "x.npy")
    elif kind == "run":
        shutil.copytree(run_folder, out)
        command = ("fit", data, "--method", "local", "--set", "epochs=1")
    else:
        shutil.copytree(data, out)
        command = ("generate", "poisson", "--resolution", 16, "--samples", 4)
    before = out.read_bytes() if kind == "file" else contents(out)
    calls = []
    monkeypatch.setattr("twoscale.files.moves._renameat2", lambda *arguments: False)

    def rename(source, destination):
        if "out" in (Path(source).name, Path(destination).name):
            calls.append(source)
            if len(calls) == moment:
                raise KeyboardInterrupt
        os.rename(source, destination)

    monkeypatch.setattr(Path, "rename", rename)
    _interrupted(twoscale(*command, "--overwrite", "--out", out))
    assert (out.read_bytes() if kind == "file" else contents(out)) == before
    assert not (tmp_path / "out.old").exists()


# What --overwrite replaces, and where results go


@pytest.fixture
def commands(data, run_folder, tmp_path):
    """A command of each kind of result, without --out."""
    source = tmp_path / "x.npy"
    np.save(source, np.ones((2, 16, 16)))
    return {
        "fit": ("fit", data, "--method", "local", "--set", "epochs=1"),
        "generate": ("generate", "poisson", "--resolution", 16, "--samples", 4),
        "import": ("import", source, source),
        "predict": ("predict", run_folder, source),
    }


any_command = pytest.mark.parametrize("command", ["fit", "generate", "import", "predict"])


@any_command
def test_other_peoples_folders_are_not_replaced(twoscale, commands, tmp_path, monkeypatch, command):
    mine = tmp_path / "mine"
    (mine / "inside").mkdir(parents=True)
    (mine / "file.txt").write_text("keep")
    monkeypatch.chdir(mine / "inside")
    for out in (mine, ".", ".."):
        outcome = twoscale(*commands[command], "--overwrite", "--out", out)
        refused(outcome, "is something else, or holds other files too")
    assert contents(mine) == {"file.txt": b"keep"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "x.npy"]


@any_command
def test_results_of_the_same_kind_are_replaced_if_asked(twoscale, commands, tmp_path, command):
    out = tmp_path / "out"
    assert twoscale(*commands[command], "--out", out).status == 0
    refused(twoscale(*commands[command], "--out", out), "exists already", "overwrite")
    assert twoscale(*commands[command], "--overwrite", "--out", out).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.npy"]
