"""Interleaved timing: contenders take turns, and the best of several rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_times(
    contenders: dict[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return every contender's smallest time in seconds over `rounds` interleaved rounds."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, work in contenders.items():
            start = clock()
            work()
            best[name] = min(best[name], clock() - start)
    return best


def print_ratios(best: dict[str, float], ours: str) -> None:
    """Print seconds, and how many times as long as `ours` each peer takes."""
    width = max(map(len, best))
    for name, seconds in best.items():
        ratio = "" if name == ours else f"  {seconds / best[ours]:7.2f} x ours"
        print(f"  {name:<{width}}  {seconds:9.4f} s{ratio}")
