"""A scheduler and a worker as processes of their own, which a test may kill."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextmanager
def scheduler_and_worker(folder):
    """Give the scheduler's address, its process and the worker's; both end with the block."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler = subprocess.Popen(
        [*start, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)], **QUIET
    )
    worker = None
    try:
        address = _address(file)
        start = [sys.executable, "-m", "distributed.cli.dask_worker", address]
        worker = subprocess.Popen([*start, "--nthreads", "1", "--no-nanny"], **QUIET)
        yield address, scheduler, worker
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()


def _address(file):
    """Wait until the scheduler has written where it is: a half-written file is waited for too."""
    for _ in range(600):
        try:
            return json.loads(file.read_text())["address"]
        except (OSError, ValueError):
            time.sleep(0.1)
    raise AssertionError("the scheduler did not start within a minute")
