"""RankLib's forests, weights and stumps and QuickRank's trees, by mirrored evaluators."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg
from rankgrove.formats.write import Labels, encode
from tests.formats.made import random_ensemble
from tests.reference import formats as mirrored

HEADS = {
    "Coordinate Ascent": "## Restart = 5\n## MaxIteration = 25\n## Slack = 0.001\n",
    "AdaRank": "## Iteration = 500\n## Train with enqueue: Yes\n",
    "Linear Regression": "## Lambda = 1.0E-10\n",
    "RankBoost": "## Iteration = 300\n## No. of threshold candidates = 10\n",
    "Random Forests": "## No. of bags = 3\n## Sub-sampling = 1.0\n\n",
}


def rows(n_features=5, n=400):
    rng = np.random.default_rng(7)
    made = (rng.normal(size=(n, n_features)) * 10.0 ** rng.integers(-3, 4, n_features)).astype("f4")
    made[rng.random(made.shape) < 0.1] = np.nan
    made[rng.random(made.shape) < 0.2] = 0.0
    return made


def loaded(kind, body, tmp_path):
    path = tmp_path / "model.txt"
    path.write_text(f"## {kind}\n{HEADS[kind]}{body}")
    return rg.load(path)


def stays_itself(model, X, tmp_path):
    """Saved and read again it is the same, and more columns do not matter."""
    scores = model.predict(X)
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    np.testing.assert_array_equal(again.predict(X), scores)
    assert repr(again) == repr(model)
    assert again.summary() == model.summary()
    np.testing.assert_array_equal(again.predict(np.hstack([X, X])), scores)
    filled = np.nan_to_num(X)
    np.testing.assert_array_equal(
        model.predict(scipy.sparse.csr_matrix(filled)), model.predict(filled)
    )
    labelled = rg.QueryDataset(X, np.zeros(len(X)), np.repeat(np.arange(20), 20)[::-1])
    np.testing.assert_array_equal(model.predict(labelled), scores)


LINEAR = {
    "Coordinate Ascent": "1:0.1 3:0.30000000000000004 5:-1.0E-4",
    "AdaRank": "3:0.7 1:1.3 3:0.1 1:0.2 3:1.1E-3 # a remark",  # a feature may come again
    "Linear Regression": "0:0.30545402144173783 1:0.1 2:0.3 4:-7.5",
}


@pytest.mark.parametrize("kind", LINEAR)
def test_linear_models_score_as_in_ranklib(kind, tmp_path):
    model = loaded(kind, f"{LINEAR[kind]}\n", tmp_path)
    X = rows()
    expected = mirrored.ranklib_weights(LINEAR[kind], X)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert repr(model).startswith(f"WeightRanker(RankLib {kind}, ")
    stays_itself(model, X[:, : model.n_features_in_], tmp_path)
    # as one weight a feature, in what uses those, it is the same but for rounding
    data = rg.QueryDataset(np.nan_to_num(X), np.zeros(len(X)), np.zeros(len(X), int))
    why = rg.explain(model, data)
    np.testing.assert_allclose(
        why.contributions.sum(axis=1) + why.base, model.predict(data), rtol=1e-9, atol=1e-6
    )
    rg.convert(model, tmp_path / "solr.json", to="solr", name="m")
    own = rg.LambdaMART(n_trees=2).fit(rg.make_web(20, n_features=6, seed=1))
    both = rg.optimal_combination(model, own, rg.make_web(20, n_features=6, seed=2), "ndcg@10")
    assert np.isfinite(both.value)


def test_rankboost_scores_as_in_ranklib(tmp_path):
    X = rows()
    at = [float(X[np.isfinite(X[:, j]), j][3]) for j in range(5)]
    terms = [*enumerate(at, 1), (2, 0.1), (1, -1e-40), (3, 0.0), (2, 0.1), (4, -5.0)]
    body = " ".join(f"{j}:{t!r}:{0.1 * (k + 1)!r}" for k, (j, t) in enumerate(terms))
    model = loaded("RankBoost", body, tmp_path)
    np.testing.assert_array_equal(model.predict(X), mirrored.ranklib_stumps(body, X))
    # double thresholds meet float32 features
    edge = np.full((1, 5), np.float32(0.1))
    np.testing.assert_array_equal(model.predict(edge), mirrored.ranklib_stumps(body, edge))
    stays_itself(model, X, tmp_path)


@pytest.mark.parametrize("n_trees", [(1, 1, 1), (4, 2, 3), (3,)])
def test_forests_score_as_in_ranklib(n_trees, tmp_path):
    """The mean of the bags' float32 sums, which need not have equally many trees."""
    bags = []
    for seed, n in enumerate(n_trees):
        trees = random_ensemble(seed, n, 9)
        text = encode(trees, "ranklib", Labels("m", [], False), zero=True)[0].decode()
        text = text.partition("<ensemble>")[2].replace('weight="1.0"', 'weight="0.1"')
        bags.append(f"<ensemble>{text}")
    model = loaded("Random Forests", "\n".join(bags), tmp_path)
    X = rows(model.n_features_in_)
    expected = sum(mirrored.ranklib(bag, X) for bag in bags) / len(bags)
    np.testing.assert_array_equal(model.predict(X), expected)
    stays_itself(model, X, tmp_path)
    assert model.objective_ == "Random Forests"
    np.testing.assert_allclose(model.scorer().predict(X), expected, rtol=1e-6, atol=1e-6)


def test_quickranks_trees_are_float64(tmp_path):
    text = """<ranker>
	<info><type>LAMBDAMART</type><trees>2</trees><shrinkage>0.1</shrinkage></info>
	<ensemble>
		<tree id="1" weight="0.10000000000000001">
			<split>
				<feature>2</feature>
				<threshold>0.300000012</threshold>
				<split pos="left"><output>0.70000000000000001</output></split>
				<split pos="right"><output>-0.1</output></split>
			</split>
		</tree>
		<tree id="2" weight="0.3"><split><output>2.8999999999999999</output></split></tree>
	</ensemble>
</ranker>
"""
    (tmp_path / "m.xml").write_text(text)
    model = rg.load(tmp_path / "m.xml")
    assert repr(model) == "TreeRanker(QuickRank LAMBDAMART, 2 trees)"
    X = np.array([[0, 0.3], [0, 0.31], [0, np.nan]], np.float32)
    constant = 2.9 * 0.3
    left, right = 0.7 * 0.1 + constant, -0.1 * 0.1 + constant
    assert model.predict(X).tolist() == [left, right, left]
    (tmp_path / "w.xml").write_text(
        "<ranker><info><type>COORDASC</type></info><weights>1</weights></ranker>"
    )
    with pytest.raises(rg.ModelFileError, match=r"QuickRank's COORDASC with <weights>"):
        rg.load(tmp_path / "w.xml")


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("Coordinate Ascent", "", "no line of 'feature:weight'"),
        ("Coordinate Ascent", "0:1.0", "'feature' must be a whole number in 1"),
        ("AdaRank", "1:2:3", "no line of 'feature:weight'"),
        ("AdaRank", "1:nan", "a weight is 'nan'"),
        ("AdaRank", "1:x", "is damaged: 'x' is not a number"),
        ("Linear Regression", "99999999999:1", "must be a whole number"),
        ("RankBoost", "1:2", "no line of 'feature:threshold:weight'"),
        ("RankBoost", "1:nan:1", "not a number"),
        ("Random Forests", "", "without trees"),
        ("Random Forests", "<ensemble><tree>", "truncated: it cannot be read beyond line"),
    ],
)
def test_damaged_ones_are_refused(kind, body, message, tmp_path):
    with pytest.raises(rg.ModelFileError, match=rf"model\.txt.*{message}"):
        loaded(kind, body, tmp_path)


def test_nets_are_named(tmp_path):
    for kind in ("RankNet", "LambdaRank", "ListNet"):
        (tmp_path / "m.txt").write_text(f"## {kind}\n## Epochs = 100\n1 2\n0\n0 0 0.5\n")
        with pytest.raises(rg.ModelFileError, match=rf"{kind}', a net.*AdaRank, Linear Regression"):
            rg.load(tmp_path / "m.txt")
