"""Workers that would give other bytes are refused in one sentence."""

import re
from types import SimpleNamespace

import pytest

from tests.cluster.tools import TcpCluster
from twoscale.cluster import connected
from twoscale.cluster.scheduler import UnreachableSchedulerError, check_workers
from twoscale.cluster.worker import check_worker, versions
from twoscale.errors import WorkersError

WITHOUT_MODULE = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


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


@pytest.mark.parametrize("module", ["twoscale", "twoscale.cluster.worker", "torch"])
def test_a_worker_that_lacks_a_package_is_told_what_to_install(module, tmp_path):
    (tmp_path / "without.py").write_text(WITHOUT_MODULE.format(module=module))
    message = (
        r"^the worker tcp://127\.0\.0\.1:\d+ cannot tell its versions \(.*No module named "
        rf".*{re.escape(module)}.*\): install twoscale .*, python .*, torch .* there, as here$"
    )
    with (
        TcpCluster(workers=1, preload=tmp_path / "without.py") as cluster,
        pytest.raises(WorkersError, match=message),
        connected(cluster.address),
    ):
        pass


def test_an_error_that_cannot_be_read_here_is_told():
    def run(function, **options):
        raise ModuleNotFoundError("No module named 'theirs'")

    client = SimpleNamespace(run=run, status="running")
    with pytest.raises(WorkersError, match=r"a worker cannot tell .* 'theirs'\): install twoscale"):
        check_workers(client)


def test_a_worker_that_does_not_answer_may_answer_later():
    answers = {"away": OSError("Timed out trying to connect")}
    client = SimpleNamespace(
        run=lambda *_, **options: answers, nthreads=lambda **options: {"away": 1}
    )
    with pytest.raises(UnreachableSchedulerError, match="the worker away does not answer"):
        check_workers(client)


def test_a_worker_that_left_meanwhile_is_not_checked():
    answers = {"gone": OSError("Timed out"), "here": versions()}
    client = SimpleNamespace(
        run=lambda *_, **options: answers, nthreads=lambda **options: {"here": 1}
    )
    check_workers(client)
