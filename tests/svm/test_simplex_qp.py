"""The QP on simplices: optimal by its gap and by an independent solver, warm starts, odd cases."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from rankgrove.svm.simplex_qp import solve_qp


def random_problem(seed):
    """Return H, D, bounds and groups; H is often singular, as of nearly equal constraints."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    g = rng.normal(size=(n, int(rng.integers(1, 6)))) * rng.choice([0.01, 1.0, 30.0])
    g[rng.random(n) < 0.3] = g[0]
    group = rng.integers(0, m, n)
    return g @ g.T, rng.normal(size=n) * 2, rng.random(m) * rng.choice([0.1, 1.0, 50.0]), group


def feasible(a, bound, group):
    sums = np.bincount(group, a, minlength=bound.size)
    return np.all(a >= 0) and np.all(sums <= bound * (1 + 1e-12))


@given(st.integers(0, 10**9))
def test_the_gap_bounds_what_an_independent_solver_finds(seed):
    H, D, bound, group = random_problem(seed)
    found = solve_qp(H, D, bound, group=group, tolerance=1e-9)
    assert feasible(found.a, bound, group)
    value = found.a @ D - found.a @ H @ found.a / 2
    scale = 1.0 + abs(value)
    assert found.value == pytest.approx(value, abs=1e-9 * scale)
    assert -1e-9 * scale <= found.gap <= 1e-9 + 1e-9 * scale
    other = scipy.optimize.minimize(
        lambda a: a @ H @ a / 2 - a @ D,
        np.zeros(D.size),
        jac=lambda a: H @ a - D,
        bounds=[(0, None)] * D.size,
        constraints=[
            {"type": "ineq", "fun": lambda a, k=k: bound[k] - a[group == k].sum()}
            for k in range(bound.size)
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    if other.success and feasible(np.maximum(other.x, 0), bound, group):
        assert -other.fun <= value + 1e-6 * scale


@given(st.integers(0, 10**9), st.floats(0, 3))
def test_any_start_leads_to_the_same_value(seed, size):
    H, D, bound, group = random_problem(seed)
    cold = solve_qp(H, D, bound, group=group, tolerance=1e-9)
    start = np.random.default_rng(seed + 1).random(D.size) * size * bound.max()
    warm = solve_qp(H, D, bound, group=group, start=start, tolerance=1e-9)
    assert feasible(warm.a, bound, group)
    assert warm.value == pytest.approx(cold.value, abs=1e-7 * (1 + abs(cold.value)))
    # the gap is computed anew from the start, with other rounding
    enough = max(cold.gap, 1e-9) + 1e-8 * (1 + abs(cold.value))
    again = solve_qp(H, D, bound, group=group, start=cold.a, tolerance=enough)
    assert again.steps == 0
    np.testing.assert_allclose(again.a, cold.a, rtol=1e-14)


@pytest.mark.parametrize("seed", [519829, 25061, 13835, 7434])
def test_badly_conditioned_problems_are_solved_too(seed):
    """Steps along pairs alone leave a gap of .04 to 3 after a million of them."""
    H, D, bound, group = random_problem(seed)
    solution = solve_qp(H, D, bound, group=group, tolerance=1e-9)
    assert solution.gap <= 1e-8 * (1.0 + abs(solution.value))
    assert solution.steps < 200_000


def test_known_answers():
    # inside the simplex, on its face, in its corner, at 0
    eye = np.eye(2)
    for D, bound, answer in [
        ([0.2, 0.3], 1.0, [0.2, 0.3]),
        ([1.0, 2.0], 1.0, [0.0, 1.0]),
        ([1.0, 1.2], 1.0, [0.4, 0.6]),
        ([-1.0, -2.0], 1.0, [0.0, 0.0]),
    ]:
        found = solve_qp(eye, np.array(D), np.array([bound]))
        np.testing.assert_allclose(found.a, answer, atol=1e-9)
        assert found.gap <= 1e-10
    # no curvature at all: the whole bound goes to the better one
    flat = solve_qp(np.zeros((2, 2)), np.array([1.0, 3.0]), np.array([2.0]))
    np.testing.assert_array_equal(flat.a, [0.0, 2.0])
    # a bound of 0
    none = solve_qp(eye, np.ones(2), np.zeros(1))
    np.testing.assert_array_equal(none.a, [0.0, 0.0])
    assert none.gap == 0.0


def test_groups_are_apart():
    H, D, _, _ = random_problem(5)
    n = D.size
    both = np.block([[H, np.zeros((n, n))], [np.zeros((n, n)), H]])
    one = solve_qp(H, D, np.array([0.7]), tolerance=1e-12)
    two = solve_qp(
        both, np.tile(D, 2), np.array([0.7, 0.7]), group=np.repeat([0, 1], n), tolerance=1e-12
    )
    assert two.value == pytest.approx(2 * one.value, abs=1e-9)


def test_a_larger_matrix_is_read_in_its_first_rows():
    H, D, bound, group = random_problem(7)
    large = np.full((20, 20), np.nan)
    large[: D.size, : D.size] = H
    a = solve_qp(H, D, bound, group=group)
    b = solve_qp(large, D, bound, group=group)
    np.testing.assert_array_equal(a.a, b.a)


def test_running_out_of_steps_is_seen_in_the_gap():
    rng = np.random.default_rng(3)
    g = rng.normal(size=(40, 5))
    found = solve_qp(g @ g.T, rng.random(40), np.array([5.0]), most_steps=3)
    whole = solve_qp(g @ g.T, rng.random(40) * 0 + 1, np.array([5.0]))
    assert found.steps == 3
    assert found.gap > 1e-6 > whole.gap
