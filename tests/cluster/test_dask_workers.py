"""Work by other processes has the results of this one, to the last byte."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from threading import Timer
from time import monotonic, sleep

import numpy as np
import pytest
import torch

from tests.cluster.tools import TcpCluster
from twoscale import Poisson
from twoscale.cluster import connected
from twoscale.cluster.dask_workers import _group_size
from twoscale.cluster.scheduler import UnreachableSchedulerError, workers_now
from twoscale.data import generate
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError
from twoscale.fields.source import ArraySource, total
from twoscale.fields.workers import ARITY, Job, tree_sum
from twoscale.representation import PatchPCA
from twoscale.run import Run, fit_run


def sums(chunks):
    """Return the sum of all fields, and how many there are."""
    fields = torch.cat(list(chunks))
    return fields.sum(0), torch.tensor(len(fields))


def all_of(chunks):
    return torch.cat(list(chunks))


def double(item):
    return 2 * item


def fail(item):
    raise TwoscaleError(f"item {item} is wrong")


def die_once(marker, item):
    """End the process at item 3, unless another one did so before."""
    if item == 3:
        end_one_process(marker)
    return item


def sums_of_one_that_dies(marker, chunks):
    end_one_process(marker)
    return sums(chunks)


def end_one_process(marker):
    """End this process if it is the first one that comes here."""
    with suppress(FileExistsError):
        marker.touch(exist_ok=False)
        os._exit(1)


OTHER_VERSIONS = """
from twoscale.cluster import worker

versions = getattr(worker.versions, "original", worker.versions)  # run more than once
worker.versions = lambda: {**versions(), "numpy": "0.1"}
worker.versions.original = versions
"""


def stored(dataset, workers=None):
    return dataset.fields("output", range(7, 290), workers=workers)


def test_sums_and_maps_are_those_of_this_process(dataset, workers):
    here, there = stored(dataset), stored(dataset, workers)
    assert len(here.ranges()) > 4
    for one, other in zip(total(sums, here), total(sums, there), strict=True):
        assert torch.equal(one, other)
    found = list(workers.map(all_of, there))
    assert torch.equal(torch.cat(found), torch.cat(list(here.chunks())))


def test_fields_in_memory_travel_with_the_work(workers, generator):
    source = ArraySource(torch.randn(100, 1, 16, 16, generator=generator))
    (found, count) = workers.total(sums, source)
    assert count == 100
    assert torch.equal(found, total(sums, source)[0])


class OneByOne(ArraySource):
    """Fields of which each is a range."""

    def ranges(self):
        return [slice(k, k + 1) for k in range(len(self.fields))]


@pytest.mark.parametrize("most", [4, 256])
def test_many_sums_are_those_of_this_process(workers, generator, monkeypatch, most):
    monkeypatch.setattr("twoscale.cluster.dask_workers._MANY", most)  # here or by workers
    source = OneByOne(torch.randn(150, 1, 4, 4, generator=generator))
    found = workers.total(sums, source)
    expected = tree_sum(map(Job(sums, source), source.ranges()))
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("solver", ["randomized", "covariance", "full"])
def test_a_pca_has_the_same_bytes(dataset, workers, solver):
    fitted = [
        PatchPCA(0.99, patches=(2, 2), solver=solver).fit(stored(dataset, one)).state_dict()
        for one in (None, workers)
    ]
    assert all(torch.equal(fitted[0][name], fitted[1][name]) for name in fitted[0])


def test_a_run_has_the_same_weights_and_errors(dataset, workers, tmp_path):
    options = {
        "method": "two-scale",
        "settings": {"epochs": 2, "patches": 2, "coarse_components": 4},
    }
    runs = [
        fit_run(dataset, tmp_path / name, workers=one, device="cpu", **options)
        for name, one in (("here", None), ("there", workers))
    ]
    weights = [(run.path / "weights.safetensors").read_bytes() for run in runs]
    assert weights[0] == weights[1]
    assert runs[1].metrics["mre"] == pytest.approx(runs[0].metrics["mre"], rel=1e-12)
    measured = Run.open(runs[0].path, device="cpu").evaluate(workers=workers)
    assert measured["mre"] == pytest.approx(runs[0].metrics["mre"], rel=1e-12)


def test_a_dataset_has_the_same_files(dataset, workers, tmp_path):
    made = generate(Poisson(), tmp_path / "p.zarr", resolution=16, samples=300, workers=workers)
    for file in sorted(one for one in dataset.path.rglob("*") if one.is_file()):
        other = made.path / file.relative_to(dataset.path)
        assert other.read_bytes() == file.read_bytes()


def test_a_worker_refuses_another_dataset_at_the_same_path(workers, tmp_path):
    path = tmp_path / "p.zarr"
    first = generate(Poisson(), path, resolution=16, samples=40)
    generate(Poisson(), path, resolution=16, samples=40, seed=1, overwrite=True)
    with pytest.raises(TwoscaleError, match="is another dataset here"):
        total(sums, first.fields("output", range(40), workers=workers))


def test_results_come_in_order_and_items_are_taken_as_needed(workers):
    taken = []

    def items():
        for one in range(40):
            taken.append(one)
            yield one

    found = workers.each(double, items())
    assert next(found) == 0
    assert len(taken) < 40
    assert list(found) == [2 * one for one in range(1, 40)]


def wait_for(folder, item):
    """Leave a file; item 0 is done when there is the file of item 1."""
    (folder / f"{item}").touch()
    while item == 0 and not (folder / "1").exists():
        sleep(0.01)
    return item


def test_results_come_as_they_are_finished(workers, tmp_path):
    rest = [0, 1, 2]
    found = workers.as_finished(partial(wait_for, tmp_path), lambda: rest.pop(0) if rest else None)
    assert sorted(found) == [(0, 0), (1, 1), (2, 2)]


def test_an_error_of_a_worker_is_raised_here(workers):
    with pytest.raises(TwoscaleError, match="item 0 is wrong"):
        list(workers.each(fail, range(3)))


def test_files_that_are_no_dataset_are_refused(workers, tmp_path):
    from twoscale.data import open_data

    fields = np.random.default_rng(0).standard_normal((40, 8, 8)).astype("float32")
    np.savez(tmp_path / "f.npz", input=fields, output=fields)
    with pytest.raises(TwoscaleError, match=r"workers read datasets, .* 'twoscale import'"):
        fit_run(
            open_data(tmp_path / "f.npz"),
            tmp_path / "run",
            method="global",
            workers=workers,
            device="cpu",
        )
    assert not (tmp_path / "run").exists()


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr("twoscale.cluster.connection.CONNECT_SECONDS", 1)
    message = re.escape("no Dask scheduler answers at tcp://127.0.0.1:9: start one with")
    with pytest.raises(TwoscaleError, match=message), connected("tcp://127.0.0.1:9"):
        pass


@pytest.mark.parametrize(("ranges", "groups"), [(1, 12), (12, 12), (100, 12), (3000, 12)])
def test_groups_of_ranges_are_those_of_the_tree(ranges, groups):
    size = _group_size(ranges, groups)
    assert size in [ARITY**level for level in range(5)]
    assert size == 1 or -(-ranges // size) >= groups
    assert ranges / (size * ARITY) < groups


def test_a_cluster_elsewhere_loses_workers_and_schedulers(dataset, tmp_path, monkeypatch):
    """The results are those of this process; a worker with other versions gives none."""
    expected = total(sums, stored(dataset))
    told = []
    with (
        TcpCluster(workers=3) as cluster,
        connected(cluster.address, tell=told.append) as workers,
    ):
        found = list(workers.each(partial(die_once, tmp_path / "first"), range(12)))
        assert found == list(range(12))
        cluster.add_worker()
        rest = list(range(6))
        found = workers.as_finished(
            partial(die_once, tmp_path / "second"), lambda: rest.pop(0) if rest else None
        )
        assert sorted(one for one, _ in found) == list(range(6))
        work = partial(sums_of_one_that_dies, tmp_path / "third")
        for one, other in zip(total(work, stored(dataset, workers)), expected, strict=True):
            assert torch.equal(one, other)
        for marker in ("first", "second", "third"):
            assert (tmp_path / marker).exists()
        assert sum("was lost: others do its work again" in line for line in told) == 3

        cluster.count = 1
        results = workers.each(double, range(12))
        for item in range(12):
            if item in (1, 8):
                cluster.restart()
                with pytest.warns(TwoscaleWarning, match="was lost: waiting up to 5 minutes"):
                    assert next(results) == 2 * item
            else:
                assert next(results) == 2 * item

        workers.connection.client.close()  # as Dask does, if a scheduler is away for long
        with pytest.warns(TwoscaleWarning, match="was lost"):
            assert list(workers.each(double, range(2))) == [0, 2]

        known = set(workers.connection.places)
        (tmp_path / "old.py").write_text(OTHER_VERSIONS)
        cluster.add_worker(preload=tmp_path / "old.py")
        workers.connection.client.wait_for_workers(2)
        workers.connection.places = list(set(workers.connection.client.nthreads()) - known)
        message = r"the worker tcp://.* has numpy 0.1, the command has .*: install the same"
        with pytest.raises(WorkersError, match=message):
            list(workers.each(double, range(2)))

        monkeypatch.setattr("twoscale.cluster.scheduler.PATIENCE", 0)
        monkeypatch.setattr("twoscale.cluster.connection.CONNECT_SECONDS", 1)
        cluster.stop()
        with (
            pytest.warns(TwoscaleWarning, match="was lost"),
            pytest.raises(WorkersError, match="no Dask scheduler answers at"),
        ):
            list(workers.each(double, range(2)))


def following(items):
    """Return what gives the items one by one, and then None."""
    return partial(next, iter(items), None)


def lack_memory_at_two(item):
    if item == 2:
        raise MemoryError
    return item


def die_at_two(item):
    if item == 2:
        os._exit(1)
    return item


class DeadlyToLoad:
    """A function that no worker survives loading."""

    def __call__(self, item):
        return item

    def __reduce__(self):
        return os._exit, (1,)


def test_an_item_that_lacks_memory_is_lost_and_the_others_go_on(workers):
    found = dict(workers.as_finished(lack_memory_at_two, following(range(5))))
    lost = found.pop(2)
    assert isinstance(lost, WorkersError)
    assert "a worker is out of memory" in str(lost)
    assert found == {one: one for one in (0, 1, 3, 4)}
    with pytest.raises(WorkersError, match="a worker is out of memory"):
        list(workers.each(lack_memory_at_two, [2]))


def test_an_item_that_workers_die_of_is_lost_and_the_others_go_on():
    with (
        TcpCluster(workers=2, allowed_failures=0) as cluster,
        connected(cluster.address) as workers,
    ):
        workers.connection.client.wait_for_workers(2)
        found = dict(workers.as_finished(die_at_two, following(range(5))))
        lost = found.pop(2)
        assert isinstance(lost, WorkersError)
        assert "several workers died" in str(lost)
        assert found == {one: one for one in (0, 1, 3, 4)}
        with pytest.raises(WorkersError, match="several workers died"):  # whatever the item
            list(workers.as_finished(DeadlyToLoad(), following(range(3))))


def test_the_loss_of_all_workers_keeps_the_progress_of_a_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale.cluster.scheduler.PATIENCE", 0)
    monkeypatch.setattr("twoscale.cluster.scheduler._CHECK", 0.2)
    path, work = tmp_path / "p.zarr", tmp_path / ".p.zarr.twoscale-work"
    with TcpCluster(workers=1) as cluster, connected(cluster.address) as workers:

        def kill(stage, done, total, remark):
            if cluster.processes[1:]:
                cluster.kill_workers()

        with (
            pytest.warns(TwoscaleWarning, match="no workers are left"),
            pytest.raises(WorkersError, match="no others came") as caught,
        ):
            generate(Poisson(), path, resolution=64, samples=1536, workers=workers, progress=kill)
    assert "run the same command again" in " ".join(caught.value.__notes__)
    assert work.is_dir()
    assert not path.exists()


def test_a_scheduler_that_goes_away_between_two_results_is_replaced():
    with TcpCluster(workers=1) as cluster, connected(cluster.address) as workers:
        found = workers.as_finished(double, following(range(4)))
        assert next(found) == (0, 0)
        workers.connection.client._timeout = 1  # after which Dask closes the client of a scheduler
        cluster.stop()
        end = monotonic() + 30
        while workers.connection.client.status != "closed":
            assert monotonic() < end
            sleep(0.05)
        with pytest.raises(UnreachableSchedulerError, match="does not answer"):
            workers_now(workers.connection.client)
        cluster.start()
        with pytest.warns(TwoscaleWarning, match="was lost: waiting"):
            assert list(found) == [(1, 2), (2, 4), (3, 6)]


def test_a_scheduler_that_answers_nothing_for_a_while_is_mended(monkeypatch):
    with TcpCluster(workers=1) as cluster, connected(cluster.address) as workers:
        found = workers.as_finished(double, following(range(4)))
        assert next(found) == (0, 0)
        monkeypatch.setattr("twoscale.cluster.scheduler.ANSWER_SECONDS", 2)
        cluster.pause()
        with pytest.raises(UnreachableSchedulerError, match="does not answer"):
            workers_now(workers.connection.client)
        Timer(2, cluster.resume).start()
        with pytest.warns(TwoscaleWarning, match="was lost: waiting"):
            assert list(found) == [(1, 2), (2, 4), (3, 6)]
