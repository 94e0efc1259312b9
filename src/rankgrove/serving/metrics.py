"""Counts of requests, and latencies of the last ones."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque

import numpy as np

from rankgrove.serving.coding import Json

LAST = 10_000  # requests whose times are kept
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


class Metrics:
    """Counts since the start, and the latencies of the last ranking requests."""

    def __init__(self) -> None:
        self.started = time.time()
        self._lock = threading.Lock()
        self._by_status: Counter[int] = Counter()
        self._by_model: Counter[str] = Counter()
        self._documents = 0
        self._seconds: deque[float] = deque(maxlen=LAST)

    def answered(self, status: int) -> None:
        """Count an answer."""
        with self._lock:
            self._by_status[status] += 1

    def ranked(self, model: str, n_documents: int, seconds: float) -> None:
        """Count a ranking request and its time, from its last byte to the answer."""
        with self._lock:
            self._by_model[model] += 1
            self._documents += n_documents
            self._seconds.append(seconds)

    def to_dict(self) -> dict[str, Json]:
        """Return everything as plain values."""
        with self._lock:
            times = np.array(self._seconds)
            counts: dict[str, Json] = {
                "uptime_seconds": time.time() - self.started,
                "answers_by_status": {str(k): n for k, n in sorted(self._by_status.items())},
                "ranked_by_model": dict(self._by_model),
                "documents": self._documents,
            }
        latency = {
            name: round(1e3 * float(np.quantile(times, level)), 4)
            for name, level in QUANTILES.items()
            if times.size
        }
        return {**counts, "latency_ms": {"of_last": times.size, **latency}}
