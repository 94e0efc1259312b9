# mypy: ignore-errors
"""Kernels around a user's function: compiled once a process, as they close over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import is_jitted

from rankgrove.jit import njit
from rankgrove.measures._value_kernels import EXPECTED, gather_gains

MOST_ARRANGEMENTS = 1000


@njit(cache=True, nogil=True)
def count_arrangements(g, tied):
    """Return the number of different label lists of the tied orders, at most 1e18."""
    total = 1.0
    start = 0
    while start < g.size:
        end = start + 1
        run = 1
        # multinomial coefficient, factor by factor; g is ascending within a group
        while end < g.size and tied[end]:
            run = run + 1 if g[end] == g[end - 1] else 1
            total *= (end - start + 1) / run
            end += 1
        if total > 1e18:
            return 1e18
        start = end
    return total


@njit(cache=True, nogil=True)
def next_arrangement(g, tied):
    """Put the tied groups into their next order, all groups together like an odometer."""
    start = 0
    while start < g.size:
        end = start + 1
        while end < g.size and tied[end]:
            end += 1
        # the next permutation of g[start:end]
        i = end - 2
        while i >= start and g[i] >= g[i + 1]:
            i -= 1
        if i >= start:
            j = end - 1
            while g[j] <= g[i]:
                j -= 1
            g[i], g[j] = g[j], g[i]
        a, b = i + 1, end - 1
        while a < b:
            g[a], g[b] = g[b], g[a]
            a += 1
            b -= 1
        if i >= start:
            return
        start = end  # this group is back at its first order: carry to the next


@njit(cache=True, nogil=True)
def shuffle_arrangement(g, tied, state):
    """Shuffle every tied group, drawing from the 64-bit linear congruential `state`."""
    start = 0
    while start < g.size:
        end = start + 1
        while end < g.size and tied[end]:
            end += 1
        for i in range(end - 1, start, -1):
            state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            j = start + np.int64((state[0] >> np.uint64(33)) % np.uint64(i - start + 1))
            g[i], g[j] = g[j], g[i]
        start = end


def _checked(function: Any) -> Any:
    """Compile a user's function so that a wrong index is an error, not somebody else's memory."""
    plain = function.py_func if is_jitted(function) else function
    return njit(nogil=True, boundscheck=True, error_model="numpy")(plain)


class CustomKernels:
    """The functions of :mod:`._kernels` for a user's rule."""

    def __init__(self, function: Any, delta: Any, takes_k: bool, cutoff: int | None) -> None:
        function = _checked(function)
        if takes_k:
            k = np.iinfo(np.int64).max if cutoff is None else cutoff

            @njit(nogil=True)
            def value(g):
                return 1.0 * function(g, min(k, g.size))
        else:

            @njit(nogil=True)
            def value(g):
                return 1.0 * function(g)

        @njit(nogil=True)
        def expected(g, tied):
            n = count_arrangements(g, tied)
            total = 0.0
            if n <= MOST_ARRANGEMENTS:
                for _ in range(int(n + 0.5)):
                    total += value(g)
                    next_arrangement(g, tied)
                return total / n
            state = np.zeros(1, np.uint64)
            for _ in range(MOST_ARRANGEMENTS):
                shuffle_arrangement(g, tied, state)
                total += value(g)
            return total / MOST_ARRANGEMENTS

        @njit(nogil=True)
        def evaluate_queries(
            rule, ties, gain, weight, ptr, order, tied, retrieved, depth, first, last, values
        ):
            for q in range(first, last):
                a, b = ptr[q], ptr[q + 1]
                g = np.empty(b - a)
                n, any_tied = gather_gains(
                    gain, order[a:b], tied[a:b], retrieved[q], depth, ties, g
                )
                if ties == EXPECTED and any_tied:
                    values[q] = expected(g[:n], tied[a:b])
                else:
                    values[q] = value(g[:n])

        if delta is None:

            @njit(nogil=True)
            def swap_delta(g, i, j):
                before = value(g)
                g[i], g[j] = g[j], g[i]
                after = value(g)
                g[i], g[j] = g[j], g[i]
                return after - before
        else:
            user_delta = _checked(delta)
            if takes_k:

                @njit(nogil=True)
                def swap_delta(g, i, j):
                    return 1.0 * user_delta(g, i, j, min(k, g.size))
            else:

                @njit(nogil=True)
                def swap_delta(g, i, j):
                    return 1.0 * user_delta(g, i, j)

        @njit(nogil=True)
        def swap_row(rule, g, w, state, i, row):
            # Equal labels are no pair: nothing to evaluate, whatever the user's delta says.
            for j in range(i + 1, g.size):
                row[j] = swap_delta(g, i, j) if g[i] != g[j] else 0.0

        @njit(nogil=True)
        def swap_matrix(rule, g, w, deltas):
            own = g.copy()
            for i in range(g.size):
                deltas[i, i] = 0.0
                for j in range(i + 1, g.size):
                    deltas[i, j] = deltas[j, i] = swap_delta(own, i, j)

        @njit(nogil=True)
        def ranked_value(rule, g, w):
            return value(g)

        self.ranked_value = ranked_value
        self.evaluate_queries = evaluate_queries
        self.swap_row = swap_row
        self.swap_matrix = swap_matrix
