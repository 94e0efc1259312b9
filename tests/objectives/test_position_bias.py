"""Gradients and updates of position bias, against definitions in plain Python."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data.positions import check_positions
from rankgrove.objectives.clicks import (
    AdditiveObjective,
    ClickLambdaObjective,
    SoftLogistic,
    no_sums,
)
from rankgrove.objectives.examination import pair_cells, position_based, trust_based
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.pointwise import Logistic, SquaredError
from rankgrove.objectives.position_bias import (
    AdditiveBias,
    AffineBias,
    Cells,
    Propensities,
    RatioBias,
    exact_values,
)
from tests.reference import lambdas as naive_lambdas
from tests.reference import measures as naive_measures
from tests.reference import position_bias as naive

SIZES = [7, 1, 3, 12, 2, 5]
PTR = np.concatenate([[0], np.cumsum(SIZES)])
N = int(PTR[-1])
RANDOM = np.random.default_rng(5)
CLICKS = (RANDOM.random(N) < 0.35).astype(float)
CLICKS[:2] = 1.0, 0.0
SCORES = RANDOM.normal(size=N)
KEYS = RANDOM.permutation(N).astype(np.uint64)
PLACE = np.concatenate([np.arange(1, n + 1) for n in SIZES])
CELLS = Cells.of(check_positions(PLACE, None, N), CLICKS > 0, 6)
CELL = CELLS.of_rows(check_positions(PLACE, None, N))
NDCG = naive_lambdas.changing_value(naive_measures.ndcg, 4)


def lambdas_of(objective, scores=SCORES, **options):
    gradient, hessian = np.full((2, N), np.nan)
    objective.gradients(scores, gradient, hessian, n_threads=1, **options)
    return gradient, hessian


def on_clicks(bias, measure="ndcg@4", **options):
    return ClickLambdaObjective(
        rg.measure(measure), CLICKS, PTR, bias=bias, cell=CELL, row_keys=KEYS, **options
    )


def moved(bias, state):
    bias.states.append(np.asarray(state, float))
    return bias


def of_queries(work):
    """Join what `work` returns for every query: lists of numbers per row."""
    parts = [work(slice(a, b)) for a, b in itertools.pairwise(PTR.tolist())]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def pairs_of(part, truncation=None):
    data = CLICKS[part].tolist(), SCORES[part].tolist(), KEYS[part].tolist()
    return naive_lambdas.pairs(NDCG, *data, truncation)


def test_cells_count_positions_below_the_last_one_as_the_last():
    assert CELLS.size == 6
    assert CELLS.shown.tolist() == [6, 5, 4, 3, 3, 9]
    assert CELL[PLACE > 6].tolist() == [5] * 7
    context = np.repeat(["a", "b"], [10, N - 10])
    two = check_positions(PLACE, context, N)
    cells = Cells.of(two, CLICKS > 0)
    assert (cells.contexts, cells.n_positions) == (("a", "b"), 12)
    assert cells.of_rows(two)[10] == 12 + PLACE[10] - 1
    other = check_positions(PLACE, np.repeat("c", N), N)
    assert (cells.of_rows(other) == -1).all()


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("sigma", [1.0, 1.7])
@pytest.mark.parametrize("truncation", [None, 3])
def test_ips_and_ratios_weigh_pairs(normalise, sigma, truncation):
    options = {"sigma": sigma, "normalise": normalise, "truncation": truncation}
    ratio = moved(
        RatioBias(CELLS, 1.0, 10.0),
        [1, 0.8, 0.6, 0.3, 0.4, 0.2, 1, 1.1, 0.9, 0.8, 0.7, 0.6],
    )
    plus, minus = ratio.state.reshape(2, -1)
    ips = Propensities(CELLS, 1.0 / np.arange(1, 7), 4.0)
    for bias, factor in [
        (ratio, lambda i, j: 1.0 / (plus[CELL[i]] * minus[CELL[j]])),
        (ips, lambda i, j: ips.weight[CELL[i]]),
    ]:
        got = lambdas_of(on_clicks(bias, **options))

        def expected(part, factor=factor):
            first = part.start
            return naive.weighed_lambdas(
                pairs_of(part, truncation),
                SCORES[part].tolist(),
                lambda i, j: factor(i + first, j + first),
                sigma,
                normalise,
            )

        for a, b in zip(got, of_queries(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("truncation", [None, 2])
def test_affine_lambdas_are_linear_in_corrected_clicks(normalise, truncation):
    alpha, beta = 1.0 / np.arange(1, 7), 0.3 / np.arange(1, 7)
    bias = AffineBias(CELLS, alpha, beta, 100.0)
    got = lambdas_of(on_clicks(bias, normalise=normalise, truncation=truncation))
    corrected = bias.corrected(CLICKS, CELL)
    raw = (CLICKS - beta[CELL]) / alpha[CELL]
    np.testing.assert_allclose(corrected / corrected[0], raw / raw[0], rtol=1e-12)

    def size(a, b):  # of a list with one click, whose best DCG is 1
        return abs(1 / np.log2(a + 2) - 1 / np.log2(b + 2))

    def expected(part):
        data = corrected[part], SCORES[part].tolist(), KEYS[part].tolist()
        return naive.linear_lambdas(size, *data, truncation, 1.0, normalise)

    for a, b in zip(got, of_queries(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("method", ["ips", "affine"])
def test_weights_of_1_change_no_bit(method):
    """They take another way through the kernel, pair by pair."""
    bias = Propensities(CELLS, 1.0 / np.arange(1, 7), 4.0)
    if method == "affine":
        bias = AffineBias(CELLS, 1.0 / np.arange(1, 7), 0.1 / np.arange(1, 7), 10.0)
    for normalise in (False, True):
        plain = lambdas_of(on_clicks(bias, normalise=normalise))
        ones = lambdas_of(on_clicks(bias, normalise=normalise, row_weight=np.ones(N)))
        np.testing.assert_array_equal(plain, ones)
        twice = lambdas_of(on_clicks(bias, query_weight=np.full(PTR.size - 1, 2.0)))
        np.testing.assert_allclose(twice, 2 * np.array(lambdas_of(on_clicks(bias))), rtol=1e-14)


@pytest.mark.parametrize("method", ["ratios", "affine"])
def test_scores_far_apart_use_no_powers(method):
    alpha = 1.0 / np.arange(1, 7)
    bias = RatioBias(CELLS, 1.0, 10.0)
    if method == "affine":
        bias = AffineBias(CELLS, alpha, alpha / 3, 10.0)
    near = 20.0 * SCORES
    got = lambdas_of(on_clicks(bias, normalise=True), near)
    far = near.copy()
    far[PTR[3]] += 5000.0  # its pairs are decided; those of the other rows stay as they are
    wide = lambdas_of(on_clicks(bias, normalise=True), far)
    assert np.isfinite(wide).all()
    other = np.ones(N, bool)
    other[PTR[3] : PTR[4]] = False
    np.testing.assert_array_equal(got[0][other], wide[0][other])


@pytest.mark.parametrize("normalise", [False, True])
def test_ratios_are_updated_by_losses(normalise):
    start = np.array([1, 0.8, 0.6, 0.3, 0.4, 0.2, 1, 1.1, 0.9, 0.8, 0.7, 0.6])
    bias = moved(RatioBias(CELLS, 1.0, 1e6), start)
    objective = on_clicks(bias, normalise=normalise)
    lambdas_of(objective)
    bias.advance(objective.sums)
    plus, minus = start.reshape(2, -1)

    def of_query(part):
        return naive.losses(
            pairs_of(part), SCORES[part].tolist(), plus[CELL[part]], minus[CELL[part]], 1.0,
            normalise,
        )  # fmt: skip

    clicked, other = of_queries(of_query)
    for row, losses in enumerate((clicked, other)):
        by_cell = np.bincount(CELL, losses, minlength=6)
        expected = naive.ratios(by_cell, CELLS.shown.tolist(), 1.0)
        got = bias.state.reshape(2, -1)[row]
        positive = by_cell > 0
        np.testing.assert_allclose(got[positive], np.array(expected)[positive], rtol=1e-12)
    assert bias.state[0] == bias.state[6] == 1.0


@pytest.mark.parametrize("measure", ["ndcg@4", "map", "pairs"])
def test_additive_bias_takes_newton_steps(measure):
    bias = AdditiveBias(CELLS, 0.3, 2.0, by_difference=True)
    inner = LambdaObjective(rg.measure(measure), CLICKS, PTR, row_keys=KEYS)
    objective = AdditiveObjective(inner, bias, CELL)
    state = [0.0] * 6
    for _ in range(3):
        gradient, _ = lambdas_of(objective)
        plain = lambdas_of(inner, SCORES + np.array(state)[CELL])
        np.testing.assert_allclose(gradient, plain[0], rtol=1e-12, atol=1e-15)
        bias.advance(objective.sums)
        sums = [np.bincount(CELL, x, minlength=6) for x in plain]
        state = naive.newton(state, *sums, 0.3, 2.0)
        np.testing.assert_allclose(bias.state, state, rtol=1e-10, atol=1e-14)
    table = bias.learned(2)
    np.testing.assert_array_equal(table.values["bias"][0], bias.states[1])


@pytest.mark.parametrize("loss", [SquaredError, partial(Logistic, sigma=1.3)])
def test_the_first_cell_of_a_loss_of_rows_stays_at_0(loss):
    labels = CLICKS if loss is SquaredError else np.where(CLICKS > 0, 1, -1)
    bias = AdditiveBias(CELLS, 1.0, 0.0, by_difference=False)
    objective = AdditiveObjective(loss(labels, PTR), bias, CELL)
    gradient, hessian = lambdas_of(objective)
    bias.advance(objective.sums)
    sums = [np.bincount(CELL, x, minlength=6) for x in (gradient, hessian)]
    expected = sums[0] / sums[1]
    assert bias.state[0] == 0.0
    np.testing.assert_allclose(bias.state[1:], expected[1:], rtol=1e-12)


def test_soft_labels_that_are_classes_give_the_logistic_loss():
    plain = lambdas_of(Logistic(np.where(CLICKS > 0, 1, -1), PTR, 1.3))
    soft = lambdas_of(SoftLogistic(CLICKS, PTR, 1.3))
    for a, b in zip(plain, soft, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    twice = lambdas_of(SoftLogistic(2 * CLICKS, PTR, 1.3))
    np.testing.assert_allclose(twice[0] - soft[0], 2.6 * CLICKS, rtol=1e-12)


@pytest.mark.parametrize("method", ["additive", "ratios", "ips"])
def test_one_position_changes_no_bit(method):
    ones = check_positions(np.ones(N), None, N)
    cells = Cells.of(ones, CLICKS > 0)
    cell = cells.of_rows(ones)
    data = (rg.measure("ndcg@4"), CLICKS, PTR)
    plain = LambdaObjective(*data, row_keys=KEYS, normalise=True)
    if method == "additive":
        bias = AdditiveBias(cells, 0.5, 1.0, by_difference=True)
        objective = AdditiveObjective(plain, bias, cell)
    else:
        bias = RatioBias(cells, 1.0, 10.0)
        if method == "ips":
            bias = Propensities(cells, np.array([0.3]), 10.0)
        objective = ClickLambdaObjective(*data, bias=bias, cell=cell, row_keys=KEYS, normalise=True)
    for _ in range(3):
        for a, b in zip(lambdas_of(objective), lambdas_of(plain), strict=True):
            np.testing.assert_array_equal(a, b)
        bias.advance(objective.sums)


@given(
    st.lists(st.floats(-1e9, 1e9) | st.floats(-1e-9, 1e-9), min_size=1, max_size=30), st.randoms()
)
def test_sums_do_not_depend_on_the_order(values, random):
    from rankgrove.objectives._position_kernels import sum_cells

    n = len(values)
    ptr, cell = np.array([0, n]), np.zeros(n, np.int32)
    bias = AdditiveBias(Cells(("",), 1, np.array([n]), np.array([0])), 1.0, 1.0, True)
    found = []
    for _ in range(2):
        array, sums = np.array(values), no_sums(bias)
        sum_cells(np.array([0]), ptr, cell, array, -array, sums)
        found.append(exact_values(sums)[:, 0])
        random.shuffle(values)
    np.testing.assert_array_equal(*found)
    true = float(sum((Fraction(value) for value in values), Fraction(0)))
    assert found[0][0] == pytest.approx(true, rel=1e-15, abs=n * 2.0**-64)
    assert found[0][1] == -found[0][0]


def test_measures_of_single_documents_only():
    with pytest.raises(rg.ParameterError, match="adds up documents"):
        on_clicks(Propensities(CELLS, np.ones(6), 4.0), "map")


# -- estimation -----------------------------------------------------------------------------------


def simulated(n_pairs=300, n=60_000, seed=0):
    """Return pairs, places, and clicks by two models, with their true numbers."""
    rng = np.random.default_rng(seed)
    examined = np.arange(1, 6) ** -0.8
    relevance = rng.beta(0.6, 1.2, n_pairs)
    pair = rng.integers(0, n_pairs, n)
    # better documents stand higher, with noise
    place = np.clip(np.round(5 - 4 * relevance[pair] + rng.normal(size=n)), 1, 5).astype(int)
    relevant = rng.random(n) < relevance[pair]
    seen = rng.random(n) < examined[place - 1]
    trust = rng.random(n) < 0.5 / place
    positions = check_positions(place, None, n)
    return pair.astype(np.int32), positions, seen & relevant, seen & (relevant | trust), examined


def counts_of(pair, positions, clicked):
    cells = Cells.of(positions, clicked)
    return pair_cells(pair, cells.of_rows(positions), clicked, cells)


def test_examination_is_recovered():
    pair, positions, clicked, _, examined = simulated()
    found = position_based(counts_of(pair, positions, clicked))
    np.testing.assert_allclose(found / found[0], examined / examined[0], atol=0.05)


def test_examination_of_pairs_with_few_impressions():
    """The second position is the most examined; every pair was shown twice."""
    rng = np.random.default_rng(2)
    examined = np.array([0.6, 1.0, 0.4])
    pair = np.repeat(np.arange(60_000), 2)
    place = rng.integers(1, 4, pair.size)
    clicked = rng.random(pair.size) < rng.uniform(0.1, 0.9, 60_000)[pair] * examined[place - 1]
    positions = check_positions(place, None, pair.size)
    found = position_based(counts_of(pair.astype(np.int32), positions, clicked))
    np.testing.assert_allclose(found, examined, atol=0.03)


def test_trust_is_recovered_up_to_a_linear_change_of_relevance():
    pair, positions, _, clicked, examined = simulated(n=200_000)
    alpha, beta = trust_based(counts_of(pair, positions, clicked))
    trust = 0.5 / np.arange(1, 6)
    true_alpha, true_beta = examined * (1 - trust), examined * trust
    # relevance r = m r' + c: alpha' = alpha m, beta' = beta + alpha c
    np.testing.assert_allclose(alpha / alpha[0], true_alpha / true_alpha[0], atol=0.1)
    c = (beta - true_beta) / true_alpha
    assert np.ptp(c) < 0.12


def test_estimates_do_not_depend_on_the_numbers_of_pairs():
    pair, positions, clicked, _, _ = simulated(50, 2000)
    turned = np.random.default_rng(1).permutation(50)[pair].astype(np.int32)
    for estimate in (position_based, trust_based):
        here = estimate(counts_of(pair, positions, clicked))
        there = estimate(counts_of(turned, positions, clicked))
        np.testing.assert_array_equal(here, there)
