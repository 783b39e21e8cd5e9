"""What is at a path."""

import json
import shutil

import h5py
import numpy as np
import pytest
import torch
import zarr
from scipy.io import savemat

from twoscale.data import generate
from twoscale.data.kinds import ContentKind, kind_of
from twoscale.problems import Poisson


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds") / "d.zarr"
    generate(Poisson(), path, resolution=9, samples=4, seed=0)
    return path


def test_files_by_their_first_bytes(tmp_path):
    values = np.ones((2, 3))
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", a=values)
    savemat(tmp_path / "a.mat", {"a": values})
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    for name in ("a.h5", "new.mat", "a.nc"):
        with h5py.File(tmp_path / name, "w") as file:
            file["a"] = values
    (tmp_path / "a.html").write_text("<!doctype html>")
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "liar.npy").write_text("hello")
    found = {path.name: kind_of(path) for path in tmp_path.iterdir()}
    assert found == {
        "a.npy": ContentKind.NPY,
        "a.npz": ContentKind.NPZ,
        "a.mat": ContentKind.MAT,
        "new.mat": ContentKind.MAT,
        "a.pt": ContentKind.TORCH,
        "a.h5": ContentKind.HDF5,
        "a.nc": ContentKind.NETCDF,
        "a.html": ContentKind.PAGE,
        "a.txt": ContentKind.FILE,
        "liar.npy": ContentKind.FILE,
    }


def test_datasets_stay_datasets_when_damaged(dataset, tmp_path):
    assert kind_of(dataset) is ContentKind.DATASET
    copy = tmp_path / "d.zarr"
    shutil.copytree(dataset, copy)
    (copy / "zarr.json").write_text("{")
    assert kind_of(copy) is ContentKind.DATASET


def test_other_folders(saved, tmp_path):
    assert kind_of(saved / "local") is ContentKind.SURROGATE
    assert kind_of(saved) is ContentKind.RUNS
    zarr.open_group(tmp_path / "z.zarr", mode="w")
    assert kind_of(tmp_path / "z.zarr") is ContentKind.ZARR
    (tmp_path / "e").mkdir()
    assert kind_of(tmp_path / "e") is ContentKind.EMPTY
    (tmp_path / "e" / "mine.txt").write_text("")
    assert kind_of(tmp_path / "e") is ContentKind.FOLDER
    (tmp_path / "s" / "records").mkdir(parents=True)
    assert kind_of(tmp_path / "s") is ContentKind.STUDIES
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "headline.json").write_text(json.dumps({"study": "headline", "cells": []}))
    assert kind_of(tmp_path / "r") is ContentKind.RECORDS
    (tmp_path / "e" / "demo.json").write_text("{}")
    assert kind_of(tmp_path / "e") is ContentKind.DEMO


def test_what_cannot_be_read_has_no_kind(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert kind_of(tmp_path / "circle") is None
    assert kind_of(tmp_path / "none") is None
