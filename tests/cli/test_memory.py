"""`fit --memory`: the same surrogate, with the fields left on disk."""

import json

from tests.cli.outcome import refused

QUICK = ("--method", "two-scale", "--set", "epochs=2", "--json")


def test_a_fit_from_disk_is_the_fit_in_memory(twoscale, data, tmp_path):
    loaded = twoscale("fit", data, *QUICK, "--out", tmp_path / "a")
    stored = twoscale("fit", data, *QUICK, "--memory", "1kB", "--out", tmp_path / "b")
    assert loaded.status == stored.status == 0
    one, other = json.loads(loaded.out), json.loads(stored.out)
    for name in ("mre", "oracle_mre", "ssim", "residual_rms"):
        assert abs(one[name] / other[name] - 1) < 1e-4


def test_networks_on_whole_fields_cannot_leave_them_on_disk(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--method", "fno", "--memory", "1kB", "--out", tmp_path / "a")
    refused(outcome, "fno trains on whole fields", "--memory")
    assert not (tmp_path / "a").exists()


def test_a_size_that_is_none(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--memory", "much", "--out", tmp_path / "a")
    refused(outcome, "a size of memory is given like 800MB or 1.5GB, got 'much'")
