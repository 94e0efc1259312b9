"""Loaded by the workers that rankgrove starts on this machine."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the driver: it ends the training, keeps the model and closes the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
