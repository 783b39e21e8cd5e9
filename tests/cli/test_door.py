"""Whatever goes wrong leaves the command line as one sentence and an exit status."""

import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from tests.cli.outcome import refused
from twoscale.errors import TwoscaleWarning
from twoscale.problems import Poisson

COMMAND = [sys.executable, "-m", "twoscale"]


def break_with(monkeypatch, error):
    def broken(*arguments, **options):
        raise error

    monkeypatch.setattr("twoscale.cli.paths.kind_of", broken)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "there is not enough memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            "there is not enough memory",
        ),
        (RecursionError("maximum"), "nested too deeply"),
        (PermissionError(13, "Permission denied", "x"), "the system refused"),
        (ZeroDivisionError("by\nzero"), "unexpected ZeroDivisionError: by zero; --debug shows"),
    ],
)
def test_any_error_is_one_sentence(twoscale, data, monkeypatch, error, words):
    break_with(monkeypatch, error)
    refused(twoscale("check", data), words)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_where_it_came_from(twoscale, data, monkeypatch, place):
    break_with(monkeypatch, ZeroDivisionError("by zero"))
    words = ["check", str(data)]
    words.insert(place, "--debug")
    outcome = twoscale(*words)
    assert outcome.status == 2
    assert "Traceback" in outcome.err
    assert "in broken" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("twoscale: unexpected ZeroDivisionError")


def test_our_warnings_are_one_line_each_time(twoscale, data, monkeypatch):
    def warn(path):
        warnings.warn("something\nodd", TwoscaleWarning, stacklevel=1)
        warnings.warn("something\nodd", TwoscaleWarning, stacklevel=1)
        return None

    monkeypatch.setattr("twoscale.cli.paths.kind_of", warn)
    outcome = twoscale("check", data)
    assert outcome.status == 0
    assert outcome.err.splitlines() == ["twoscale: warning: something odd"] * 2


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.usefixtures("small_chunks")
def test_signals_end_a_command_as_ctrl_c_does(twoscale, tmp_path, monkeypatch, name, status):
    """What can go on is kept, and goes on; the exit status says which signal it was."""
    log = tmp_path / ".d.zarr.twoscale-work" / "log.jsonl"
    solve = Poisson.solve
    number = getattr(signal, name)

    def interrupted(*arguments, **options):
        if log.exists() and log.stat().st_size:
            signal.raise_signal(number)
        return solve(*arguments, **options)

    monkeypatch.setattr(Poisson, "solve", interrupted)
    recipe = ("generate", "poisson", "--resolution", 16, "--samples", 300)
    heeded = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, heeded)  # jobs in the background ignore some
    try:
        outcome = twoscale(*recipe, "--out", tmp_path / "d.zarr")
    finally:
        signal.signal(number, before)
    assert outcome.status == status
    assert outcome.err == (
        "twoscale: interrupted; run the same command again to go on where it stopped\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == [".d.zarr.twoscale-work"]


def test_a_signal_that_a_library_takes_for_an_error_is_one_still(twoscale, data, monkeypatch):
    def library(path):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except BaseException:
            raise ValueError("could not determine the shape of an object") from None

    monkeypatch.setattr("twoscale.cli.paths.kind_of", library)
    outcome = twoscale("check", data)
    assert outcome.status == 143
    assert outcome.err == "twoscale: interrupted\n"


def test_a_signal_while_an_object_is_cleaned_up_is_not_lost(twoscale, data, monkeypatch):
    class Cleaned:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def work(path):
        Cleaned()
        for _ in range(500):  # a request that comes again does not end a sleep
            time.sleep(0.01)

    monkeypatch.setattr("twoscale.cli.paths.kind_of", work)
    outcome = twoscale("check", data)
    assert outcome.status == 143
    assert outcome.err == "twoscale: interrupted\n"


def test_a_hang_up_that_is_ignored_stays_ignored():
    """As `nohup` asks for."""
    code = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from twoscale.cli import main, _stopped_by_signals
with _stopped_by_signals():
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def unread():
    """The end of a pipe whose reader has gone away."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_reader_of_tables_and_json_may_go_away(json, twoscale, run_folder, unread, monkeypatch):
    with open(unread, "w", closefd=False) as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        outcome = twoscale("evaluate", run_folder, *json)
    assert outcome == (0, "", "")


def test_a_wrong_number_of_processes_is_told_before_the_work(twoscale, data, tmp_path, monkeypatch):
    monkeypatch.setenv("TWOSCALE_PROCESSES", "two")
    for method in ("local", "auto"):
        outcome = twoscale("fit", data, "--method", method, "--out", tmp_path / "r")
        refused(outcome, "TWOSCALE_PROCESSES")
    assert list(tmp_path.iterdir()) == []
