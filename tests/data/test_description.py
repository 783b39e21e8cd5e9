"""A dataset's description: nothing in it is believed that does not fit the rest."""

import pytest

from tests.data.tools import edit_description
from twoscale.data import Dataset, description
from twoscale.errors import TwoscaleError


def test_identity_follows_the_description(dataset):
    before = dataset.identity
    edit_description(dataset.path, lambda a: a.update(problem=None))
    assert Dataset(dataset.path).identity != before


def test_the_digest_is_of_all_but_itself():
    attributes = {"b": [1, 2.5], "a": {"d": None, "c": "x"}}
    digest = description.description_digest(attributes)
    assert len(digest) == 32
    same = {"digest": digest, "a": {"c": "x", "d": None}, "b": [1, 2.5]}
    assert description.description_digest(same) == digest
    assert description.description_digest(same | {"b": [1, 2.0]}) != digest
    assert description.description_digest(same | {"e": None}) != digest


def test_any_change_of_the_description_is_told(dataset):
    changes = [
        lambda a: a["problem"].update(name="darcy"),
        lambda a: a.update(seed=1),
        lambda a: a["input"].update(periodic=[True, False]),
        lambda a: a["checksums"]["input"].reverse(),
        lambda a: a.update(more=1),
        lambda a: a.pop("solver"),
        lambda a: a.pop("digest"),
        lambda a: a.update(digest=3),
    ]
    for change in changes:
        content = (dataset.path / "zarr.json").read_bytes()
        edit_description(dataset.path, change, sign=False)
        with pytest.raises(TwoscaleError, match="its description has changed since it was written"):
            Dataset(dataset.path)
        (dataset.path / "zarr.json").write_bytes(content)
    assert Dataset(dataset.path).identity == dataset.identity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format="other"), "is not a twoscale dataset"),
        (lambda a: a.update(format_version=3), "dataset format 3; this twoscale reads 4"),
        (lambda a: a.pop("input"), "a proper input"),
        (lambda a: a.update(input=[16, 16]), "a proper input"),
        (lambda a: a["input"].update(more=1), "a proper input"),
        (lambda a: a["input"].update(height=-16), "a proper input"),
        (lambda a: a["output"].update(width=10**90), "a proper output"),
        (lambda a: a["output"].update(channels=2), "a proper output"),
        (lambda a: a["output"].update(channels=2, rank=4), "a proper chunk"),
        (lambda a: a["output"].update(channels=2, parameters=1), "a proper output"),
        (lambda a: a["input"].update(channels=2, parameters=1), "a proper checksums"),
        (lambda a: a["input"].update(parameters=1), "a proper input"),
        (lambda a: a["input"].update(rank=2), "a proper input"),
        (lambda a: a["input"].update(rank=True), "a proper input"),
        (lambda a: a["input"].update(rank=None), "a proper input"),
        (lambda a: a["input"].update(periodic=[0, 1]), "a proper input"),
        (lambda a: a["input"].update(names=["a", "b"]), "a proper input"),
        (lambda a: a["input"].update(rank=4), "input does not match the dataset's description"),
        (lambda a: a["output"].update(width=17), "a proper chunk|does not match"),
        (lambda a: a.update(chunk=10**9), "a proper chunk"),
        (lambda a: a.update(shard=24), "a proper shard"),
        (lambda a: a.update(samples=29), "input does not match the dataset's description"),
        (lambda a: a.update(samples=10**12), "a proper checksums"),
        (lambda a: a.update(samples=30.0), "a proper samples"),
        (lambda a: a.update(samples=0), "a proper samples"),
        (lambda a: a["checksums"]["input"].pop(), "a proper checksums"),
        (lambda a: a["checksums"].update(input=8 * [3]), "a proper checksums"),
        (lambda a: a["checksums"].pop("output"), "a proper checksums"),
        (lambda a: a.update(checksums=3), "a proper checksums"),
        (lambda a: a.update(complete=False), "is not complete"),
        (lambda a: a.pop("distribution"), "a proper distribution"),
        (lambda a: [a.pop(key) for key in ("seed", "solver")], "a proper seed, solver"),
        (lambda a: a.update(problem=["poisson"]), "a proper problem"),
        (lambda a: a.update(problem={"name": "poisson"}), "a proper problem"),
        (lambda a: a["problem"].update(parameters=3), "a proper problem"),
        (lambda a: a.pop("problem"), "a proper problem"),
        (lambda a: a.update(seed=0.5), "a proper seed"),
    ],
)
def test_damaged_descriptions(dataset, change, message):
    edit_description(dataset.path, change)
    with pytest.raises(TwoscaleError, match=message):
        Dataset(dataset.path)


@pytest.mark.parametrize("file", ["zarr.json", "input/zarr.json"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{}", "does not match|lacks a proper attributes"),
        (b'{"shape": ' + b"9" * 5000 + b"}", "5000 digits"),
        (b" " * (64 * 10**6 + 1), "too large"),
    ],
    ids=["cut", "deep", "empty", "long number", "large"],
)
def test_descriptions_that_are_none(dataset, file, content, words):
    (dataset.path / file).write_bytes(content)
    with pytest.raises(TwoscaleError, match=words):
        Dataset(dataset.path)


def test_a_dataset_behind_a_circle_of_links(tmp_path):
    (tmp_path / "d").symlink_to(tmp_path / "d")
    with pytest.raises(TwoscaleError, match="its symbolic links lead in a circle"):
        Dataset(tmp_path / "d")


def test_a_name_that_no_folder_has():
    with pytest.raises(TwoscaleError, match="does not exist"):
        Dataset("a\0b")
