import json
import subprocess

import pytest
import torch

from tests.surrogate.sealed import edit_manifest
from twoscale import TwoscaleError, __version__
from twoscale.surrogate import artifact
from twoscale.surrogate.artifact import (
    FORMAT,
    FORMAT_VERSION,
    environment,
    is_surrogate,
    read_artifact,
    write_artifact,
)


@pytest.fixture
def folder(tmp_path):
    """A small artifact with a manifest of one entry and two tensors."""
    path = tmp_path / "model"
    path.mkdir()
    tensors = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.tensor([1, 2])}
    write_artifact(path, {"method": "local"}, tensors)
    return path


def edit(folder, **changes):
    edit_manifest(folder, lambda manifest: manifest.update(changes))


# Its folder


def test_a_surrogate_is_told_from_other_folders(folder, tmp_path):
    assert is_surrogate(folder)
    assert not is_surrogate(tmp_path)
    assert not is_surrogate(tmp_path / "nowhere")
    edit(folder, format="another-program")
    assert not is_surrogate(folder)


# The artifact


def test_what_is_written_is_read(folder):
    manifest, tensors = read_artifact(folder)
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "method": "local"}
    assert manifest.items() >= head.items()
    assert manifest.keys() - head.keys() == {"checksum", "tensors"}
    assert manifest["tensors"].keys() == {"a", "b"}
    assert torch.equal(tensors["a"], torch.arange(6.0).reshape(2, 3).T)
    assert torch.equal(tensors["b"], torch.tensor([1, 2]))


@pytest.mark.parametrize("version", [0, 1, 3, 5, "4", None])
def test_another_version_is_told(folder, version):
    edit(folder, format_version=version)
    message = f"format version {version}; this twoscale reads version 4: use a matching release"
    with pytest.raises(TwoscaleError, match=message):
        read_artifact(folder)


@pytest.mark.parametrize("keep", [0, 4, 40, -4])
def test_truncated_weights_are_told(folder, keep):
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content[:keep])
    with pytest.raises(TwoscaleError, match=r"weights\.safetensors is damaged"):
        read_artifact(folder)


def test_weights_can_be_read_by_whom_the_manifest_can(folder):
    modes = {path.stat().st_mode for path in folder.iterdir()}
    assert len(modes) == 1


def test_any_flipped_bit_is_told(folder):
    """In the weights, whatever it is; in the manifest, unless it stays the same content."""
    for name in ("weights.safetensors", "manifest.json"):
        whole = (folder / name).read_bytes()
        for place in range(0, len(whole), 3):
            content = bytearray(whole)
            content[place] ^= 1 << place % 8
            (folder / name).write_bytes(content)
            try:
                same = (
                    json.loads(content) == json.loads(whole) if name == "manifest.json" else False
                )
            except ValueError:
                same = False
            if not same:
                with pytest.raises(TwoscaleError):
                    read_artifact(folder)
        (folder / name).write_bytes(whole)
    read_artifact(folder)


# Provenance


def test_the_environment_names_software_and_device(monkeypatch):
    monkeypatch.setenv("TWOSCALE_COMMIT", "abc123")
    monkeypatch.delenv("TWOSCALE_PROCESSES", raising=False)
    record = environment(torch.device("cpu"))
    assert record["twoscale"] == __version__
    assert record["torch"] == torch.__version__
    assert record["commit"] == "abc123"
    assert record["device"] == "cpu"
    assert set(record) == {
        "twoscale",
        "commit",
        "python",
        "torch",
        "numpy",
        "scipy",
        "device",
        "device_name",
        "threads",
        "tf32_convolutions",
    }
    assert record["tf32_convolutions"] is False


def test_the_environment_names_the_processes_that_share_the_device(monkeypatch):
    monkeypatch.setenv("TWOSCALE_PROCESSES", "4")
    assert environment(torch.device("cpu"))["processes"] == 4


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5", "1e3", "9" * 5000])
def test_a_number_of_processes_that_is_none_is_told(monkeypatch, text):
    monkeypatch.setenv("TWOSCALE_PROCESSES", text)
    with pytest.raises(TwoscaleError, match="TWOSCALE_PROCESSES is the number of processes"):
        environment(torch.device("cpu"))


def test_without_git_the_commit_is_unknown(monkeypatch):
    monkeypatch.delenv("TWOSCALE_COMMIT", raising=False)
    monkeypatch.setenv("PATH", "")
    assert environment(torch.device("cpu"))["commit"] is None


def test_a_copy_in_another_repository_does_not_take_its_commit(monkeypatch, tmp_path):
    monkeypatch.delenv("TWOSCALE_COMMIT", raising=False)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for command in (["init"], [*identity, "commit", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(artifact, "__file__", str(tmp_path / "artifact.py"))
    (tmp_path / "artifact.py").write_text("")
    assert environment(torch.device("cpu"))["commit"] is None
    for command in (["add", "."], [*identity, "commit", "-m", "y"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    assert len(environment(torch.device("cpu"))["commit"]) == 12
