"""The command that serves: what it prints, how it stops, what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest

from tests.cli.outcome import refused
from twoscale import Surrogate

WAIT = 60


def test_it_serves_until_it_is_stopped(run_folder):
    command = [sys.executable, "-m", "twoscale", "serve", run_folder, "--port", "0", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        lines = iter(process.stdout.readline, "}\n")  # the end of the object
        started = json.loads("".join(lines) + "}")
        x = np.ones((1, 16, 16))
        url = started["url"] + "/predict"
        answer = httpx.post(url, json={"fields": x.tolist()}, timeout=WAIT)
        expected = Surrogate.load(run_folder, device="cpu").predict(x)
        np.testing.assert_allclose(answer.json()["fields"], expected, rtol=1e-4, atol=1e-6)
        assert httpx.post(url, json={}, timeout=WAIT).status_code == 400
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 0
    assert [model["name"] for model in started["models"]] == ["forward"]
    (line,) = err.splitlines()  # what was wrong with the second request
    assert "POST /predict: 400" in line


@pytest.fixture
def not_run(monkeypatch):
    """Let the server stop as soon as it has started."""
    served = []
    monkeypatch.setattr("twoscale.serve.Server.run", lambda server: served.append(server))
    return served


def test_several_runs_have_their_names(twoscale, run_folder, tmp_path, not_run):
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    outcome = twoscale("serve", run_folder, other, "--port", 0, "--inputs", "kl:8")
    assert outcome.status == 0, outcome.err
    assert outcome.out.startswith(f"serving {run_folder.name}, other at http://127.0.0.1:")
    assert "8 standard normal coefficients" in outcome.out
    assert list(not_run[0].service.models) == [run_folder.name, "other"]
    shutil.copytree(run_folder, tmp_path / "b" / "other")
    refused(twoscale("serve", other, tmp_path / "b" / "other"), "two are 'other'")


def test_an_open_address_is_pointed_out(twoscale, run_folder, not_run):
    outcome = twoscale("serve", run_folder, "--port", 0, "--host", "0.0.0.0", "--json")
    (line,) = outcome.err.splitlines()
    assert "is open to others, without a password" in line
    assert json.loads(outcome.out)["url"] == not_run[0].url


def test_points_come_from_a_file(twoscale, run_folder, tmp_path, not_run):
    np.save(tmp_path / "points.npy", [[0.5, 0.5], [0.25, 0.75]])
    options = ("--port", 0, "--points", tmp_path / "points.npy")
    outcome = twoscale("serve", run_folder, *options, "--quiet")
    assert outcome.out.strip() == not_run[0].url
    assert not_run[0].service.models["forward"].describe()["umbridge"]["outputSizes"] == [2]


def test_a_port_in_use_is_one_sentence(twoscale, run_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = twoscale("serve", run_folder, "--port", port)
    refused(outcome, f"port {port} of 127.0.0.1 is in use: choose another port")
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", 99999), "from 0 to 65535"),
        (("--inputs", "modes"), "inputs of a model are fields, kl:64"),
        (("--inputs", "kl:999"), "has 1 to 255 modes"),
        (("--points", "a"), "a lattice such as 13x13"),
        (("--points", "no.npy"), "no.npy does not exist"),
        (("--max-request", "much"), "a size of memory"),
        (("--timeout", 0), "seconds must be positive"),
        (("--host", "no.such.host.invalid"), "is not known here"),
    ],
)
def test_wrong_options(twoscale, run_folder, not_run, options, words):
    refused(twoscale("serve", run_folder, *options), words)
    assert not not_run


def test_the_extra_is_named(twoscale, run_folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("twoscale.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    refused(twoscale("serve", run_folder), "pip install 'twoscale[serve]'")
