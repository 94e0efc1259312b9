"""Calibration: curves that never fall, expected grades that agree with the judgements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import rankgrove as rg
from rankgrove.rankers.ensembles.relevance_curves import (
    Rows,
    Sigmoids,
    isotonic,
    never_falling,
    sigmoid,
)


@pytest.fixture(scope="module")
def parts():
    return [rg.make_web(n, 20, 10, seed=seed) for n, seed in ((100, 1), (300, 2), (400, 3))]


@pytest.fixture(scope="module")
def model(parts):
    return rg.LambdaMART(n_trees=20, n_leaves=7, n_threads=1).fit(parts[0])


@pytest.fixture(scope="module")
def calibrated(model, parts):
    return rg.calibrate(model, parts[1], samples=20)


def test_the_order_is_unchanged(model, calibrated, parts):
    scores = model.predict(parts[2])
    assert np.array_equal(calibrated.predict(parts[2]), scores)
    relevance = calibrated.predict_relevance(parts[2])
    expected = relevance.expected[np.argsort(scores, kind="stable")]
    assert (np.diff(expected) >= 0).all()
    # wherever isotonic regression has two blocks, different scores stay different
    inside = (expected > expected[0]) & (expected < expected[-1])
    assert np.unique(expected[inside]).size > 0.99 * np.unique(scores).size - 500
    assert (relevance.low <= relevance.expected).all()
    assert (relevance.expected <= relevance.high).all()


def test_probabilities_agree_with_the_expected_grade(calibrated, parts):
    relevance = calibrated.predict_relevance(parts[2])
    assert relevance.grades.tolist() == [0, 1, 2, 3, 4]
    assert (relevance.probabilities >= 0).all()
    assert np.allclose(relevance.probabilities.sum(axis=1), 1)
    assert np.allclose(relevance.probabilities @ relevance.grades, relevance.expected)
    assert np.allclose(relevance.at_least(2), relevance.probabilities[:, 2:].sum(axis=1))


def test_held_out_error_is_not_above_that_of_isotonic_regression(model, calibrated, parts):
    data, scores = parts[2], model.predict(parts[2])
    theirs = IsotonicRegression(out_of_bounds="clip").fit(model.predict(parts[1]), parts[1].y)
    # the same bins for both, as steps would make larger ones
    edges = np.quantile(scores, np.linspace(0, 1, 16)[1:-1])
    bins = np.searchsorted(edges, scores, side="right")
    errors, squares = [], []
    for predicted in (calibrated.predict_relevance(data).expected, theirs.predict(scores)):
        gaps = np.bincount(bins, predicted - data.y) / scores.size / 4
        errors.append(np.abs(gaps).sum())
        squares.append(np.mean((predicted - data.y) ** 2))
    assert errors[0] < 0.015
    assert errors[0] < errors[1] + 0.0015
    assert squares[0] < squares[1] + 1e-3
    assert calibrated.reliability(data).ece == pytest.approx(errors[0], abs=0.002)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40),
    st.integers(0, 3),
)
def test_blocks_are_those_of_isotonic_regression(pairs, extra):
    scores = np.array([float(score) for score, _ in pairs])
    hits = np.array([float(hit) for _, hit in pairs])
    weight = 1.0 + (np.arange(scores.size) + extra) % 3
    lines = isotonic(Rows(scores, hits[:, None]).observed(weight))
    steps = IsotonicRegression().fit(scores, hits, sample_weight=weight).predict(scores)
    # a block's mean is taken at its mean score
    values = np.unique(steps)
    assert np.allclose(np.unique(np.round(lines.values, 12)), np.unique(np.round(values, 12)))
    for value in values:
        block = np.abs(steps - value) < 1e-12
        centre = np.average(scores[block], weights=weight[block])
        assert lines.at(np.array([centre]))[0, 0] == pytest.approx(value)


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=12, unique=True),
    st.lists(st.floats(-2e6, 2e6), min_size=2, max_size=30),
)
def test_interpolation_never_falls(knots, x):
    knots = np.sort(np.array(knots))
    values = np.linspace(0, 0.1, knots.size) ** 2
    result = never_falling(np.sort(np.array(x)), knots, values)
    assert (np.diff(result) >= 0).all()
    assert np.allclose(result, np.interp(np.sort(x), knots, values), atol=1e-12)


def test_sigmoids_are_the_maximum_of_the_likelihood():
    random = np.random.default_rng(5)
    scores = random.normal(size=4000)
    grades = (scores[:, None] * 1.5 + [0.5, -1.0] > random.logistic(size=(4000, 1))).sum(axis=1)
    targets = (grades[:, None] >= [1, 2]).astype(float)
    curves = sigmoid(Rows(scores, targets).observed(np.ones(4000)))
    assert curves.slope == pytest.approx(1.5, abs=0.1)
    assert curves.intercepts == pytest.approx([0.5, -1.0], abs=0.1)
    # the gradient of the likelihood is zero there, but for one row's shrinking
    residual = targets - curves.at(scores)
    assert np.abs(residual.sum(axis=0)).max() < 1
    assert abs((residual * scores[:, None]).sum()) < 3


def test_scores_against_the_order_get_a_constant(parts):
    scores, targets = np.arange(10.0), (np.arange(10) < 5).astype(float)[:, None]
    for learn in (isotonic, sigmoid):
        curves = learn(Rows(scores, targets).observed(np.ones(10)))
        assert curves.at(scores)[:, 0] == pytest.approx(np.full(10, 0.5))


def test_intervals_hold_the_truth(model):
    """Curves learned from many queries are inside the intervals of few, in about 95 %."""
    truth = rg.calibrate(model, rg.make_web(3000, 20, 10, seed=99), samples=20)
    scores = np.quantile(model.predict(rg.make_web(50, 20, 10, seed=98)), np.linspace(0.1, 0.9, 9))
    inside = []
    for seed in range(12):
        few = rg.calibrate(model, rg.make_web(80, 20, 10, seed=200 + seed), samples=60)
        relevance = few.relevance_of(scores)
        right = truth.relevance_of(scores).expected
        inside.append((relevance.low <= right) & (right <= relevance.high))
    assert 0.85 < np.mean(inside) <= 1.0


def test_retraining_makes_training_data_usable(model, parts):
    naive = rg.calibrate(model, parts[0], samples=20).reliability(parts[2]).ece
    honest = rg.calibrate(model, parts[0], retrain=True, samples=20).reliability(parts[2]).ece
    assert honest < naive


def test_weights_count_as_rows(model, parts):
    data = parts[1]
    twice = rg.QueryDataset(data.X, data.y, data.qid, weight=np.full(data.n_rows, 2.0))
    plain, doubled = (rg.calibrate(model, d, samples=20) for d in (data, twice))
    scores = np.linspace(-3, 3, 50)
    assert doubled.relevance_of(scores).expected == pytest.approx(
        plain.relevance_of(scores).expected
    )


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e29])
def test_only_ratios_of_weights_matter(model, parts, method, factor):
    data, scores = parts[1], np.linspace(-3, 3, 50)
    scaled = rg.QueryDataset(data.X, data.y, data.qid, weight=np.full(data.n_rows, factor))
    plain, other = (rg.calibrate(model, d, method=method, samples=20) for d in (data, scaled))
    assert np.allclose(
        other.relevance_of(scores).expected, plain.relevance_of(scores).expected, atol=1e-9
    )


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_rows_of_weight_0_count_nothing(model, parts, method, tmp_path):
    data, random = parts[1], np.random.default_rng(2)
    query = np.asarray(data.query_of_row)
    some = query < 40
    weight = np.where(some, 1.0, 0.0)
    weight[model.predict(data) < -0.2] = 0.0  # whole bins of scores
    labels = np.where(weight > 0, data.y, random.integers(0, 9, data.n_rows))
    weighted = rg.QueryDataset(data.X, labels, data.qid, weight=weight)
    kept = weight > 0
    alone = rg.QueryDataset(data.X[kept], data.y[kept], query[kept])
    pair = [rg.calibrate(model, d, method=method, samples=20) for d in (weighted, alone)]
    scores = np.linspace(-3, 3, 50)
    first, second = (calibrated.relevance_of(scores).expected for calibrated in pair)
    assert np.allclose(first, second, atol=1e-9)
    assert np.isfinite(pair[0].calibration_error_)
    pair[0].save(tmp_path / "weighted.rg")
    assert rg.load(tmp_path / "weighted.rg").calibration_error_ == pair[0].calibration_error_
    one = rg.QueryDataset(data.X, data.y, data.qid, weight=(query == 0) * 1.0)
    with pytest.raises(rg.DataError, match=r"whose weight is not 0\. Got 1"):
        rg.calibrate(model, one, method=method)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_scores_of_any_size(model, parts, method):
    calibrated = rg.calibrate(model, parts[1], method=method, samples=20)
    ends = calibrated.relevance_of(np.array([-np.inf, -1e308, 1e308, np.inf])).expected
    assert ends[0] == ends[1] < ends[2] == ends[3]
    with pytest.raises(rg.DataError, match=r"numbers\. Got NaN"):
        calibrated.relevance_of(np.array([0.0, np.nan]))
    flat = Sigmoids(0.0, np.array([0.0]))
    assert flat.at(np.array([-np.inf, np.inf])).tolist() == [[0.5], [0.5]]
    random = np.random.default_rng(1)
    scores = random.normal(size=200)
    targets = (scores > random.normal(size=200)).astype(float)[:, None]
    learn = {"isotonic": isotonic, "sigmoid": sigmoid}[method]
    expected = learn(Rows(scores, targets).observed(np.ones(200))).at(scores)
    for size in (1e-100, 1e100):
        curves = learn(Rows(scores * size, targets).observed(np.ones(200)))
        assert curves.at(scores * size) == pytest.approx(expected, rel=1e-9)
    huge = model.truncated(1)
    huge.ensemble_ = replace(huge.ensemble_, value=huge.ensemble_.value * 1e160)
    with pytest.raises(rg.DataError, match="needs scores between -1e\\+150 and 1e\\+150"):
        rg.calibrate(huge, parts[1], method=method)


def test_sums_of_expected_grades_are_the_observed_ones():
    """The sum of the thresholds' likelihoods keeps the mean grade, also where it is wrong."""
    random = np.random.default_rng(8)
    scores = random.normal(size=2000)
    grades = np.where(scores > 0, random.integers(0, 3, 2000), random.integers(0, 2, 2000))
    targets = (grades[:, None] >= [1, 2]).astype(float)
    curves = sigmoid(Rows(scores, targets).observed(np.ones(2000)))
    assert curves.at(scores).mean(axis=0) == pytest.approx(targets.mean(axis=0), abs=1e-7)
    assert (np.diff(curves.intercepts) < 0).all()


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_the_file_keeps_everything(model, parts, method, tmp_path):
    before = rg.calibrate(model, parts[1], method=method, samples=20)
    before.save(tmp_path / "calibrated.rg")
    after = rg.load(tmp_path / "calibrated.rg")
    for name in ("expected", "low", "high", "probabilities"):
        pair = [getattr(m.predict_relevance(parts[2]), name) for m in (before, after)]
        assert np.array_equal(*pair)
    assert after.calibration_error_ == before.calibration_error_
    assert str(after.reliability_) == str(before.reliability_)
    assert "calibrated" in after.summary()
    assert rg.explain(after, parts[2]).contributions.shape[1] == 10
    assert after.scorer().predict(parts[2].X[:5]) == pytest.approx(after.predict(parts[2].X[:5]))


def test_soft_labels_give_a_mean_without_grades(model, parts):
    data = parts[1]
    soft = rg.QueryDataset(data.X, data.y + np.arange(data.n_rows) / data.n_rows, data.qid)
    relevance = rg.calibrate(model, soft, samples=20).predict_relevance(parts[2])
    assert relevance.grades is None
    assert relevance.probabilities is None
    assert 0 <= relevance.expected.min() < relevance.expected.max() <= 5
    with pytest.raises(rg.ParameterError, match="soft labels: use `expected`"):
        relevance.at_least(1)
    with pytest.raises(rg.ParameterError, match="needs grades, and the labels have"):
        rg.calibrate(model, soft, method="sigmoid")


def test_what_cannot_be_calibrated_is_refused(model, parts):
    with pytest.raises(rg.ParameterError, match="must be a trained ranker"):
        rg.calibrate("nothing.rg", parts[1])
    equal = rg.QueryDataset(parts[1].X, np.ones(parts[1].n_rows), parts[1].qid)
    with pytest.raises(rg.DataError, match=r"at least two grades\. All labels are 1"):
        rg.calibrate(model, equal)
    with pytest.raises(rg.DataError, match=r"at least 5 queries for folds=5.*\. Got 3"):
        rg.calibrate(model, parts[1].select(np.arange(3)))
    with pytest.raises(rg.ParameterError, match="cannot be trained from data alone"):
        rg.calibrate(rg.CombinedRanker([model, model]).fit(parts[0]), parts[0], retrain=True)


def test_relevance_is_shown_and_is_a_table():
    data = rg.make_web(30, n_docs=10, n_features=4, seed=1)
    model = rg.calibrate(rg.LambdaMART(n_trees=5).fit(data), data)
    relevance = model.predict_relevance(data)
    assert repr(relevance) == f"Relevance({data.n_rows} documents, 5 grades)"
    assert len(str(relevance).splitlines()) == 13  # two headings, ten documents, the rest
    assert f"{data.n_rows - 10} other documents" in str(relevance)
    assert f"{relevance.expected[0]:.4f}" in relevance._repr_html_()
    table = relevance.to_pandas()
    assert list(table) == ["expected", "low", "high", *(f"P(grade={g})" for g in range(5))]
    np.testing.assert_allclose(table.iloc[:, 3:].sum(axis=1), 1.0)
    assert "relevance" in rg.rank(model, data)._repr_html_()
