"""A cluster of processes on this machine, for all tests of a module."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(scope="module")
def client():
    """Return a client of two workers of one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as host,
        distributed.Client(host, direct_to_workers=True) as made,
    ):
        yield made
