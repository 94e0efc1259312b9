"""Tasks on a cluster: as in one process, also where workers or the scheduler are killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.cluster.engine import run_tasks
from tests.cluster.processes import scheduler_and_worker


def scaled(shared, task, n_threads):
    """Return something that depends on the shared data and the task."""
    return task, float((shared["x"] * task).sum())


def threads_used(shared, task, n_threads):
    return n_threads


def failing(shared, task, n_threads):
    if task == 3:
        raise rg.DataError("task 3 has no data. Give it some.")
    return task


def killing(shared, task, n_threads):
    """Kill the process that does task 2 first, while it and others are under way."""
    if task == 2 and not Path(shared["killed"]).exists():
        Path(shared["killed"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return scaled(shared, task, n_threads)


def deadly(shared, task, n_threads):
    os.kill(os.getpid(), signal.SIGKILL)


def sleeping(shared, task, n_threads):
    time.sleep(0.2)
    return task


DATA = {"x": np.arange(1000.0)}


def test_order_and_results_are_those_of_one_process(client):
    told = {}
    found = run_tasks(scaled, DATA, range(9), cluster=client, on_done=told.__setitem__)
    assert found == run_tasks(scaled, DATA, range(9))
    assert told == dict(enumerate(found))
    assert run_tasks(scaled, DATA, [], cluster=client) == []


def test_threads_of_a_task_are_those_of_its_worker(client):
    assert run_tasks(threads_used, None, range(3), cluster=client) == [1, 1, 1]
    assert run_tasks(threads_used, None, range(3), cluster=client, n_threads=7) == [1, 1, 1]


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_started_and_closed():
    before = threading.active_count()
    assert run_tasks(scaled, DATA, range(3), cluster="local") == run_tasks(scaled, DATA, range(3))
    assert threading.active_count() <= before + 2  # Dask keeps one thread for the next client


def test_the_error_of_a_task_is_its_own(client):
    with pytest.raises(rg.DataError, match=r"^task 3 has no data\. Give it some\.$"):
        run_tasks(failing, None, range(6), cluster=client)


def test_a_killed_worker_changes_nothing(client, tmp_path):
    shared = {**DATA, "killed": tmp_path / "killed"}
    found = run_tasks(killing, shared, range(8), cluster=client)
    assert shared["killed"].exists()
    assert found == run_tasks(scaled, DATA, range(8))


def test_shared_data_that_was_lost_is_sent_again(tmp_path):
    """The only worker, and with it the only copy of the data, is killed."""
    distributed = pytest.importorskip("distributed")
    shared = {**DATA, "killed": tmp_path / "killed"}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as host,
        distributed.Client(host) as one,
    ):
        assert run_tasks(killing, shared, range(4), cluster=one) == run_tasks(
            scaled, DATA, range(4)
        )
        assert shared["killed"].exists()


def test_a_task_that_kills_every_worker_ends_the_run(client, monkeypatch):
    monkeypatch.setattr("rankgrove.cluster.engine.MOST_LOSSES", 0)
    with pytest.raises(rg.ClusterError, match=r"Task 0 was lost .* more"):
        run_tasks(deadly, None, [0], cluster=client)


def test_no_scheduler_there(monkeypatch):
    monkeypatch.setattr("rankgrove.cluster.client.CONNECT_SECONDS", 0.5)
    with pytest.raises(rg.ClusterError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_tasks(scaled, DATA, [1], cluster="tcp://127.0.0.1:9")


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rg.MissingExtraError, match=r"pip install 'rankgrove\[cluster\]'"):
        run_tasks(scaled, DATA, [1], cluster="local")


@pytest.mark.parametrize("value", ["nonsense", 3])
def test_what_is_no_cluster_is_refused(value):
    with pytest.raises(rg.ParameterError, match="cluster"):
        run_tasks(scaled, DATA, [1], cluster=value)


@pytest.mark.slow
def test_scheduler_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgrove.cluster.client.CONNECT_SECONDS", 3.0)
    monkeypatch.setattr("rankgrove.cluster.engine.GONE_SECONDS", 1.0)
    done = []
    with scheduler_and_worker(tmp_path) as (address, scheduler, _):

        def kill_when_under_way(i, result):
            done.append(result)
            if len(done) == 3:
                scheduler.kill()

        with pytest.raises(rg.ClusterError, match=r"scheduler at .* is gone .* Restart it"):
            run_tasks(sleeping, None, range(500), cluster=address, on_done=kill_when_under_way)
    assert 3 <= len(done) < 50
