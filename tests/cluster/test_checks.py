"""Workers that would give other bytes are refused in one sentence."""

from types import SimpleNamespace

import pytest

from twoscale.cluster.checks import check_worker, check_workers, versions
from twoscale.errors import WorkersError


def test_a_worker_with_our_versions_and_one_thread_is_fine():
    check_worker("one", versions(), 1)


@pytest.mark.parametrize("package", ["twoscale", "python", "torch", "numpy"])
def test_another_version_is_refused(package):
    found = versions() | {package: "0.1"}
    message = rf"the worker one has {package} 0\.1, the command has .*: install the same versions"
    with pytest.raises(WorkersError, match=message):
        check_worker("one", versions(), 1, found)


def test_several_threads_are_refused_with_what_to_do():
    with pytest.raises(WorkersError, match="'dask worker --nthreads 1 --nworkers 8'"):
        check_worker("one", versions(), 8)


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'torch'"), AttributeError])
def test_what_a_worker_lacks_is_told(error):
    def run(function):
        raise error

    with pytest.raises(WorkersError, match="a worker lacks a package, or has another version"):
        check_workers(SimpleNamespace(run=run))
