"""Rankers with monotone and interaction constraints: no violations, wherever trees are boosted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.errors import ParameterError
from tests.command import run_here
from tests.growth.test_constraints import branches, check_order

FEW = {"n_trees": 5, "n_leaves": 8, "min_leaf": 3, "n_threads": 1}
RANKERS = {
    "lambdamart": rg.LambdaMART,
    "mart": rg.MART,
    "mcrank": lambda **given: rg.McRank("ordinal", **given),
    "gbrank": rg.GBRank,
    "forest": rg.RandomForest,
}
NAMES = ["bm25", "price", "brand", "pagerank", "title", "clicks"]


def made_up(seed=0, missing=0.1, n=240):
    """Return data whose labels rise with bm25, fall with price, and depend on all else too."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, 6)).astype(np.float32) + rng.normal(size=(n, 6)).astype(np.float32)
    signal = X[:, 0] - X[:, 1] + np.abs(X[:, 2]) + X[:, 3] * X[:, 4] / 3 + 2 * rng.normal(size=n)
    y = np.digitize(signal, [0.0, 2.0, 5.0]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return rg.QueryDataset(
        X,
        y,
        np.repeat(np.arange(n // 12), 12),
        weight=rng.random(n) + 0.2,
        feature_names=NAMES,
    )


DATA = made_up()


def falls(model, column, direction, seed=0, n_pairs=400):
    """Return by how much scores go the wrong way, on random pairs and on all grid points.

    The other features have random values, or lie on the thresholds of the model.
    """
    rng = np.random.default_rng(seed)
    trees = model.ensemble_
    grids = []
    for j in range(trees.n_features):
        cuts = trees.threshold[(trees.feature == j) & np.isfinite(trees.threshold)]
        points = np.unique(np.concatenate([cuts, np.nextafter(cuts, np.float32(np.inf))]))
        grids.append(np.array([-np.inf, *points, np.inf], np.float32))
    rows = np.stack([rng.choice(grid, 40) for grid in grids], axis=1)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    grid = grids[column]
    X = np.repeat(rows, grid.size, axis=0)
    X[:, column] = np.tile(grid, len(rows))
    steps = direction * np.diff(model.predict(X).reshape(len(rows), grid.size), axis=1)
    worst = max(0.0, -steps.min())
    low = (rng.normal(size=(n_pairs, trees.n_features)) * 4).astype(np.float32)
    low[rng.random(low.shape) < 0.1] = np.nan
    high = low.copy()
    low[:, column], high[:, column] = np.sort(rng.normal(size=(2, n_pairs)) * 4, axis=0)
    return max(worst, -(direction * (model.predict(high) - model.predict(low))).min())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(RANKERS)),
    growth=st.sampled_from(["leafwise", "symmetric"]),
    split=st.sampled_from(["mse", "newton"]),
    l2=st.sampled_from([0.0, 3.0]),
    feature_fraction=st.sampled_from([1.0, 0.5]),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_no_violation(seed, name, growth, split, l2, feature_fraction, missing):
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(6)[: rng.integers(1, 5)]
    directions = {int(j): int(rng.choice([-1, 1])) for j in chosen}
    rules = {"growth": growth, "split": split, "l2": l2, "feature_fraction": feature_fraction}
    ranker = RANKERS[name](**FEW, monotone={NAMES[j]: d for j, d in directions.items()})
    ranker.set_params(**{k: v for k, v in rules.items() if k in ranker.get_params()})
    model = ranker.fit(made_up(seed, missing))
    for t in range(model.ensemble_.n_trees):
        check_order(model.ensemble_.tree(t), directions)
    for column, direction in directions.items():
        wrong = falls(model, column, direction, seed)
        # an expected label is rounded sums of probabilities: its columns are in order to the bit
        assert wrong <= (1e-12 if name == "mcrank" else 0.0)


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_without_the_constraint_there_are_violations(name):
    """So the tests above test something; of the same trees, a constraint makes others."""
    given = FEW | {"n_trees": 10}
    assert falls(RANKERS[name](**given).fit(DATA), 4, -1) > 0.01
    monotone = RANKERS[name](**given, monotone={"title": -1}).fit(DATA)
    assert falls(monotone, 4, -1) < 1e-12
    two = RANKERS[name](**given, monotone={"title": -1}).set_params(n_threads=2).fit(DATA)
    assert np.array_equal(two.predict(DATA), monotone.predict(DATA))


@pytest.mark.parametrize("step", ["newton", "optimal-newton"])
def test_steps_keep_the_order(step):
    given = {"step": step, "monotone": {"bm25": -1, "pagerank": -1}}
    model = rg.LambdaMART(**FEW, **given).fit(DATA)
    assert min(model.steps_) > 0.0
    assert falls(model, 0, -1) == falls(model, 3, -1) == 0.0


def test_true_constraints_cost_little():
    """And where there is noise, they help: the error on other data does not rise."""
    train, test = made_up(1, 0.0, 1200), made_up(2, 0.0, 1200)
    given = FEW | {"n_trees": 60}
    free = rg.MART(**given).fit(train)
    model = rg.MART(**given, monotone={"bm25": 1, "price": -1}).fit(train)

    def error(ranker, data):
        return float(((ranker.predict(data) - data.y) ** 2).mean())

    assert error(free, train) < error(model, train) < 1.15 * error(free, train)
    assert error(model, test) < 1.02 * error(free, test)
    measure = "ndcg@10"
    ours, theirs = (rg.evaluate(r, test, measure).mean[measure] for r in (model, free))
    assert ours > theirs - 0.01


@pytest.mark.parametrize("growth", ["leafwise", "symmetric"])
@pytest.mark.parametrize("name", ["lambdamart", "mart", "mcrank", "gbrank"])
def test_no_branch_mixes_groups(name, growth):
    groups = [["bm25", "price"], [4, "title", "price"]]
    model = RANKERS[name](**FEW, growth=growth, interactions=groups).fit(DATA)
    allowed = [{0, 1}, {3, 4, 1}]
    trees = [model.ensemble_.tree(t) for t in range(model.ensemble_.n_trees)]
    seen = [branch for tree in trees for branch in branches(tree)]
    assert all(len(b) < 2 or any(b <= group for group in allowed) for b in seen)
    assert any(len(b) > 1 for b in seen)


def test_a_forest_of_single_features():
    model = rg.RandomForest(**FEW, interactions=[]).fit(DATA)
    trees = [model.ensemble_.tree(t) for t in range(model.ensemble_.n_trees)]
    assert all(len(branch) == 1 for tree in trees for branch in branches(tree))
    assert max(tree.depth() for tree in trees) > 1


def test_both_constraints_at_once():
    given = {"monotone": {"bm25": 1, "price": -1}, "interactions": [["bm25", "price"]]}
    model = rg.LambdaMART(**FEW, **given).fit(DATA)
    assert falls(model, 0, 1) == falls(model, 1, -1) == 0.0
    trees = [model.ensemble_.tree(t) for t in range(model.ensemble_.n_trees)]
    assert all(len(b) < 2 or b == {0, 1} for tree in trees for b in branches(tree))


# -- parameters ------------------------------------------------------------------------------------


def test_numbers_are_names_and_zero_is_nothing():
    by_name = rg.MART(**FEW, monotone={"price": -1, "title": 0}).fit(DATA)
    for monotone in ({2: -1}, {"2": -1}, {np.int64(2): np.int8(-1)}):
        by_number = rg.MART(**FEW, monotone=monotone).fit(DATA)
        assert np.array_equal(by_number.predict(DATA), by_name.predict(DATA))
    nothing = rg.MART(**FEW, monotone={"price": 0}, interactions=None).fit(DATA)
    assert np.array_equal(nothing.predict(DATA), rg.MART(**FEW).fit(DATA).predict(DATA))


def test_files_keep_the_parameters(tmp_path):
    given = {"monotone": {"bm25": 1, 2: -1}, "interactions": [["bm25", 2], (3, "title")]}
    model = rg.LambdaMART(**FEW, **given).fit(DATA)
    model.save(tmp_path / "model.rg")
    loaded = rg.load(tmp_path / "model.rg")
    assert loaded.monotone == {"bm25": 1, "2": -1}
    assert loaded.interactions == (["bm25", 2], [3, "title"])
    again = loaded.set_params(n_threads=1).fit(DATA)
    assert np.array_equal(again.predict(DATA), model.predict(DATA))


@pytest.mark.parametrize("to", ["lightgbm", "xgboost"])
def test_exported_models_keep_the_order(to, tmp_path):
    model = rg.LambdaMART(**FEW, monotone={"bm25": -1}).fit(DATA)
    rg.convert(model, tmp_path / "model.json", to=to)
    assert falls(rg.load(tmp_path / "model.json"), 0, -1) == 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"monotone": {"prize": -1}}, r"'monotone'.*did you mean 'price'.*'prize'"),
        ({"monotone": {7: 1}}, r"'monotone'.*numbered 1 to 6.* 7 "),
        ({"monotone": {0: 1}}, r"'monotone'.*1-based number.* 0 "),
        ({"monotone": {"price": 2}}, r"'monotone'.*-1, 0 or 1 for the feature 'price'.* 2 "),
        ({"monotone": {"price": "up"}}, r"-1, 0 or 1 for the feature 'price'.*'up'"),
        ({"monotone": {"price": True}}, r"-1, 0 or 1 for the feature 'price'.*True"),
        ({"monotone": {"price": 1, 2: 1}}, r"'monotone'.*different features.* 2 "),
        ({"monotone": ["price"]}, r"'monotone'.*dict of features.*\['price'\]"),
        ({"interactions": [["price"]]}, r"'interactions'.*at least two.*alone.*\['price'\]"),
        ({"interactions": ["price"]}, r"'interactions'.*list of groups.*\['price'\]"),
        ({"interactions": "price"}, r"'interactions'.*list of groups.*'price'"),
        ({"interactions": [["price", 2]]}, r"'interactions'.*different features"),
        ({"interactions": [["price", "tittle"]]}, r"'interactions'.*did you mean 'title'"),
        ({"interactions": [["price", 1.5]]}, r"'interactions'.*1-based number.*1.5"),
        ({"monotone_constraints": {"price": 1}}, r"monotone_constraints.*did you mean 'monotone'"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises((ParameterError, ValueError), match=message):
        rg.LambdaMART(**FEW).set_params(**given).fit(DATA)


def test_scores_that_have_no_order_are_refused():
    with pytest.raises(ParameterError, match=r"'form'.*'ordinal' with monotone.*'classes'"):
        rg.McRank(**FEW, monotone={"price": 1}).fit(DATA)
    with pytest.raises(ParameterError, match=r"'step'.*'optimal-newton' with monotone.*'optimal'"):
        rg.LambdaMART(**FEW, step="optimal", monotone={"price": 1}).fit(DATA)
    rg.McRank(**FEW, monotone={"price": 0}).fit(DATA)


@pytest.mark.parametrize(
    ("monotone", "interactions"),
    [
        ('{"f1": -1, "5": 1}', '[["f1", "f2"], ["f3", 5]]'),  # JSON
        ("{f1 = -1, 5 = 1}", "[['f1', 'f2'], ['f3', 5]]"),  # TOML
    ],
)
def test_the_command_line_sets_them(tmp_path, monotone, interactions):
    rg.write_letor(DATA, tmp_path / "train.txt")
    settings = [f"monotone={monotone}", f"interactions={interactions}", "n_trees=2"]
    words = [word for setting in settings for word in ("--set", setting)]
    run_here("train", str(tmp_path / "train.txt"), "--out", str(tmp_path / "m.rg"), *words)
    model = rg.load(tmp_path / "m.rg")
    assert model.monotone == {"f1": -1, "5": 1}
    assert model.interactions == (["f1", "f2"], ["f3", 5])
    assert falls(model, 0, -1) == falls(model, 4, 1) == 0.0


def test_config_files_hold_them(tmp_path):
    from rankgrove.cli.parameters import parameters, write_toml

    given = {"monotone": {"a b": -1}, "interactions": (("a b", 2), ("c", "d"))}
    write_toml(tmp_path / "best.toml", given)
    read = parameters(tmp_path / "best.toml", [])
    assert read == {"monotone": {"a b": -1}, "interactions": (["a b", 2], ["c", "d"])}
