"""Independent tasks, run one after the other in this process or in parallel on a cluster."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from rankgrove.cluster.client import (
    WORKER_SECONDS,
    check_cluster,
    connected,
    gone,
    own_threads,
    threads_of_workers,
    wait_for_workers,
)
from rankgrove.errors import ClusterError

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")
Work = Callable[[Shared, Task, int | None], Result]  # (shared, task, n_threads) -> result

LOOK_SECONDS = 0.5  # between two checks whether the scheduler is still there
GONE_SECONDS = 15.0  # a scheduler may be unreachable for this long
MOST_LOSSES = 5  # of the same task


def run_tasks(
    work: Work[Shared, Task, Result],
    shared: Shared,
    tasks: Sequence[Task],
    *,
    cluster: Any = None,
    n_threads: int | None = None,
    on_done: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Return ``work(shared, task, n_threads)`` of every task, in the order of the tasks.

    Parameters
    ----------
    work : a function of a module (workers import it); its result must depend only on `shared` and
        the task
    shared : a value that all tasks need, such as data; it is sent to every worker once
    tasks : one small value each
    cluster : None: this process; ``"local"``: processes on this machine; the address of a Dask
        scheduler, such as ``"tcp://host:8786"``; or a ``distributed.Client``
    n_threads : threads of one task; None: all cores of the machine where it runs
    on_done : called in this process with the number and the result of every task as it ends, in
        any order

    Notes
    -----
    A worker runs as many tasks at a time as it has threads for. The tasks of a lost worker are run
    by another one; the results are the same. An error that a task raises ends the run, and so does
    Ctrl-C: open tasks are cancelled.
    """
    check_cluster(cluster, "run_tasks")
    if cluster is not None and len(tasks):
        with connected(cluster, len(tasks), n_threads) as client:
            return _Run(client, work, shared, tasks, n_threads, on_done).results()
    results = []
    for i, task in enumerate(tasks):
        results.append(work(shared, task, n_threads))
        if on_done is not None:
            on_done(i, results[-1])
    return results


def _on_worker(
    work: Work[Shared, Task, Result], shared: Shared, task: Task, n_threads: int | None
) -> Result:
    """Run one task on a worker, with at most the worker's number of threads."""
    return work(shared, task, own_threads(n_threads))


class _Run(Generic[Shared, Task, Result]):
    """One run of tasks: every worker has as many tasks as it can run, the others wait here."""

    def __init__(
        self,
        client: Any,
        work: Work[Shared, Task, Result],
        shared: Shared,
        tasks: Sequence[Task],
        n_threads: int | None,
        on_done: Callable[[int, Result], None] | None,
    ) -> None:
        self._client = client
        self._work = work
        self._shared = shared
        self._tasks = tasks
        self._n_threads = n_threads
        self._on_done = on_done
        self._waiting = deque(range(len(tasks)))
        self._open: dict[Any, tuple[int, str]] = {}  # future -> task, and the worker it was sent to
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._losses = [0] * len(tasks)
        self._results: dict[int, Result] = {}
        self._scattered: Any = None
        self._last_seen = time.monotonic()

    def results(self) -> list[Result]:
        """Run all tasks; return their results in order."""
        try:
            while len(self._results) < len(self._tasks):
                self._hand_out()
                self._collect()
        finally:
            self._cancel()
        return [self._results[i] for i in range(len(self._tasks))]

    def _cancel(self) -> None:
        """Cancel all open tasks."""
        if self._open and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._client.cancel(list(self._open), force=True)

    def _hand_out(self) -> None:
        """Give a waiting task to every worker with a free place."""
        if not self._waiting:
            return
        workers = threads_of_workers(self._client)
        taken = [worker for _, worker in self._open.values()]
        if not workers:
            wait_for_workers(self._client)
            return
        for worker, threads in workers.items():
            places = max(1, threads // min(self._n_threads or threads, threads))
            for _ in range(places - taken.count(worker)):
                if self._waiting:
                    self._submit(self._waiting.popleft(), worker)

    def _submit(self, i: int, worker: str) -> None:
        if self._scattered is None:
            self._scattered = self._scatter()
        future = self._client.submit(
            _on_worker,
            self._work,
            self._scattered,
            self._tasks[i],
            self._n_threads,
            workers=[worker],
            allow_other_workers=True,
            pure=False,
            retries=0,
        )
        self._open[future] = (i, worker)
        future.add_done_callback(self._ended.put)

    def _scatter(self) -> Any:
        """Send the shared data to every worker."""
        try:
            return self._client.scatter(
                [self._shared], broadcast=True, hash=False, timeout=WORKER_SECONDS
            )[0]
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"The data could not be sent to the workers within {WORKER_SECONDS:.0f} "
                f"seconds ({type(error).__name__}). Are they still running, with enough memory?"
            ) from None

    def _collect(self) -> None:
        """Collect one finished task, or check whether the scheduler is still there."""
        try:
            future = self._ended.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            self._check_scheduler()
            return
        self._last_seen = time.monotonic()
        i, _ = self._open.pop(future, (-1, ""))
        if i < 0:
            return
        if future.status == "finished":
            try:
                result = future.result(timeout=WORKER_SECONDS)
            except (OSError, TimeoutError, _cancelled()):  # lost before it could be fetched
                self._again(i)
                return
            self._results[i] = result
            if self._on_done is not None:
                self._on_done(i, result)
        elif future.status == "error":
            self._raise(future, i)
        else:
            # cancelled: the shared data was lost with its worker, or the scheduler is gone
            self._check_scheduler()
            self._again(i)

    def _again(self, i: int) -> None:
        """Run a task again, and send the shared data again if it may be lost."""
        self._losses[i] += 1
        if self._losses[i] > MOST_LOSSES:
            raise self._killed(i)
        lost = self._scattered is None or self._scattered.status != "finished"
        if lost or self._losses[i] > 1:
            self._scattered = None
        self._waiting.appendleft(i)

    def _raise(self, future: Any, i: int) -> None:
        from distributed import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker):
            raise self._killed(i) from None
        raise error

    def _killed(self, i: int) -> ClusterError:
        return ClusterError(
            f"Task {i} was lost with its worker repeatedly. Usually a worker ran out of memory: "
            "give it more, use fewer workers per machine, or smaller data."
        )

    def _check_scheduler(self) -> None:
        if self._client.status == "running":
            self._last_seen = time.monotonic()
        elif (
            self._client.status in ("closed", "closing")
            or time.monotonic() - self._last_seen > GONE_SECONDS
        ):
            raise gone(self._client)


def _cancelled() -> type[BaseException]:
    from distributed import CancelledError

    return CancelledError
