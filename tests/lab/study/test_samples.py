"""The fields a study shows: of its median sample, the same for all cases."""

import json
import shutil

import numpy as np
import pytest

from tests.lab.study.tiny import CASES, TEXT, read_tiny, tiny_study
from twoscale.data import Dataset
from twoscale.fields.source import Batch
from twoscale.math.measures import median_sample, radial_spectrum
from twoscale.run import Run
from twoscale_lab.study.catalogue import parse_study
from twoscale_lab.study.runner import run_study

PLACE = "poisson-16"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    run_study(tiny_study(), out, device="cpu")
    return out


@pytest.fixture
def fields(done):
    return dict(np.load(done / "records" / "tiny.npz"))


@pytest.fixture
def runs(done):
    """The runs with seed 0, by case."""
    return {
        cell["case"]: Run.open(done / "cells" / cell["key"], device="cpu")
        for cell in read_tiny(done)["cells"]
        if cell["seed"] == 0
    }


def test_it_shows_plain_locals_median_sample(done, fields, runs):
    dataset = Dataset(done / "data" / "poisson-16-100-0.zarr")
    test = sorted(runs[CASES[0]].test_samples)
    inputs, truth = dataset.load("input", test), dataset.load("output", test)
    predicted = runs[CASES[0]].surrogate.predict_batch(Batch.of(inputs))
    place = median_sample(predicted, truth)
    assert fields[f"{PLACE}/sample"] == test[place]
    assert np.array_equal(fields[f"{PLACE}/input"], inputs[place, 0])
    assert np.array_equal(fields[f"{PLACE}/truth"], truth[place, 0])
    for case, run in runs.items():
        expected = run.surrogate.predict_batch(Batch.of(inputs))
        assert np.allclose(fields[f"{PLACE}/prediction/{case}"], expected[place, 0])
        spectrum = radial_spectrum(expected.double()).mean(0)[0]
        assert np.allclose(fields[f"{PLACE}/spectrum/{case}"], spectrum)
        edges = fields[f"{PLACE}/density/edges"]
        density = fields[f"{PLACE}/density/{case}"]
        assert len(density) == len(edges) - 1
    assert np.sum(fields[f"{PLACE}/density/truth"] * np.diff(edges)) == pytest.approx(1.0)
    assert fields[f"{PLACE}/truth"].dtype == np.float32


def test_it_holds_nothing_else(fields):
    names = {f"{PLACE}/{name}" for name in ("sample", "input", "truth", "density/edges")}
    for kind in ("prediction", "spectrum", "density"):
        names |= {f"{PLACE}/{kind}/{case}" for case in CASES}
    assert set(fields) == names | {f"{PLACE}/spectrum/truth", f"{PLACE}/density/truth"}


def test_without_plain_local_the_first_case_chooses(tmp_path):
    study = tiny_study(TEXT.replace("  - {method: local}\n", ""))
    run_study(study, tmp_path, device="cpu", seeds=[0], only=["two-scale"])
    fields = np.load(tmp_path / "records" / "tiny.npz")
    (base,) = (c for c in read_tiny(tmp_path)["cells"] if c["objective"] is None)
    run = Run.open(tmp_path / "cells" / base["key"], device="cpu")
    test = sorted(run.test_samples)
    dataset = Dataset(tmp_path / "data" / "poisson-16-100-0.zarr")
    predicted = run.surrogate.predict_batch(Batch.of(dataset.load("input", test)))
    assert fields[f"{PLACE}/sample"] == test[median_sample(predicted, dataset.load("output", test))]


def test_other_seeds_are_not_shown(tmp_path):
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[1], only=["local"])
    assert not (tmp_path / "records" / "tiny.npz").exists()


def test_the_sample_stays_while_pictures_of_runs_that_are_gone_show_it(tmp_path):
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0])
    file = tmp_path / "records" / "tiny.npz"
    old = dict(np.load(file))
    record = read_tiny(tmp_path)
    local, other = (next(c for c in record["cells"] if c["case"] == case) for case in CASES[:2])
    run = Run.open(tmp_path / "cells" / local["key"], device="cpu")
    old[f"{PLACE}/sample"] = np.array(
        next(s for s in run.test_samples if s != old[f"{PLACE}/sample"])
    )
    np.savez_compressed(file, **old)
    shutil.rmtree(tmp_path / "cells" / other["key"])
    for path in (tmp_path / "records").glob("*.json"):
        text = json.loads(path.read_text())
        text["cells"] = [cell for cell in text["cells"] if cell["key"] != local["key"]]
        del text["checksum"]
        path.write_text(json.dumps(text))
    shutil.rmtree(tmp_path / "cells" / local["key"])
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["local"])
    new = dict(np.load(file))
    assert new[f"{PLACE}/sample"] == old[f"{PLACE}/sample"]
    name = f"{PLACE}/prediction/{other['case']}"
    assert np.array_equal(new[name], old[name])


@pytest.fixture
def gone(tmp_path):
    """A folder with a study of local, whose run is gone; its fields."""
    run_study(tiny_study(), tmp_path, device="cpu", seeds=[0], only=["local"])
    shutil.rmtree(tmp_path / "cells")
    return tmp_path / "records", dict(np.load(tmp_path / "records" / "tiny.npz"))


def run_another(records):
    """Run a study of the same local and of two-scale; return its fields."""
    text = TEXT.replace("objective: [null, A1]", "objective: null")
    run_study(parse_study(text, name="another"), records.parent, device="cpu", seeds=[0])
    fields = dict(np.load(records / "another.npz"))
    assert f"{PLACE}/prediction/{CASES[1]}" in fields
    return fields


def test_what_another_study_shows_of_a_run_that_is_gone_is_shown_too(gone):
    records, shown = gone
    fields = run_another(records)
    for name, values in shown.items():
        assert np.array_equal(fields[name], values), name


def test_what_another_study_shows_of_another_sample_is_not_shown(gone):
    records, shown = gone
    fields = run_another(records)
    (key,) = (
        cell["key"]
        for cell in json.loads((records / "another.json").read_text())["cells"]
        if cell["case"] == CASES[1]
    )
    samples = Run.open(records.parent / "cells" / key, device="cpu").test_samples
    other = next(sample for sample in samples if sample != shown[f"{PLACE}/sample"])
    np.savez_compressed(records / "another.npz", **{f"{PLACE}/sample": np.array(other)})
    fields = run_another(records)
    assert fields[f"{PLACE}/sample"] == other
    assert f"{PLACE}/prediction/{CASES[0]}" not in fields


@pytest.mark.parametrize("damage", ["no record", "of another run", "no sample", "cut short"])
def test_what_cannot_be_told_to_be_of_the_run_is_not_shown(damage, gone):
    records, shown = gone
    file, record = records / "tiny.npz", records / "tiny.json"
    if damage == "no record":
        record.rename(records / "renamed.json")
    elif damage == "of another run":
        shutil.copy(record, records / "renamed.json")
        text = json.loads(record.read_text())
        text["cells"][0]["key"] = "0" * 16
        del text["checksum"]
        record.write_text(json.dumps(text))
    elif damage == "no sample":
        del shown[f"{PLACE}/sample"]
        np.savez_compressed(file, **shown)
    else:
        file.write_bytes(file.read_bytes()[:-40])
    assert f"{PLACE}/prediction/{CASES[0]}" not in run_another(records)
