"""rg.Trada and the methods it is compared with, as a user meets them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import rankgrove as rg
from rankgrove.model.store import read_model, write_model

BASE = {"n_trees": 12, "n_leaves": 6, "min_leaf": 5, "n_threads": 1}


@pytest.fixture(scope="module")
def data():
    shape = {"n_docs": 15, "n_features": 12}
    big, small = rg.make_domains(60, 20, **shape, seed=1)
    _, test = rg.make_domains(1, 30, **shape, seed=2)
    return big, small, test


@pytest.fixture(scope="module")
def base(data):
    return rg.MART(**BASE).fit(data[0])


@pytest.fixture(scope="module")
def lambdas(data):
    return rg.LambdaMART("map", **BASE).fit(data[0])


def same(a, b):
    for name, array in a.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, b.ensemble_.to_arrays()[name], err_msg=name)


@pytest.mark.parametrize("tune", ["responses", "splits"])
def test_beta_0_is_the_base_model(data, base, lambdas, tune):
    _, small, test = data
    for one in (base, lambdas):
        made = rg.Trada(one, beta=0, tune=tune).fit(small)
        np.testing.assert_array_equal(made.predict(test), one.predict(test))
        assert made.report_.unreached_share < 0.3


def test_file_clone_and_pickle(data, base, tmp_path):
    _, small, test = data
    model = rg.Trada(base, beta=3, tune="splits", trim=True, extra_trees=2, min_leaf=5).fit(small)
    model.save(tmp_path / "m.rg")
    loaded = rg.load(tmp_path / "m.rg")
    for back in (loaded, pickle.loads(pickle.dumps(model))):
        same(back, model)
        np.testing.assert_array_equal(back.predict(test), model.predict(test))
        assert back.summary() == model.summary()
        assert str(back.report_) == str(model.report_)
        assert (back.n_adapted_, back.beta_, back.steps_) == (12, 3.0, model.steps_)
    again = clone(loaded).fit(small)  # the base model is in the file
    same(again, model)
    assert clone(model).base is base
    assert model.steps_[:12] == pytest.approx([0.1] * 12)
    assert model.steps_[12:] == [0.05] * 2
    text = model.summary()
    assert "adapted from a MART of 12 trees: beta 3, splits tuned, level layer, trimmed" in text
    assert model.truncated(12).ensemble_.n_trees == 12
    assert model.truncated(5).n_adapted_ == 5


def test_threads_and_order_of_queries(data, base, lambdas):
    _, small, _ = data
    turned = small.select(np.arange(small.n_queries)[::-1])
    for one in (base, lambdas):
        settings = {"beta": 4, "tune": "splits", "extra_trees": 2, "min_leaf": 4}
        first = rg.Trada(one, **settings, n_threads=1).fit(small)
        same(rg.Trada(one, **settings, n_threads=2).fit(small), first)
        same(rg.Trada(one, **settings).fit(turned), first)


def test_objectives(data, base, lambdas):
    _, small, test = data
    auto = rg.Trada(base, beta=4).fit(small)
    same(rg.Trada(base, beta=4, objective="squared").fit(small), auto)
    by_measure = rg.Trada(base, beta=4, objective="lambdas", measure="map").fit(small)
    assert not np.array_equal(by_measure.ensemble_.value, auto.ensemble_.value)
    own = rg.Trada(lambdas, beta=4).fit(small)
    same(rg.Trada(lambdas, beta=4, objective="lambdas", measure="map").fit(small), own)
    squared = rg.Trada(lambdas, beta=4, objective="squared").fit(small)
    assert not np.array_equal(squared.ensemble_.value, own.ensemble_.value)
    two = rg.MART("logistic", relevant=2, **BASE).fit(data[0])
    assert np.isfinite(rg.Trada(two).fit(small).predict(test)).all()


def test_extra_trees_see_new_features(data, base):
    _, small, test = data
    rng = np.random.default_rng(0)

    def wide(one):  # a feature that the base model never saw tells much
        new = one.y + 0.3 * rng.standard_normal(one.n_rows)
        X = np.column_stack([np.asarray(one.X), new])
        return rg.QueryDataset(X, one.y, one.qid)

    more, more_test = wide(small), wide(test)
    model = rg.Trada(base, extra_trees=10, learning_rate=0.3).fit(more)
    assert model.n_features_in_ == 13
    assert 12 in model.ensemble_.feature[model.ensemble_.node_ptr[12] :]
    values = [
        rg.evaluate(one, more_test, "ndcg@10").mean["ndcg@10"]
        for one in (model.truncated(12), model)
    ]
    assert values[1] > values[0] + 0.05
    with pytest.raises(rg.DataError, match="trained on 12 features, the target's data has 3"):
        rg.Trada(base).fit(np.asarray(small.X)[:, :3], small.y, qid=small.qid)


def test_features_are_found_by_name(data):
    big, small, test = data
    names = [f"n{j}" for j in range(12)]
    named = [rg.QueryDataset(d.X, d.y, d.qid, feature_names=names) for d in (big, small, test)]
    order = np.random.default_rng(1).permutation(12)
    turned = [
        rg.QueryDataset(
            np.asarray(d.X)[:, order], d.y, d.qid, feature_names=[names[j] for j in order]
        )
        for d in named
    ]
    base = rg.MART(**BASE).fit(named[0])
    a = rg.Trada(base, beta=2, tune="splits").fit(named[1])
    b = rg.Trada(base, beta=2, tune="splits").fit(turned[1])
    np.testing.assert_array_equal(a.predict(named[2]), b.predict(turned[2]))
    other = rg.QueryDataset(small.X, small.y, small.qid, feature_names=[*names[:11], "n99"])
    with pytest.raises(rg.DataError, match="feature 'n11', which the target's data does not have"):
        rg.Trada(base).fit(other)


def test_beta_by_cross_validation(data, base):
    _, small, _ = data
    betas = (0.0, 3.0, 30.0)
    model = rg.Trada(base, beta="cv", betas=betas, folds=3).fit(small)
    assert tuple(model.cv_) == betas
    assert model.beta_ == max(betas, key=lambda beta: (model.cv_[beta], -beta))
    same(rg.Trada(base, beta=model.beta_).fit(small), model)
    # by plain steps
    from rankgrove.data.folds import k_fold

    values = []
    for fold in k_fold(small, 3, seed=0):
        part = rg.Trada(base, beta=3.0).fit(fold.train)
        values.append(rg.evaluate(part, fold.test, "ndcg@10").per_query["ndcg@10"])
    joined = np.concatenate(values)
    assert model.cv_[3.0] == pytest.approx(joined[~np.isnan(joined)].mean(), rel=1e-12)
    assert "of beta in cross-validation: 0: " in model.summary()


def test_validation_and_stopping(data, base):
    _, small, test = data
    model = rg.Trada(base, extra_trees=30, early_stopping=3).fit(small, valid=test)
    values = model.history_["valid"]["ndcg@10"]
    start = model.start_values_["valid"]["ndcg@10"]
    adapted = rg.Trada(base).fit(small)
    assert start == rg.evaluate(adapted, test, "ndcg@10").mean["ndcg@10"]
    assert model.best_round_ == int(np.argmax([start, *values]))
    assert model.ensemble_.n_trees == 12 + model.best_round_
    now = rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"]
    assert now == max([start, *values])
    none = rg.Trada(base).fit(small, valid=test)
    assert none.best_round_ == 0
    assert "valid ndcg@10" in none.summary()


def test_sparse_and_weighted_data(data, base):
    import scipy.sparse

    _, small, test = data
    X = np.nan_to_num(np.asarray(small.X))
    dense = rg.QueryDataset(X, small.y, small.qid, weight=np.arange(small.n_rows) % 3 + 1.0)
    thin = rg.QueryDataset(scipy.sparse.csr_matrix(X), small.y, small.qid, weight=dense.weight)
    a, b = (rg.Trada(base, tune="splits", extra_trees=1).fit(d) for d in (dense, thin))
    same(a, b)
    plain = rg.Trada(base).fit(rg.QueryDataset(X, small.y, small.qid))
    assert not np.array_equal(plain.ensemble_.value, a.ensemble_.value[: plain.ensemble_.n_leaves])
    assert np.isfinite(a.predict(test)).all()


def test_other_bases(data, base, lambdas, tmp_path):
    _, small, test = data
    base.save(tmp_path / "b.rg")
    same(rg.Trada(tmp_path / "b.rg", beta=2).fit(small), rg.Trada(base, beta=2).fit(small))
    smart = rg.LambdaMART(submodel=lambdas, n_trees=3, n_leaves=4).fit(small)
    np.testing.assert_array_equal(
        rg.Trada(smart, beta=0).fit(small).predict(test), smart.predict(test)
    )
    twice = rg.Trada(rg.Trada(base, beta=2).fit(small), beta=0).fit(small)
    same(twice.truncated(12), twice)
    classes = rg.McRank(**BASE).fit(data[0])
    with pytest.raises(rg.ParameterError, match="has 5 scores per row"):
        rg.Trada(classes, objective="squared").fit(small)


def test_models_without_statistics(data, base, tmp_path):
    big, small, test = data
    base.save(tmp_path / "old.rg")
    kind, content, arrays = read_model(tmp_path / "old.rg")
    kept = {k: a for k, a in arrays.items() if not k.startswith(("node_c", "node_w", "node_m"))}
    kept = {k: a for k, a in kept.items() if not k.startswith(("leaf_c", "leaf_w", "leaf_m"))}
    write_model(tmp_path / "old.rg", kind, content, kept)
    old = rg.load(tmp_path / "old.rg")
    np.testing.assert_array_equal(old.predict(test), base.predict(test))
    with pytest.raises(rg.DataError, match="does not say how many rows"):
        rg.Trada(old).fit(small)
    for added in (  # nothing of the base model changes
        rg.Trada(old, beta=0, extra_trees=2).fit(small),
        rg.adapt_with("additive", old, small, extra_trees=2),
    ):
        added.save(tmp_path / "added.rg")
        np.testing.assert_array_equal(
            rg.load(tmp_path / "added.rg").truncated(12).predict(test), base.predict(test)
        )
    known = rg.statistics_from_data(old, big)
    a, b = rg.Trada(known, beta=2).fit(small), rg.Trada(base, beta=2).fit(small)
    np.testing.assert_allclose(a.predict(test), b.predict(test), rtol=1e-9)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"beta": -1}, "'beta'.*a number of at least 0, infinity included, or 'cv'. Got -1"),
        ({"beta": float("nan")}, "'beta'.*at least 0"),
        ({"betas": (1, -1)}, "'betas'.*at least 0, infinity included. Got -1"),
        ({"folds": 1}, "'folds'"),
        ({"beta": "much"}, "'beta'.*or 'cv'"),
        ({"beta": "cv", "betas": ()}, "'betas'.*some numbers"),
        ({"beta": "cv", "folds": 1}, "'folds'"),
        ({"tune": "all"}, "'tune'.*'responses', 'splits'"),
        ({"level": "root"}, "'level'.*'layer', 'leaf'"),
        ({"trim": 1}, "'trim'.*True or False"),
        ({"extra_trees": -1}, "'extra_trees'"),
        ({"objective": "cubed"}, "'objective'"),
        ({"base_rate": 0}, "'base_rate'"),
        ({"early_stopping": 3, "extra_trees": 5}, "early_stopping needs validation data"),
    ],
)
def test_bad_parameters(data, base, bad, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.Trada(base, **bad).fit(data[1])


def test_bad_bases(data):
    big, small, _ = data
    bag = rg.BaggedRanker(rg.MART(n_trees=1), n_models=2).fit(small)
    two = [rg.MART(n_trees=n).fit(small) for n in (1, 2)]
    for bad, message in [
        (bag, "BaggedRanker has no trees of its own: adapt its models .* one by one"),
        (rg.refine_weights(two[1], small, "ndcg@10"), "Got RefinedWeights: give its .ranker"),
        (rg.optimal_combination(*two, small, "ndcg@10"), "one of the rankers that its .ranker"),
        (None, "must be a trained ranker of boosted trees"),
        (rg.MART(), "must be trained, and this MART is not"),
        (rg.SVMMap().fit(small), "A SVMMap has no trees"),
        ("nowhere.rg", "there is no such file"),
    ]:
        with pytest.raises(rg.ParameterError, match=message):
            rg.Trada(bad).fit(small)
    half = rg.LambdaMART(submodel=two[0], submodel_weight=0.5, n_trees=1).fit(small)
    with pytest.raises(rg.DataError, match=r"^Trada: .*weight 0.5.*with submodel_weight=1"):
        rg.Trada(half).fit(small)
    with pytest.raises(rg.ParameterError, match="'model' parameter of statistics_from_data"):
        rg.statistics_from_data(None, big)
    few = rg.QueryDataset(np.asarray(small.X)[:, :3], small.y, small.qid)
    with pytest.raises(rg.DataError, match="the source's data has 3"):
        rg.statistics_from_data(two[0], few)
    with pytest.raises(rg.ParameterError, match="does not start from base scores"):
        rg.Trada(rg.MART(n_trees=1).fit(small)).fit(
            small.X, small.y, qid=small.qid, base_score=small.y
        )


# -- what it is compared with ---------------------------------------------------------------------


def test_methods(data, base):
    big, small, test = data
    assert rg.adapt_with("base", base, small).predict(test) == pytest.approx(base.predict(test))
    same(rg.adapt_with("trada", base, small, beta=2), rg.Trada(base, beta=2).fit(small))
    added = rg.adapt_with("additive", base, small, extra_trees=3)
    np.testing.assert_array_equal(added.truncated(12).predict(test), base.predict(test))
    assert added.ensemble_.n_trees == 15
    alone = rg.adapt_with("small", base, small)
    same(alone, rg.MART(**BASE | {"n_trees": 42}).fit(small))
    smart = rg.adapt_with("submodel", base, small, n_trees=2, n_leaves=4)
    same(smart, rg.LambdaMART(submodel=base, n_trees=2, n_leaves=4).fit(small))
    both = rg.adapt_with("combine", base, small, source=big, weight=7, n_trees=3)
    together = rg.combined_data(big, small, 7)
    same(both, rg.MART(**BASE | {"n_trees": 3}).fit(together))
    assert together.n_queries == 80
    assert together.query_weight.tolist() == [1.0] * 60 + [7.0] * 20
    with pytest.raises(rg.ParameterError, match="'combine' needs the source's data"):
        rg.adapt_with("combine", base, small)
    with pytest.raises(rg.ParameterError, match=r"'method'.*did you mean 'trada'"):
        rg.adapt_with("trad", base, small)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("trada", {"weight": 3}, "weight= is for the method 'combine'. Got the method 'trada'"),
        ("trada", {"n_trees": 3}, "the number of trees as extra_trees=. Got n_trees="),
        ("small", {"extra_trees": 3}, "the number of trees as n_trees=. Got extra_trees="),
        ("small", {"source": 1}, "'small' does not use the source's data"),
        ("additive", {"source": 1}, "'additive' does not use the source's data"),
        ("additive", {"beta": 3}, "'additive' does not take beta="),
        ("additive", {"tune": "splits"}, "'additive' does not take tune="),
        ("submodel", {"submodel": "x.rg"}, "'submodel' does not take submodel="),
        ("base", {"valid": 1}, "neither parameters nor validation data"),
        ("base", {"n_trees": 1}, "neither parameters nor validation data"),
    ],
)
def test_what_a_method_does_not_use_is_refused(data, base, method, given, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.adapt_with(method, base, data[1], **given)


def test_data_of_a_wrong_type(data, base):
    big, small, _ = data
    for call, message in [
        (lambda: rg.statistics_from_data(base, "x"), "source must be a QueryDataset.*Got 'x'"),
        (lambda: rg.adapt_with("combine", base, "s.txt", source=big), "target must be.*'s.txt'"),
        (lambda: rg.adapt_with("combine", base, small, source="b.txt"), "source must be.*'b.txt'"),
        (lambda: rg.adapt_with("trada", base, small, source=[1]), "source must be.*Got list"),
        (lambda: rg.combined_data(big, None), "target must be.*Got NoneType"),
    ]:
        with pytest.raises(rg.DataError, match=message):
            call()


def test_combined_data_of_unequal_width(data):
    big, small, _ = data
    wide = rg.QueryDataset(np.column_stack([np.asarray(small.X), small.y]), small.y, small.qid)
    both = rg.combined_data(big, wide)
    assert both.n_features == 13
    assert np.isnan(np.asarray(both.X)[: big.n_rows, 12]).all()
    with pytest.raises(rg.DataError, match="The source has 13 features, the target only 12"):
        rg.combined_data(wide, big)


def test_plot(data, base):
    pytest.importorskip("matplotlib")
    model = rg.Trada(base, tune="splits", min_leaf=5).fit(data[1])
    figure = rg.plot.adaptation(model, n_features=5)
    assert len(figure.axes) == 3
    assert len(figure.axes[1].get_yticks()) == 5
    assert len(rg.plot.adaptation(model.report_).axes) == 3
    assert figure.get_suptitle().startswith("What adaptation changed: 12 trees")
    widths = [bar.get_width() for bar in figure.axes[1].containers[1]]
    assert widths == sorted(widths, reverse=True)
    still = rg.plot.adaptation(rg.Trada(base).fit(data[1]))
    assert len(still.axes) == 2  # no threshold moved: no dots, and no axis for them
    with pytest.raises(rg.DataError, match="needs a trained Trada"):
        rg.plot.adaptation(base)


BRANDS = ("acme", "bolt", "core", "dune", "echo")


def by_brand(names, n_queries, seed, effect=1.0, order=("price", "brand")):
    """Return data of a number and a category, whose names have codes in some order."""
    rng = np.random.default_rng(seed)
    n = 12 * n_queries
    brand = rng.integers(0, len(names), n)
    gain = {name: (k % 3 - 1.0) * effect for k, name in enumerate((*BRANDS, "fern"))}
    columns = {"price": rng.normal(size=n), "brand": brand}
    score = columns["price"] + [gain[names[b]] for b in brand]
    x = np.stack([columns[name] for name in order], axis=1)
    y = np.clip(np.round(2 + score), 0, 4)
    qid = np.arange(n) // 12
    return rg.QueryDataset(x, y, qid, feature_names=order, categorical={"brand": names})


@pytest.mark.parametrize("tune", ["responses", "splits"])
def test_sets_of_categories_are_kept_and_names_are_followed(tune, tmp_path):
    big = by_brand(BRANDS, 60, 1)
    base = rg.MART(**BASE).fit(big)
    assert base.ensemble_.has_sets
    # other codes, another order of columns, a new category
    small = by_brand(("fern", *BRANDS[::-1]), 15, 2, effect=-1.0, order=("brand", "price"))
    same_model = rg.Trada(base, beta=0, tune=tune).fit(small)
    plain = by_brand(BRANDS, 15, 3)
    turned = plain.recoded({1: ("fern", *BRANDS[::-1])})
    turned = rg.QueryDataset(
        np.array(turned.X)[:, ::-1], plain.y, plain.qid,
        feature_names=("brand", "price"), categorical={"brand": ("fern", *BRANDS[::-1])},
    )  # fmt: skip
    np.testing.assert_array_equal(same_model.predict(turned), base.predict(plain))
    model = rg.Trada(base, beta=5, tune=tune, extra_trees=2, min_leaf=5).fit(small)
    first = model.ensemble_.truncated(12)
    for name, node in (("set_of", first.set_of), ("feature", 1 - first.feature)):
        np.testing.assert_array_equal(node, getattr(base.ensemble_, name))
    assert model.categories_ == {0: (*BRANDS, "fern")}
    before, after = (
        rg.evaluate(one, small, "ndcg@5").mean["ndcg@5"] for one in (same_model, model)
    )
    assert after > before
    model.save(tmp_path / "m.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "m.rg").predict(turned), model.predict(turned))


def test_kinds_of_features_must_agree():
    big, small = by_brand(BRANDS, 20, 1), by_brand(BRANDS, 10, 2)
    numbers = big.with_categorical(None)
    with pytest.raises(rg.DataError, match="'brand' is categorical in the target's data"):
        rg.Trada(rg.MART(**BASE).fit(numbers)).fit(small)
    with pytest.raises(rg.DataError, match="'brand' is categorical for the model"):
        rg.Trada(rg.MART(**BASE).fit(big)).fit(small.with_categorical(None))


def test_statistics_from_data_with_other_codes():
    big = by_brand(BRANDS, 40, 1)
    base = rg.MART(**BASE).fit(big)
    known = rg.statistics_from_data(base, big.recoded({1: BRANDS[::-1]}))
    np.testing.assert_array_equal(known.ensemble_.leaf_count, base.ensemble_.leaf_count)
    np.testing.assert_array_equal(known.predict(big), base.predict(big))
