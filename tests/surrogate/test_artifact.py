import json
import math

import pytest
import torch

from twoscale import TwoscaleError, __version__
from twoscale.surrogate.artifact import (
    FORMAT,
    FORMAT_VERSION,
    complete_folder,
    environment,
    read_artifact,
    read_json,
    write_artifact,
    write_json,
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
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


# Folders that appear complete or not at all


def test_a_folder_appears_when_all_is_written(tmp_path):
    path = tmp_path / "run"
    with complete_folder(path) as scratch:
        (scratch / "file").write_text("x")
        assert not path.exists()
    assert (path / "file").read_text() == "x"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_nothing_is_left_of_a_folder_that_failed(tmp_path):
    def attempt():
        with complete_folder(tmp_path / "run") as scratch:
            (scratch / "file").write_text("x")
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_kept(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "old").write_text("x")
    with pytest.raises(TwoscaleError, match="run exists already: choose another --out or pass --o"):
        complete_folder(path).__enter__()
    assert (path / "old").exists()


def test_overwriting_replaces_the_whole_folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "old").write_text("x")
    with complete_folder(path, overwrite=True) as scratch:
        (scratch / "new").write_text("y")
    assert [p.name for p in path.iterdir()] == ["new"]


def test_a_failed_overwrite_keeps_the_old_folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "old").write_text("x")
    with pytest.raises(RuntimeError, match="boom"), complete_folder(path, overwrite=True):
        raise RuntimeError("boom")
    assert [p.name for p in path.iterdir()] == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_file_in_the_place_of_the_folder_is_overwritten_if_asked(tmp_path):
    path = tmp_path / "run"
    path.write_text("a file")
    with complete_folder(path, overwrite=True) as scratch:
        (scratch / "new").write_text("y")
    assert path.is_dir()


def test_remains_of_an_interrupted_attempt_are_cleared(tmp_path):
    remains = tmp_path / "run.partial"
    remains.mkdir()
    (remains / "half").write_text("x")
    with complete_folder(tmp_path / "run") as scratch:
        assert list(scratch.iterdir()) == []
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_parents_are_made(tmp_path):
    with complete_folder(tmp_path / "a" / "b" / "run"):
        pass
    assert (tmp_path / "a" / "b" / "run").is_dir()


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(TwoscaleError, match=r"cannot create .*run: "):
        complete_folder(tmp_path / "file" / "run").__enter__()


# JSON


def test_json_is_readable_and_without_nan(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": (1, 2), "b": math.nan, "c": [math.inf, 0.5], 3: {"d": None}})
    assert read_json(path) == {"a": [1, 2], "b": None, "c": [None, 0.5], "3": {"d": None}}
    assert path.read_text().endswith("}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json is damaged or not JSON"),
        (b"", "x.json is damaged or not JSON"),
        (b"\xff\xfe\x00", "x.json is damaged or not JSON"),
        (b"[1, 2]", "x.json should hold a JSON object"),
    ],
)
def test_damaged_json_is_told(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(TwoscaleError, match=message):
        read_json(path)


def test_missing_json_is_told(tmp_path):
    with pytest.raises(TwoscaleError, match=r"x\.json does not exist"):
        read_json(tmp_path / "x.json")


# The artifact


def test_what_is_written_is_read(folder):
    manifest, tensors = read_artifact(folder)
    assert manifest == {"format": FORMAT, "format_version": FORMAT_VERSION, "method": "local"}
    assert torch.equal(tensors["a"], torch.arange(6.0).reshape(2, 3).T)
    assert torch.equal(tensors["b"], torch.tensor([1, 2]))


def test_it_consists_of_two_files_and_no_pickle(folder):
    assert {path.name for path in folder.iterdir()} == {"manifest.json", "weights.safetensors"}
    head = (folder / "weights.safetensors").read_bytes()
    length = int.from_bytes(head[:8], "little")
    assert set(json.loads(head[8 : 8 + length])) >= {"a", "b"}


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(TwoscaleError, match="nowhere is not a folder: expected a saved surrogate"):
        read_artifact(tmp_path / "nowhere")


def test_a_missing_manifest_is_told(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(TwoscaleError, match=r"manifest\.json does not exist"):
        read_artifact(folder)


def test_a_truncated_manifest_is_told(folder):
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text[: len(text) // 2])
    with pytest.raises(TwoscaleError, match=r"manifest\.json is damaged or not JSON"):
        read_artifact(folder)


def test_a_manifest_of_something_else_is_told(folder):
    edit(folder, format="another-program")
    with pytest.raises(TwoscaleError, match="is not a twoscale surrogate's manifest"):
        read_artifact(folder)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_told(folder, version):
    edit(folder, format_version=version)
    message = f"format version {version}; this twoscale reads version 1: use a matching release"
    with pytest.raises(TwoscaleError, match=message):
        read_artifact(folder)


def test_missing_weights_are_told(folder):
    (folder / "weights.safetensors").unlink()
    with pytest.raises(TwoscaleError, match=r"weights\.safetensors does not exist"):
        read_artifact(folder)


@pytest.mark.parametrize("keep", [0, 4, 40, -4])
def test_truncated_weights_are_told(folder, keep):
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content[:keep])
    with pytest.raises(TwoscaleError, match=r"weights\.safetensors is damaged"):
        read_artifact(folder)


# Provenance


def test_the_environment_names_software_and_device(monkeypatch):
    monkeypatch.setenv("TWOSCALE_COMMIT", "abc123")
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
        "device",
        "device_name",
        "threads",
    }


def test_without_git_the_commit_is_unknown(monkeypatch):
    monkeypatch.delenv("TWOSCALE_COMMIT", raising=False)
    monkeypatch.setenv("PATH", "")
    assert environment(torch.device("cpu"))["commit"] is None
