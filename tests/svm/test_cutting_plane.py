"""The cutting-plane solver: optimal by enumeration, certified, limited, and true to the paper."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest
import scipy.optimize

import rankgrove as rg
from rankgrove.errors import ParameterError
from rankgrove.svm.cutting_plane import Oracle, solve
from rankgrove.svm.design import MatrixDesign
from rankgrove.svm.oracles import LossOracle
from tests.reference import svm as naive


class Enumerated(Oracle):
    """A problem whose constraints are all listed: a user's own oracle at its plainest."""

    def __init__(self, losses, gradients, shares=None):
        self.losses, self.gradients = losses, gradients
        self.n_weights = gradients[0].shape[1]
        n = len(losses)
        self.shares = np.full(n, 1 / n) if shares is None else np.asarray(shares)

    def single(self, w, example):
        k = int(np.argmax(self.losses[example] - self.gradients[example] @ w))
        return float(self.losses[example][k]), self.gradients[example][k]

    def objective(self, w, C):
        slacks = [max(0.0, (d - g @ w).max()) for d, g in self.pairs()]
        return 0.5 * w @ w + C * (self.shares @ np.array(slacks))

    def pairs(self):
        return list(zip(self.losses, self.gradients, strict=True))

    def by_slsqp(self, C):
        """Return the optimum of the primal with all constraints, by SciPy."""
        d, n = self.n_weights, len(self.losses)
        A = np.concatenate([g for _, g in self.pairs()])
        D = np.concatenate([loss for loss, _ in self.pairs()])
        of = np.repeat(np.arange(n), [loss.size for loss, _ in self.pairs()])
        rows = np.column_stack([of, D, A]).round(12)
        _, once = np.unique(rows, axis=0, return_index=True)  # SLSQP stumbles over repetitions
        A, D, of = A[once], D[once], of[once]
        found = scipy.optimize.minimize(
            lambda x: 0.5 * x[:d] @ x[:d] / C + self.shares @ x[d:],
            np.concatenate([np.zeros(d), np.ones(n)]),
            jac=lambda x: np.concatenate([x[:d] / C, self.shares]),
            bounds=[(None, None)] * d + [(0, None)] * n,
            constraints={
                "type": "ineq",
                "fun": lambda x: A @ x[:d] - D + x[d:][of],
                "jac": lambda x: np.concatenate([A, np.eye(n)[of]], axis=1),
            },
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-12},
        )
        assert found.success, found.message
        return C * found.fun


def ranking_problem(seed, loss, n_queries=4, n_docs=5, d=3):
    """Return a small problem: X, borders, relevance, and all of its constraints by definition."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, d)).astype(np.float32)
    relevant = np.concatenate(
        [rng.permutation(np.arange(n_docs) < rng.integers(1, n_docs)) for _ in range(n_queries)]
    )
    ptr = np.arange(n_queries + 1) * n_docs
    losses, gradients = [], []
    for q in range(n_queries):
        own = slice(ptr[q], ptr[q + 1])
        features, good = X[own].astype(float).tolist(), relevant[own].tolist()
        true = np.array(naive.psi(features, good, naive.perfect(good)))
        orders = list(itertools.permutations(range(n_docs)))
        losses.append(np.array([naive.LOSSES[loss]([good[i] for i in o]) for o in orders]))
        gradients.append(np.array([true - naive.psi(features, good, o) for o in orders]))
    return X, ptr, relevant, Enumerated(losses, gradients)


@pytest.mark.parametrize("loss", ["map", "roc", "mrr", "ndcg"])
def test_against_all_constraints_and_an_independent_solver(loss):
    for seed, C in enumerate([0.1, 1.0, 5.0, 20.0]):
        X, ptr, relevant, listed = ranking_problem(seed, loss)
        oracle = LossOracle(loss, MatrixDesign(X), ptr, relevant)
        best = listed.by_slsqp(C)
        for form in ("1-slack", "n-slack"):
            for problem in (oracle, listed):
                found = solve(problem, C, epsilon=1e-7, form=form)
                done = found.progress
                assert found.status == "converged"
                assert done.violation <= 1e-7
                # primal and dual enclose the optimum, and are close
                assert done.dual <= best + 1e-7
                assert done.primal >= best - 1e-7
                assert -1e-9 <= done.gap <= 1.1 * C * 1e-7 + 1e-9
                assert listed.objective(found.w, C) == pytest.approx(done.primal, abs=1e-9)


@pytest.fixture(scope="module")
def web():
    data = rg.make_web(60, n_docs=20, n_features=15, seed=1)
    relevant = data.y >= 2
    counts = np.add.reduceat(relevant.astype(int), data.query_ptr[:-1])
    data = data.select(counts > 0)
    return data, 1.0 / np.maximum(data.X.std(axis=0), 1e-9)


def web_oracle(web, loss="map", **options):
    data, factor = web
    design = MatrixDesign(data.X, None, factor)
    return LossOracle(loss, design, data.query_ptr, data.y >= 2, **options)


@pytest.mark.parametrize("loss", ["map", "roc", "mrr", "ndcg"])
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_both_forms_reach_the_same_objective(web, loss, C):
    weights = np.random.default_rng(0).random(web[0].n_queries) + 0.2
    oracle = web_oracle(web, loss, weights=weights)
    epsilon = 1e-3
    one = solve(oracle, C, epsilon=epsilon)
    many = solve(oracle, C, epsilon=epsilon, form="n-slack")
    for found in (one, many):
        done = found.progress
        assert found.converged
        assert done.primal == pytest.approx(0.5 * found.w @ found.w + C * found.slack)
        assert 0 <= done.gap <= 1.1 * C * epsilon
        assert set(done.seconds) == {"all", "oracle", "qp"}
    assert abs(one.progress.primal - many.progress.primal) <= 1.1 * C * epsilon
    # each one's lower bound is below the other's objective
    assert one.progress.dual <= many.progress.primal
    assert many.progress.dual <= one.progress.primal


def test_the_slacks_bound_the_map_loss(web):
    # Proposition 1, at the optimum and on the way there
    data, factor = web
    for most in (1, 3, 10, None):
        for C in (0.1, 1.0, 100.0):
            found = solve(web_oracle(web), C, max_iterations=most)
            scores = data.X @ (found.w * factor)
            loss = 1 - rg.evaluate(scores, data, "map[relevant=2]").mean["map[relevant=2]"]
            assert found.slack >= loss - 1e-9


def test_constraints_and_iterations_are_within_theorem_1(web):
    data, factor = web
    oracle = web_oracle(web)
    n = data.n_queries
    # R: the furthest that Psi can move is to the inverse of the perfect ranking
    furthest = []
    for q in range(n):
        own = slice(data.query_ptr[q], data.query_ptr[q + 1])
        good, X = data.y[own] >= 2, data.X[own] * factor
        furthest.append(2 * np.linalg.norm(X[good].mean(axis=0) - X[~good].mean(axis=0)))
    R, D = max(furthest), 1.0
    for C, epsilon in [(0.1, 0.1), (1.0, 0.02), (10.0, 0.01)]:
        bound = max(2 * n * D / epsilon, 8 * C * D * R**2 / epsilon**2)
        found = solve(oracle, C, epsilon=epsilon, form="n-slack")
        assert found.converged
        assert found.progress.n_added <= bound
        one = solve(oracle, C, epsilon=epsilon)
        assert one.progress.n_added <= bound
        # a look that adds nothing is the last, or the last but one where the QP was coarse
        assert one.progress.iteration <= one.progress.n_added + 2


def test_iterations_do_not_grow_with_examples():
    counts = []
    for n_queries in (30, 240):
        data = rg.make_web(n_queries, n_docs=20, n_features=15, seed=1)
        some = data.select(np.add.reduceat((data.y >= 2).astype(int), data.query_ptr[:-1]) > 0)
        oracle = web_oracle((some, 1.0 / np.maximum(some.X.std(axis=0), 1e-9)))
        counts.append(solve(oracle, 1.0).progress.iteration)
    assert counts[1] <= 1.5 * counts[0]


def test_same_bits_for_any_number_of_threads(web):
    one = solve(web_oracle(web, n_threads=1), 1.0)
    two = solve(web_oracle(web, n_threads=2), 1.0)
    np.testing.assert_array_equal(one.w, two.w)


def test_from_the_constraints_of_another_c(web):
    oracle = web_oracle(web)
    small = solve(oracle, 1.0)
    cold = solve(oracle, 5.0)
    small.working.rescale(5.0)
    warm = solve(oracle, 5.0, start=small.working)
    assert warm.converged
    assert warm.progress.iteration < cold.progress.iteration
    assert abs(warm.progress.primal - cold.progress.primal) <= 1.1 * 5.0 * 1e-3


def test_idle_constraints_are_dropped(web):
    found = solve(web_oracle(web), 30.0, epsilon=1e-5)
    assert found.converged
    assert found.progress.n_constraints < found.progress.n_added - 50
    assert found.progress.gap <= 1.1 * 30.0 * 1e-5


# -- limits -------------------------------------------------------------------------------------


def is_certified(found, oracle, C):
    """Check the objective and that the gap encloses the optimum."""
    loss, gradient = oracle.joint(found.w)
    slack = max(0.0, loss - gradient @ found.w)
    assert found.slack == pytest.approx(slack)
    assert found.progress.primal == pytest.approx(0.5 * found.w @ found.w + C * slack)
    whole = solve(oracle, C, epsilon=1e-6)
    assert found.progress.dual <= whole.progress.primal + 1e-9
    assert found.progress.primal >= whole.progress.dual - 1e-9


@pytest.mark.parametrize("form", ["1-slack", "n-slack"])
def test_limits_keep_the_best_certified_solution(web, form):
    oracle = web_oracle(web)
    for limit, status in [
        ({"max_iterations": 2}, "iteration limit"),
        ({"time_limit": 1e-9}, "time limit"),
        ({"memory_limit": 0.003}, "memory limit"),
        ({"callback": lambda done: done.iteration >= 2}, "stopped"),
    ]:
        found = solve(oracle, 10.0, epsilon=1e-6, form=form, **limit)
        assert found.status == status
        assert not found.converged
        is_certified(found, oracle, 10.0)


def test_the_best_w_is_kept_not_the_last(web):
    oracle, seen = web_oracle(web), []
    solve(oracle, 1000.0, callback=lambda done: seen.append((done.primal, done.dual)) and None)
    primal, dual = np.array(seen).T
    assert np.all(np.diff(primal) <= 0)
    assert np.all(np.diff(dual) >= 0)
    assert np.all(dual <= primal)


def test_ctrl_c_keeps_what_there_is(web):
    oracle, calls = web_oracle(web), []
    plain = oracle.joint

    def joint(w):
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(signal.SIGINT)
        return plain(w)

    oracle.joint = joint
    found = solve(oracle, 10.0, epsilon=1e-6)
    assert found.status == "interrupted"
    assert found.progress.iteration == 3
    oracle.joint = plain
    is_certified(found, oracle, 10.0)
    # nothing to keep yet
    calls[:] = [1, 1, 1]
    oracle.joint = joint
    with pytest.raises(KeyboardInterrupt):
        solve(oracle, 10.0)


@pytest.mark.parametrize("form", ["1-slack", "n-slack"])
def test_any_object_with_the_three_names_is_an_oracle(form):
    class Axes:
        n_weights, shares = 2, [0.5, 0.5]

        def single(self, w, i):
            return (1.0, np.eye(2)[i]) if w[i] < 1.0 else (0.0, np.zeros(2))

    found = solve(Axes(), 100.0, epsilon=1e-6, form=form)
    np.testing.assert_allclose(found.w, [1.0, 1.0], atol=1e-3)
    with pytest.raises(ParameterError, match="an object with n_weights, shares and single"):
        solve(3, 1.0)


def test_a_problem_that_is_solved_from_the_start():
    # a perfect ranking by margin costs little: the slack can go to 0
    X = np.array([[10.0], [0.0], [-1.0]], np.float32)
    oracle = LossOracle("map", MatrixDesign(X), np.array([0, 3]), np.array([True, False, False]))
    found = solve(oracle, 1e4, epsilon=1e-6)
    assert found.converged
    assert found.slack == pytest.approx(0.0, abs=1e-5)
    # features that say nothing: w stays 0
    flat = LossOracle(
        "map", MatrixDesign(np.ones((3, 1), np.float32)), np.array([0, 3]), X[:, 0] > 5
    )
    for form in ("1-slack", "n-slack"):
        found = solve(flat, 10.0, form=form)
        assert found.converged
        np.testing.assert_array_equal(found.w, [0.0])
        assert found.slack == pytest.approx(1 - 1 / 3)
