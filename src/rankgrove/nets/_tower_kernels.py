# mypy: ignore-errors
"""Training a net whose scores get a number per cell of positions, the second tower.

The numbers learn as the output's biases would, with the same optimiser and rate; the first cell
stays at 0.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.nets._list_kernels import list_gradient
from rankgrove.nets._net_kernels import (
    backward,
    longest_of,
    net_room,
    scores_of,
    train_queries,
    update,
)
from rankgrove.objectives._lambda_kernels import lambda_room, lambdas_in, rebound
from rankgrove.objectives._position_kernels import click_lambdas_in

# one update per query, with lambdas of clicks
train_click_queries = rebound(train_queries, "_of_clicks", lambdas_in=click_lambdas_in)


@njit(cache=True, nogil=True)
def update_tower(optimiser, rate, gradient, cell, anchor, tower, change, factors):
    """Take one step of the tower; `gradient` and `cell` are those of a query's rows.

    tower : inout, the numbers of cells, Adam's means and squares, and two powers
    change, factors : scratch, and zeros, one per cell
    """
    n = change.size
    change[:] = 0.0
    for i in range(gradient.size):
        change[cell[i]] += gradient[i]
    value, mean, square = tower[:n], tower[n : 2 * n], tower[2 * n : 3 * n]
    update(optimiser, rate, 0.0, value, factors, change, mean, square, tower[3 * n :])
    first = value[anchor]
    for c in range(n):
        value[c] -= first


@njit(cache=True, nogil=True)
def train_two_towers(
    order, inputs, objective, seed, widths, activation, optimiser, rate, l2, state, tower, cell,
    anchor, scores, gradient, hessian,
):  # fmt: skip
    """Do as train_queries with a tower; cell : in, of every row."""
    ptr = objective.query_ptr
    parameters, factors, mean, square, powers = state
    longest = longest_of(order, ptr)
    room = lambda_room(longest)
    rows, deltas, turned, change = net_room(longest, widths)
    n_cells = (tower.size - 2) // 3
    moved, none = np.empty(n_cells), np.zeros(n_cells)
    for k in range(order.size):
        q = order[k]
        if not objective.has_pairs[q]:
            continue
        own = slice(ptr[q], ptr[q + 1])
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, scores[own]):
            return q
        for i in range(ptr[q], ptr[q + 1]):
            scores[i] += tower[cell[i]]
        lambdas_in(room, objective, seed, order[k : k + 1], scores, gradient, hessian)
        n = ptr[q + 1] - ptr[q]
        backward(n, widths, activation, parameters, rows, gradient[own], deltas, turned, change)
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
        update_tower(optimiser, rate, gradient[own], cell[own], anchor, tower, moved, none)
    return -1


@njit(cache=True, nogil=True)
def train_list_towers(
    order, inputs, lists, widths, activation, optimiser, rate, l2, state, tower, cell, anchor,
    scores, gradient,
):  # fmt: skip
    """Do as train_lists with a tower; cell : in, of every row."""
    ptr, target, weight = lists
    parameters, factors, mean, square, powers = state
    rows, deltas, turned, change = net_room(longest_of(order, ptr), widths)
    n_cells = (tower.size - 2) // 3
    moved, none = np.empty(n_cells), np.zeros(n_cells)
    for k in range(order.size):
        q = order[k]
        if weight[q] == 0.0:
            continue
        own = slice(ptr[q], ptr[q + 1])
        n = ptr[q + 1] - ptr[q]
        s, g = scores[:n], gradient[:n]
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, s):
            return q
        for i in range(n):
            s[i] += tower[cell[ptr[q] + i]]
        list_gradient(s, target[own], weight[q], g)
        backward(n, widths, activation, parameters, rows, g, deltas, turned, change)
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
        update_tower(optimiser, rate, g, cell[own], anchor, tower, moved, none)
    return -1
