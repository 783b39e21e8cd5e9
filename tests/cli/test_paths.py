"""A path of a wrong kind: the sentence says what it is, and which command takes it."""

import shutil

import numpy as np
import pytest

from tests.cli.outcome import contents, refused
from twoscale import Surrogate


@pytest.fixture(scope="module")
def places(data, run_folder, tmp_path_factory):
    """One path of every kind, by name; tests must not write to them."""
    root = tmp_path_factory.mktemp("places")
    shutil.copytree(run_folder, root / "several" / "seed-0")
    Surrogate.load(run_folder, device="cpu").save(root / "saved")
    (root / "studies" / "records").mkdir(parents=True)
    (root / "studies" / "records" / "mine.json").write_text('{"study": "mine", "cells": []}')
    np.save(root / "x.npy", np.ones((2, 16, 16)))
    np.savez(root / "x.npz", a=np.ones((2, 16, 16)))
    (root / "mine.yaml").write_text("title: Mine")
    (root / "empty").mkdir()
    (root / "other").mkdir()
    (root / "other" / "mine.txt").write_text("mine")
    names = ("saved", "several", "studies", "empty", "other")
    files = {"npy": root / "x.npy", "npz": root / "x.npz", "yaml": root / "mine.yaml"}
    return {"dataset": data, "run": run_folder, **{name: root / name for name in names}, **files}


WORDS = {
    "dataset": ("is a dataset, not", "fit it with 'twoscale fit"),
    "run": ("is a run, not", "'twoscale evaluate"),
    "saved": ("is a surrogate saved from Python, not", "'twoscale predict"),
    "several": ("is a folder of runs, not", "seed-0"),
    "studies": ("is a study folder, not", "'twoscale study report"),
    "empty": ("is an empty folder, not", "choose another path"),
    "other": ("is a folder of something else, not", "choose another path"),
    "npy": ("is an npy file, not", "'twoscale fit"),
    "npz": ("is an npz file, not", "'twoscale fit"),
    "yaml": ("is a YAML file, not", "'twoscale study run"),
}
COMMANDS = {
    "fit": (["{path}", "--out", "new"], {"dataset", "npy", "npz", "other"}),
    "check": (["{path}"], {"dataset", "run", "saved", "npy", "npz", "other"}),
    "finetune": (["{path}", "--out", "new"], {"run"}),
    "evaluate": (["{path}"], {"run"}),
    "predict": (["{path}", "x.npy", "--out", "new"], {"run", "saved"}),
    "import": (["{path}", "--out", "new"], {"npy", "npz", "empty", "other"}),
    "report": (["{path}", "--out", "new.html"], {"run", "several", "empty", "other"}),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_kind_of_path(twoscale, places, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    arguments, fine = COMMANDS[command]
    for kind in places.keys() - fine:
        given = [word.format(path=places[kind]) for word in arguments]
        refused(twoscale(*command.split(), *given), str(places[kind]), *WORDS[kind])
    assert contents(tmp_path) == {}


def test_options_that_take_paths(twoscale, places, tmp_path):
    run, out = places["run"], ("--out", tmp_path / "new")
    refused(twoscale("evaluate", run, "--data", run), *WORDS["run"], "a dataset")
    refused(twoscale("finetune", run, "--data", places["saved"], *out), *WORDS["saved"])
    refused(twoscale("predict", run, run, *out), *WORDS["run"], "a file of arrays")
    refused(twoscale("predict", run, "--parameters", places["empty"], *out), *WORDS["empty"])
