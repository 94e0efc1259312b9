"""The oracles of ranking losses: exact on every small case, and what the paper proves of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.svm.design import MatrixDesign, StepDesign
from rankgrove.svm.oracles import LOSSES, FinderOracle, LossOracle, pair_coefficients
from tests.reference import svm as naive


def found(loss, scores, relevant):
    """Return H, loss, coefficients and positions that an oracle finds for one query."""
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    ptr = np.array([0, scores.size])
    oracle = LossOracle(loss, MatrixDesign(np.zeros((scores.size, 1), np.float32)), ptr, relevant)
    losses, coefficient, before = oracle.positions(scores, ptr, relevant)
    value = losses[0] - coefficient @ scores
    return value, losses[0], coefficient, before[: relevant.sum()]


def order_of(scores, relevant, before):
    """Return the ranking that the numbers of irrelevant documents before relevant ones say."""
    by_score = np.argsort(-np.asarray(scores), kind="stable")
    good, bad = by_score[relevant[by_score]], by_score[~relevant[by_score]]
    order, taken = [], 0
    for document, count in zip(good, before, strict=True):
        order += [*bad[taken:count], document]
        taken = count
    return [*order, *bad[taken:]]


def small_cases():
    rng = np.random.default_rng(0)
    for n in range(2, 8):
        for p in range(1, n):
            relevant = np.arange(n) < p
            # ties and margins of exactly a half; far apart; like those of training
            yield relevant, np.zeros(n)
            for _ in range(12):
                yield rng.permutation(relevant), rng.integers(-3, 4, n) / 4
                yield rng.permutation(relevant), rng.normal(size=n)
                yield rng.permutation(relevant), rng.normal(size=n) * rng.choice([0.05, 0.3, 4.0])


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_to_brute_force_over_all_interleavings(loss):
    for relevant, scores in small_cases():
        value, delta, coefficient, before = found(loss, scores, relevant)
        case = f"{scores.tolist()} {relevant.tolist()}"
        expected = naive.most_violated(naive.LOSSES[loss], scores.tolist(), relevant.tolist())
        assert value == pytest.approx(expected, abs=1e-12), case
        # loss, coefficients and H are those of the one ranking that was found
        order = order_of(scores, relevant, before)
        assert delta == pytest.approx(naive.LOSSES[loss](relevant[order].tolist()), abs=1e-12)
        direct = naive.violation(naive.LOSSES[loss], scores, relevant, order)
        assert value == pytest.approx(direct, abs=1e-12), case
        np.testing.assert_allclose(coefficient, pair_coefficients(order, relevant), atol=1e-15)
        assert np.all(np.diff(before) >= 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_permutation_is_better_than_the_best_interleaving(loss):
    # Observation 1 itself
    rng = np.random.default_rng(1)
    for n, p in [(3, 1), (4, 2), (5, 2), (5, 3)]:
        for scores in (rng.normal(size=n), rng.integers(-2, 3, n) / 4):
            relevant = rng.permutation(np.arange(n) < p)
            best = max(
                naive.violation(naive.LOSSES[loss], scores, relevant, order)
                for order in itertools.permutations(range(n))
            )
            assert found(loss, scores, relevant)[0] == pytest.approx(best, abs=1e-12)


def test_positions_never_fall_and_h_is_equation_8():
    # Theorem 2: a search over all places, for every document alone, gives places that ascend.
    for relevant, scores in small_cases():
        positions = naive.greedy_positions(scores.tolist(), relevant.tolist())
        assert positions == sorted(positions), (scores, relevant)
        value, _, _, before = found("map", scores, relevant)
        own = [
            1 + sum(b < j for b in before.tolist()) for j in range(1, (~relevant).sum() + 1)
        ]  # o_j: the first relevant document with j or more irrelevant ones before it
        eight = naive.equation_8(scores.tolist(), relevant.tolist(), own)
        assert value == pytest.approx(eight, abs=1e-12)
        greedy = naive.equation_8(scores.tolist(), relevant.tolist(), positions)
        assert value == pytest.approx(greedy, abs=1e-12)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-20, 20)), min_size=2, max_size=40).filter(
        lambda rows: len({good for good, _ in rows}) == 2
    ),
    st.sampled_from(LOSSES),
    st.floats(0.001, 2.0),
)
def test_a_ranking_found_is_no_worse_than_simple_ones(rows, loss, scale):
    relevant = np.array([good for good, _ in rows])
    scores = np.array([score * scale for _, score in rows])
    value, delta, _, before = found(loss, scores, relevant)
    assert value >= -1e-12  # that of a perfect ranking is 0
    assert 0.0 <= delta <= 1.0
    by_score = np.argsort(-scores, kind="stable").tolist()
    worst = naive.perfect(~relevant)
    for order in (by_score, worst):
        other = naive.violation(naive.LOSSES[loss], scores.tolist(), relevant.tolist(), order)
        assert value >= other - 1e-9
    assert np.all(np.diff(before) >= 0)


def test_loss_is_one_less_the_measure():
    names = {"map": "map", "roc": "auc", "mrr": "mrr", "ndcg": "ndcg"}
    rng = np.random.default_rng(3)
    for loss, name in names.items():
        relevant, scores = rng.permutation(np.arange(12) < 4), rng.normal(size=12) / 5
        _, delta, _, before = found(loss, scores, relevant)
        order = order_of(scores, relevant, before)
        value = rg.measure(name).value(relevant[order].astype(float))
        assert delta == pytest.approx(1 - value, abs=1e-12)


# -- many queries -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    made = rg.make_web(40, n_docs=15, n_features=12, seed=4)
    relevant = made.y >= 1
    counts = np.add.reduceat(relevant.astype(int), made.query_ptr[:-1])
    return made.select((counts > 0) & (counts < np.diff(made.query_ptr)))


def designs(data):
    """Return the same rows as a dense, a sparse and a step design, with their matrices."""
    from rankgrove.data.thresholds import indicators, place_thresholds, step_codes

    factor = np.linspace(0.5, 2.0, data.n_features)
    thresholds, ptr = place_thresholds(data.X, 7)
    codes = step_codes(data.X, np.arange(data.n_rows), thresholds, ptr)
    ones = indicators(data.X, thresholds, ptr)
    sparse = scipy.sparse.csr_matrix(data.X)
    return {
        "dense": (MatrixDesign(data.X, None, factor), data.X.astype(np.float64) * factor),
        "sparse": (MatrixDesign(sparse, None, factor), data.X.astype(np.float64) * factor),
        "steps": (StepDesign(codes, ptr), ones.toarray().astype(np.float64)),
        "ones": (MatrixDesign(ones), ones.toarray().astype(np.float64)),
    }


@pytest.mark.parametrize("form", ["dense", "sparse", "steps", "ones"])
@pytest.mark.parametrize("loss", LOSSES)
def test_joint_is_the_mean_of_singles_for_any_design_and_threads(data, form, loss):
    design, matrix = designs(data)[form]
    rng = np.random.default_rng(5)
    w = rng.normal(size=design.n_columns) / matrix.std(axis=0).clip(0.1) / 20
    np.testing.assert_allclose(design.scores(w), matrix @ w, rtol=1e-9, atol=1e-12)
    c = rng.normal(size=data.n_rows)
    np.testing.assert_allclose(design.combine(c), matrix.T @ c, rtol=1e-9, atol=1e-9)
    weights = rng.random(data.n_queries) + 0.1
    relevant = data.y >= 1
    parts = []
    for n_threads in (1, 2):
        oracle = LossOracle(
            loss, design, data.query_ptr, relevant, weights=weights, n_threads=n_threads
        )
        parts.append(oracle.joint(w))
    assert parts[0][0] == parts[1][0]
    np.testing.assert_array_equal(parts[0][1], parts[1][1])
    singles = [oracle.single(w, i) for i in range(data.n_queries)]
    mean = sum(s * one[0] for s, one in zip(oracle.shares, singles, strict=True))
    assert parts[0][0] == pytest.approx(mean, abs=1e-12)
    direction = sum(s * one[1] for s, one in zip(oracle.shares, singles, strict=True))
    np.testing.assert_allclose(parts[0][1], direction, atol=1e-9 * np.abs(direction).max())
    # one query against the paper's Psi
    own = slice(*data.query_ptr[3:5])
    value = singles[3][0] - singles[3][1] @ w
    scores = (matrix[own] @ w).tolist()
    if own.stop - own.start <= 14:
        best = naive.most_violated(naive.LOSSES[loss], scores, relevant[own].tolist())
        assert value == pytest.approx(best, abs=1e-9)


def test_many_rows_have_the_same_bits_for_any_number_of_threads():
    # enough rows for several blocks and threads
    data = rg.make_web(400, n_docs=60, n_features=10, seed=6)
    design = MatrixDesign(data.X, None, 1.0 / (1.0 + np.abs(data.X).max(axis=0)))
    relevant = data.y >= 1
    counts = np.add.reduceat(relevant.astype(int), data.query_ptr[:-1])
    assert np.all((counts > 0) & (counts < np.diff(data.query_ptr)))
    w = np.random.default_rng(7).normal(size=10)
    one = LossOracle("map", design, data.query_ptr, relevant, n_threads=1).joint(w)
    two = LossOracle("map", design, data.query_ptr, relevant, n_threads=2).joint(w)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


# -- a user's own -------------------------------------------------------------------------------


def brute_force(loss):
    def find(scores, relevant):
        def value(order):
            return naive.violation(loss, scores.tolist(), relevant.tolist(), order)

        order = max(naive.interleavings(scores.tolist(), relevant.tolist()), key=value)
        return loss([bool(relevant[d]) for d in order]), order

    return find


def test_a_users_own_function_is_as_good_as_a_built_in_one():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(18, 3)).astype(np.float32)
    ptr, relevant = np.array([0, 6, 12, 18]), np.tile([True, False, True, False, False, True], 3)
    own = FinderOracle(brute_force(naive.map_loss), MatrixDesign(X), ptr, relevant)
    ours = LossOracle("map", MatrixDesign(X), ptr, relevant)
    for _ in range(5):
        w = rng.normal(size=3) / 3
        for a, b in zip(own.joint(w), ours.joint(w), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_what_a_users_function_returns_is_checked():
    X, ptr = np.ones((3, 1), np.float32), np.array([0, 3])
    relevant = np.array([True, False, False])
    for answer, message in [
        ((0.5, [0, 1, 1]), "must name each of the numbers 0 to 2 once"),
        ((0.5, [0, 1]), "must name each"),
        ((-1.0, [0, 1, 2]), "at least 0"),
        ((np.nan, [0, 1, 2]), "finite number"),
    ]:
        oracle = FinderOracle(lambda *_, answer=answer: answer, MatrixDesign(X), ptr, relevant)
        with pytest.raises(rg.DataError, match=message):
            oracle.joint(np.zeros(1))
    with pytest.raises(rg.ParameterError, match="did you mean 'ndcg'"):
        LossOracle("ndgc", MatrixDesign(X), ptr, relevant)
