"""What `check` says of runs and saved surrogates."""

import shutil

import pytest

from tests.surrogate.sealed import edit_manifest
from twoscale import Poisson
from twoscale.data import Dataset, generate
from twoscale.run import Run, fit_run
from twoscale.run.check import check_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    generate(Poisson(), folder / "p.zarr", resolution=16, samples=60)
    fit_run(Dataset(folder / "p.zarr"), folder / "r", method="local", settings={"epochs": 1})
    return folder / "r"


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r")
    return tmp_path / "r"


def levels(findings):
    return [finding.level for finding in findings]


def errors(path):
    return " ".join(one.message for one in check_run(path) if one.level == "error")


def test_a_whole_run_is_fine(copy):
    found = check_run(copy)
    assert levels(found) == ["ok"] * 4
    assert "local surrogate of 16x16 inputs and 16x16 outputs" in found[0].message
    assert "its dataset" in found[3].message


def test_a_saved_surrogate_is_checked_too(copy, tmp_path):
    Run.open(copy, device="cpu").surrogate.save(tmp_path / "s")
    assert levels(check_run(tmp_path / "s")) == ["ok"] * 2


@pytest.mark.parametrize(
    "name",
    ["config.json", "split.json", "history.json", "metrics.json", "environment.json"],
)
def test_a_changed_digit_in_any_file_is_found(copy, name):
    text = (copy / name).read_text()
    place = next(i for i, letter in enumerate(text) if letter.isdigit())
    digit = str((int(text[place]) + 1) % 10)
    (copy / name).write_text(text[:place] + digit + text[place + 1 :])
    assert f"{name} is damaged: it does not match its checksum" in errors(copy)


def test_changed_weights_are_found(copy):
    path = copy / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "weights.safetensors is damaged" in errors(copy)


def test_a_lost_file_is_found(copy):
    (copy / "split.json").unlink()
    assert "split.json does not exist" in errors(copy)
    (copy / "SHA256SUMS").unlink()
    assert "SHA256SUMS is missing" in errors(copy)


def test_another_runs_manifest_is_found(copy):
    edit_manifest(copy, lambda content: content.update(seed=7))
    assert "manifest.json is damaged: it does not match its checksum" in errors(copy)


def test_files_of_others_and_a_lost_dataset_are_told(copy, tmp_path):
    (copy / "notes.txt").write_text("mine")
    found = {one.message for one in check_run(copy) if one.level == "warning"}
    assert found == {"files that the run did not write: notes.txt"}
