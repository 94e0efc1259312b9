"""Independent pieces of work, one after the other in this process or side by side on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Work = Callable[[Any, Any, int | None], Any]


def run_tasks(
    work: Work,
    shared: Any,
    tasks: Sequence[Any],
    *,
    cluster: Any = None,
    n_threads: int | None = None,
    on_done: Callable[[int, Any], None] | None = None,
) -> list[Any]:
    """Return ``work(shared, task, n_threads)`` of every task, in the order of the tasks.

    Parameters
    ----------
    work : a function of a module (workers import it); what it returns must depend on `shared` and
        the task alone
    shared : what all tasks need, such as data: handed to every worker once
    tasks : one small value each
    cluster : None: this process
    n_threads : threads of one task; None: all cores of where it runs
    on_done : told the number and the result of every task as it ends, in any order
    """
    results = []
    for i, task in enumerate(tasks):
        results.append(work(shared, task, n_threads))
        if on_done is not None:
            on_done(i, results[-1])
    return results
