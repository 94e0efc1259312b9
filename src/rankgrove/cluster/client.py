"""A Dask client for a cluster on this machine, the address of a scheduler, or a given client."""

from __future__ import annotations

import logging
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankgrove.errors import ClusterError, MissingExtraError
from rankgrove.parallel import thread_count
from rankgrove.validation import refuse

CONNECT_SECONDS = 10.0  # to reach a scheduler
WORKER_SECONDS = 60.0  # for a first worker to appear, or another one after a loss
LOCAL = "local"


def check_cluster(cluster: Any, owner: str) -> None:
    """Refuse a value that is not a cluster; None (no cluster) is allowed."""
    if cluster is None or cluster == LOCAL or hasattr(cluster, "submit"):
        return
    if not (isinstance(cluster, str) and "://" in cluster):
        refuse(
            "cluster", owner, "'local', an address such as tcp://host:8786, or a Client", cluster
        )


@contextmanager
def connected(cluster: Any, n_jobs: int, n_threads: int | None = None) -> Iterator[Any]:
    """Yield a Dask client; anything that was started for it is closed afterwards.

    Parameters
    ----------
    cluster : ``"local"``: workers on this machine, limited by the numbers of jobs and cores; the
        address of a scheduler, such as ``"tcp://host:8786"``; or a Client, which is left open
    n_jobs : number of jobs to distribute
    n_threads : threads per job; None: all that there are
    """
    check_cluster(cluster, "a cluster")
    distributed = _distributed()
    if hasattr(cluster, "submit"):
        check_alive(cluster)
        wait_for_workers(cluster)
        yield cluster
        return
    with _quiet():
        if cluster == LOCAL:
            host, client = _local(distributed, n_jobs, n_threads)
        else:
            host, client = None, _reach(distributed, cluster)
        try:
            wait_for_workers(client)
            yield client
        finally:
            client.close(timeout=CONNECT_SECONDS)
            if host is not None:
                host.close(timeout=CONNECT_SECONDS)


def check_alive(client: Any) -> None:
    """Raise ClusterError if the scheduler is gone."""
    if client.status != "running":
        raise gone(client)


def gone(client: Any) -> ClusterError:
    """Return the error for a scheduler that no longer answers."""
    return ClusterError(
        f"The Dask scheduler at {address_of(client)} is gone (the client is {client.status}). "
        "Restart it, and run this again: work that was saved to files is not repeated."
    )


def address_of(client: Any) -> str:
    """Return the address of a client's scheduler, also if it is gone."""
    address = getattr(getattr(client, "scheduler", None), "address", None)
    return str(address or getattr(client, "_start_arg", "an unknown address"))


def wait_for_workers(client: Any) -> None:
    """Wait until there is a worker; raise ClusterError after a time."""
    if threads_of_workers(client):
        return
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except (TimeoutError, OSError):
        check_alive(client)
        address = address_of(client)
        raise ClusterError(
            f"The Dask scheduler at {address} has had no workers for {WORKER_SECONDS:.0f} seconds. "
            f"Start some: dask worker {address}"
        ) from None


def threads_of_workers(client: Any) -> dict[str, int]:
    """Return the number of threads of every worker of a cluster, by address."""
    try:
        n_threads = client.nthreads()
    except (OSError, TimeoutError):
        raise gone(client) from None
    return {str(address): int(n) for address, n in sorted(n_threads.items())}


def own_threads(n_threads: int | None) -> int:
    """Return the number of threads that a task may use on its worker."""
    from distributed import get_worker

    most = int(get_worker().state.nthreads)
    return most if n_threads is None else min(n_threads, most)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("distributed", "cluster", "Work on a cluster") from None
    return distributed


def _local(distributed: Any, n_jobs: int, n_threads: int | None) -> tuple[Any, Any]:
    """Start workers on this machine, with one thread per core in total."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # A worker got here by importing the caller's script: the caller reports the mistake.
        sys.exit(1)
    cores = thread_count(None)
    n_workers = max(1, min(n_jobs, cores // thread_count(n_threads or 1)))
    try:
        host = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=max(1, cores // n_workers),
            processes=True,
            preload=["rankgrove.cluster.worker_setup"],
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, TimeoutError) as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise ClusterError(
            f"No workers could be started on this machine ({reason}).{_unguarded()}"
        ) from None
    return host, distributed.Client(host, timeout=CONNECT_SECONDS, direct_to_workers=True)


def _unguarded() -> str:
    """Return the remedy for workers that import a script that starts them again."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return ""
    return (
        f" Workers are processes that import {script}: if importing it starts the work, they would "
        'start it again. Put that code below  if __name__ == "__main__":  in the script.'
    )


def _reach(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, direct_to_workers=True)
    except Exception as error:  # the listener there may not be a scheduler, and answer anything
        raise ClusterError(
            f"No Dask scheduler answers at {address} within {CONNECT_SECONDS:.0f} seconds "
            f"({type(error).__name__}). Start one with  dask scheduler  and workers with  dask "
            f"worker {address}, or leave the address out."
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own log: problems that matter are raised as errors."""
    names = [
        "distributed",
        *(n for n in logging.root.manager.loggerDict if n[:12] == "distributed."),
    ]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
