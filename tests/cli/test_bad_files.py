"""Things that are no files, and files that are not what they claim to be: one sentence each."""

import os
import shutil

import numpy as np
import pytest

from tests.cli.outcome import refused

NO_FILES = {
    "a pipe, not a file": os.mkfifo,
    "a device, not a file": lambda path: path.symlink_to("/dev/zero"),
    "lead in a circle": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize(("words", "make"), NO_FILES.items(), ids=NO_FILES)
def test_things_that_are_no_files(twoscale, run_folder, tmp_path, words, make):
    damaged = tmp_path / "run"
    shutil.copytree(run_folder, damaged)
    made = [tmp_path / "x.npy", tmp_path / "x.npz", tmp_path / "x.h5", tmp_path / "x.mat"]
    for path in made:
        make(path)
    out = ("--out", tmp_path / "new")
    refused(twoscale("predict", run_folder, made[0], *out), words)
    refused(twoscale("import", made[0], made[0], *out), words)
    for path in made[1:]:
        refused(twoscale("import", path, "--input", "a", "--output", "u", *out), words)
    (damaged / "manifest.json").unlink()
    make(damaged / "manifest.json")
    refused(twoscale("evaluate", damaged), "manifest.json", words)
    if "circle" in words:
        refused(twoscale("check", made[0]), words)
    assert sorted(tmp_path.iterdir()) == sorted([*made, damaged])


def test_two_files_of_several_arrays(twoscale, tmp_path):
    np.savez(tmp_path / "p.npz", a=np.ones((3, 8, 8)))
    np.save(tmp_path / "a.npy", np.ones((3, 8, 8)))
    np.savez(tmp_path / "q.npz", b=np.ones((3, 8, 8)))
    for files, words in (
        (("p.npz", "q.npz"), "the set of 2 files holds one array of fields, 'a'"),
        (("p.npz", "a.npy"), "several files must be of one kind"),
        (("a.npy", "p.npz"), "several files must be of one kind"),
    ):
        outcome = twoscale("import", *(tmp_path / file for file in files), "--out", tmp_path / "d")
        refused(outcome, words)


def test_prediction_from_headers_that_lie(twoscale, run_folder, tmp_path):
    path = tmp_path / "x.npy"
    for shape in ((-1, 16, 16), (10**12, 16, 16), (0, 16, 16)):
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(bytes(8 * 16 * 16 * (shape[0] != 0)))
        refused(twoscale("predict", run_folder, path, "--out", tmp_path / "p.npy"), "x.npy")
    assert list(tmp_path.iterdir()) == [path]
