"""Combinations of rankers: results, predictions, files, refusals."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import rankgrove as rg


def mean(model, data, measure="ndcg@5"):
    return rg.evaluate(model, data, measure).mean[measure]


@pytest.fixture(scope="module")
def vali():
    return rg.make_artificial(40, seed=2, n_docs=20)


@pytest.fixture(scope="module")
def rankers():
    train = rg.make_artificial(60, seed=1, n_docs=20)
    return [
        rg.LambdaMART("ndcg@5", n_trees=20, n_leaves=8).fit(train),
        rg.LambdaMART("map", n_trees=12, n_leaves=4).fit(train),
        rg.LambdaMART("pairs", n_trees=8, learning_rate=0.3).fit(train),
    ]


# -- two rankers ----------------------------------------------------------------------------------


def test_two_rankers(rankers, vali, tmp_path):
    a, b = rankers[:2]
    best = rg.optimal_combination(a, b, vali, "ndcg@5")
    assert best.values == (mean(a, vali), mean(b, vali))
    assert (best.curve.at_low, best.curve.at_high) == best.values
    assert best.value == mean(best.ranker, vali) == mean(best.predict(vali), vali)
    assert best.value >= best.curve.value.max() - 1e-12
    grid = [
        mean((1 - x) * a.predict(vali) + x * b.predict(vali), vali) for x in np.linspace(0, 1, 50)
    ]
    assert best.value >= max(grid)
    best.save(tmp_path / "best.rg")
    loaded = rg.load(tmp_path / "best.rg")
    assert isinstance(loaded, rg.CombinedRanker)
    assert np.array_equal(loaded.predict(vali), best.predict(vali))
    assert np.array_equal(loaded.predict(vali.X), best.predict(vali, n_threads=1))
    assert loaded.value_ == best.value
    assert loaded.score(vali) == best.value
    text = str(best)
    assert f"{best.value:.4f}" in text
    assert "LambdaMART" in text
    assert f"{best.n_crossings:,}" in text
    assert repr(best) == text


def test_rows_in_any_order(rankers, vali):
    a, b = (one.predict(vali) for one in rankers[:2])
    best = rg.optimal_combination(a, b, vali, "map")
    mixed = np.random.default_rng(0).permutation(vali.n_rows)
    shuffled = rg.QueryDataset(vali.X[mixed], vali.y[mixed], qid=vali.qid[mixed])
    again = rg.optimal_combination(a[mixed], b[mixed], shuffled, "map")
    assert (again.alpha, again.value) == (best.alpha, best.value)
    assert np.array_equal(again.curve.value, best.curve.value)


def test_scores_instead_of_rankers(rankers, vali, tmp_path):
    a, b = rankers[:2]
    both = rg.optimal_combination(a, b, vali, "ndcg@5")
    scores = [one.predict(vali) for one in (a, b)]
    best = rg.optimal_combination(*scores, vali, "ndcg@5")
    assert (best.alpha, best.value, best.ranker) == (both.alpha, both.value, None)
    assert np.array_equal(best.predict(scores), both.predict(vali))
    with pytest.raises(rg.DataError, match=r"takes 2 arrays of scores.*scores 1, scores 2"):
        best.predict(vali)
    with pytest.raises(rg.ParameterError, match="no ranker to save"):
        best.save(tmp_path / "no.rg")


def test_the_additive_form(rankers, vali):
    a, b = rankers[:2]
    best = rg.optimal_combination(a, b, vali, "ndcg@5", form="additive", bounds=(0.1, 5))
    assert 0.1 <= best.alpha <= 5
    assert np.array_equal(best.predict(vali), a.predict(vali) + best.alpha * b.predict(vali))
    assert best.values == (mean(a, vali), mean(b, vali))
    assert best.curve.at_low == mean(a.predict(vali) + 0.1 * b.predict(vali), vali)
    # On all positive weights both forms go through the same rankings.
    convex = rg.optimal_combination(a, b, vali, "ndcg@5")
    wide = rg.optimal_combination(a, b, vali, "ndcg@5", form="additive", bounds=(0, 1e6))
    assert wide.value == pytest.approx(convex.value, abs=1e-12)


def test_convention_and_curve_file(rankers, vali, tmp_path):
    best = rg.optimal_combination(*rankers[:2], vali, "ndcg@5", convention="letor")
    assert str(best.measure) == "ndcg@5[letor]"
    lines = best.to_csv(tmp_path / "curve.csv").splitlines()
    assert (tmp_path / "curve.csv").read_text().splitlines() == lines
    assert lines[0] == "from,to,value"
    assert lines[1] == f"0.0,0.0,{best.curve.at_low!r}"
    assert len(lines) == best.curve.value.size + 3
    values = [float(line.split(",")[2]) for line in lines[2:-1]]
    assert values == best.curve.value.tolist()


def test_models_of_others(rankers, vali, tmp_path):
    linear = LinearRegression().fit(vali.X, vali.y)
    best = rg.optimal_combination(rankers[0], linear, vali, "ndcg@5")
    assert best.value == mean(best.ranker, vali)
    assert np.array_equal(best.predict(vali), best.predict(vali.X))
    with pytest.raises(rg.ParameterError, match="LinearRegression cannot be saved"):
        best.save(tmp_path / "no.rg")


def test_refusals(rankers, vali):
    a, b = rankers[:2]
    with pytest.raises(rg.ParameterError, match="given for the additive form"):
        rg.optimal_combination(a, b, vali, "map", form="additive")
    with pytest.raises(rg.ParameterError, match="a pair"):
        rg.optimal_combination(a, b, vali, "map", bounds=3)
    with pytest.raises(rg.ParameterError, match="between 0 and 1"):
        rg.optimal_combination(a, b, vali, "map", bounds=(0, 2))
    with pytest.raises(rg.DataError, match="needs a QueryDataset"):
        rg.optimal_combination(a, b, vali.X, "map")
    with pytest.raises(rg.DataError, match="must be finite"):
        rg.optimal_combination(a, np.full(vali.n_rows, -np.inf), vali, "map")
    with pytest.raises(rg.DataError, match="one number per row"):
        rg.optimal_combination(a, np.ones(3), vali, "map")
    with pytest.raises(rg.ParameterError, match="one per ranker"):
        rg.optimal_combination(a, b, vali, "map", names=["a"])
    empty = rg.QueryDataset(vali.X, np.zeros(vali.n_rows), qid=vali.qid)
    with pytest.raises(rg.DataError, match="leaves out every query"):
        rg.optimal_combination(a, b, empty, "map")
    with pytest.raises(rg.ParameterError, match="at least two"):
        rg.interpolate([a], vali, "map")
    with pytest.raises(rg.ParameterError, match="'cyclic', 'powell'"):
        rg.interpolate([a, b], vali, "map", method="grid")


# -- several rankers ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["cyclic", "powell"])
def test_several_rankers(rankers, vali, method, tmp_path):
    found = rg.interpolate(rankers, vali, "ndcg@5", method)
    assert found.values == tuple(mean(one, vali) for one in rankers)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.min() >= 0.0
    assert found.value == mean(found.ranker, vali) == found.history[-1]
    assert all(after >= before for before, after in itertools.pairwise(found.history))
    assert found.value >= max(found.values)
    found.save(tmp_path / "several.rg")
    assert np.array_equal(rg.load(tmp_path / "several.rg").predict(vali), found.predict(vali))
    columns = [one.predict(vali) for one in rankers]
    again = rg.interpolate(columns, vali, "ndcg@5", method, n_threads=1)
    assert np.array_equal(again.weights, found.weights)
    assert np.array_equal(again.predict(columns), found.predict(vali))
    assert f"combined ({method})" in str(found)


@pytest.mark.parametrize("method", ["cyclic", "powell"])
def test_the_search_gets_ahead_of_where_it_starts(method):
    # One good ranker, one that is weak but of use, one of no use: even weights are behind the good
    # one alone, and the best weights ahead of it.
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 3, 3000) * 1.0
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(300), 10))
    columns = [labels + noise * rng.normal(size=3000) for noise in (1.0, 2.0)]
    columns.append(rng.normal(size=3000))
    found = rg.interpolate(columns, data, "ndcg", method)
    even = mean(np.sum([column / column.std() for column in columns], axis=0), data, "ndcg")
    assert found.value > max(even, *found.values) + 0.008
    assert found.value == mean(found.predict(columns), data, "ndcg")
    assert found.weights[0] > 2 * found.weights[1] > 4 * found.weights[2]


def test_cyclic_of_two_is_the_exact_combination(rankers, vali):
    best = rg.optimal_combination(*rankers[:2], vali, "ndcg@5")
    found = rg.interpolate(rankers[:2], vali, "ndcg@5")
    assert found.value == pytest.approx(best.value, abs=1e-12)


def test_scales_do_not_matter(rankers, vali):
    columns = [one.predict(vali) for one in rankers]
    scaled = [columns[0] * 1e-6, columns[1] * 1e5, columns[2]]
    for method in ("cyclic", "powell"):
        plain = rg.interpolate(columns, vali, "ndcg@5", method)
        other = rg.interpolate(scaled, vali, "ndcg@5", method)
        assert other.value == pytest.approx(plain.value, abs=0.005)
    constant = [columns[0], np.zeros(vali.n_rows)]
    for method in ("cyclic", "powell"):
        assert rg.interpolate(constant, vali, "ndcg@5", method).value >= mean(columns[0], vali)


def test_the_ranker_of_several(rankers, vali):
    ranker = rg.CombinedRanker(rankers, "ndcg@5", rounds=2)
    with pytest.raises(NotFittedError):
        ranker.predict(vali)
    ranker.fit(vali.X, vali.y, qid=vali.qid)
    assert ranker.value_ == ranker.score(vali) == rg.interpolate(rankers, vali, "ndcg@5").value
    copied = clone(ranker)
    assert copied.rankers == ranker.rankers
    assert not hasattr(copied, "weights_")
    assert np.array_equal(copied.fit(vali).weights_, ranker.weights_)
    with pytest.raises(rg.DataError, match="50 features"):
        ranker.predict(vali.X[:, :3])


def test_combinations_nest(rankers, vali, tmp_path):
    inner = rg.optimal_combination(*rankers[:2], vali, "ndcg@5").ranker
    outer = rg.optimal_combination(inner, rankers[2], vali, "ndcg@5")
    outer.save(tmp_path / "nested.rg")
    assert np.array_equal(rg.load(tmp_path / "nested.rg").predict(vali), outer.predict(vali))


def test_model_files_of_rankers(rankers, vali, tmp_path):
    paths = [tmp_path / "0.rg", str(tmp_path / "1.rg")]
    for one, path in zip(rankers, paths, strict=False):
        one.save(path)
    ranker = rg.CombinedRanker(paths, "ndcg@5").fit(vali)
    best = rg.optimal_combination(*paths, vali, "ndcg@5")
    several = rg.interpolate(paths, vali, "ndcg@5")
    refined = rg.refine_weights(paths[0], vali, "ndcg@5", rounds=1)
    for path in paths:
        Path(path).unlink()  # they were read
    expected = rg.CombinedRanker(rankers[:2], "ndcg@5").fit(vali)
    assert np.array_equal(ranker.predict(vali), expected.predict(vali))
    assert ranker.rankers is paths
    ranker.save(tmp_path / "both.rg")
    assert np.array_equal(rg.load(tmp_path / "both.rg").predict(vali), expected.predict(vali))
    exact = rg.optimal_combination(*rankers[:2], vali, "ndcg@5")
    assert (best.alpha, best.names) == (exact.alpha, ("LambdaMART", "LambdaMART"))
    assert np.array_equal(best.predict(vali), exact.predict(vali))
    assert np.array_equal(several.predict(vali), expected.predict(vali))
    weights = rg.refine_weights(rankers[0], vali, "ndcg@5", rounds=1).weights
    assert np.array_equal(refined.weights, weights)
    gone = "and there is no such file. Got"
    with pytest.raises(rg.ParameterError, match=gone):
        rg.CombinedRanker(paths).fit(vali)
    with pytest.raises(rg.ParameterError, match=f"The 'b' parameter of .*{gone}"):
        rg.optimal_combination(rankers[0], "b.rg", vali, "ndcg@5")
    with pytest.raises(rg.ParameterError, match=gone):
        rg.interpolate([rankers[0], "b.rg"], vali, "ndcg@5")
    with pytest.raises(rg.ParameterError, match=gone):
        rg.refine_weights("b.rg", vali, "ndcg@5")


# -- the trees of one ranker ----------------------------------------------------------------------


def test_refined_weights(rankers, vali):
    model = rankers[0]
    steps = []
    found = rg.refine_weights(
        model, vali, "ndcg@5", rounds=3, callback=lambda *step: steps.append(step)
    )
    assert found.history[0] == mean(model, vali)
    assert all(after >= before for before, after in itertools.pairwise(found.history))
    assert found.value == found.history[-1] == mean(found.ranker, vali) > found.history[0]
    assert len(found.history) - 1 == len(steps) == found.rounds * model.ensemble_.n_trees
    assert found.weights.shape == (model.ensemble_.n_trees,)
    assert ((found.weights >= 0) & (found.weights <= 10)).all()
    # The ranker is the sum of the weighted trees, and the old one is what it was.
    total = np.zeros(vali.n_rows)
    previous = model.truncated(0).predict(vali)
    for t, weight in enumerate(found.weights, 1):
        so_far = model.truncated(t).predict(vali)
        total += weight * (so_far - previous)
        previous = so_far
    np.testing.assert_allclose(found.ranker.predict(vali), total, atol=1e-12)
    assert mean(model, vali) == found.history[0]
    # Trees walked anew give the same.
    again = rg.refine_weights(model, vali, "ndcg@5", rounds=3, memory=0, n_threads=1)
    assert np.array_equal(again.weights, found.weights)
    assert again.history == found.history


def test_refining_ends_when_nothing_rises(rankers, vali):
    model = rankers[1]
    found = rg.refine_weights(model, vali, "map", rounds=50)
    assert found.rounds < 50
    per_round = found.history[:: model.ensemble_.n_trees]
    assert per_round[-1] == per_round[-2]
    last = rg.refine_weights(found.ranker, vali, "map", rounds=2)
    assert last.value == pytest.approx(found.value, abs=1e-3)


def test_refining_refuses(rankers, vali):
    both = rg.optimal_combination(*rankers[:2], vali, "ndcg@5").ranker
    with pytest.raises(rg.ParameterError, match="made of trees"):
        rg.refine_weights(both, vali, "map")
    with pytest.raises(rg.ParameterError, match="'rounds'"):
        rg.refine_weights(rankers[0], vali, "map", rounds=0)
