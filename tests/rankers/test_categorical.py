"""Categorical features of rankers: coded by name, kept in files, refused, encoded."""

import json
import zipfile

import numpy as np
import pandas
import polars
import pytest

import rankgrove as rg
from rankgrove.data.category_means import FOLDS, fold_of_queries
from rankgrove.errors import DataError, ModelFileError
from rankgrove.rankers.auto.portfolio import presets

N = 240
FEATURES = ["x", "brand", "shop"]


def make_frame(seed=1, n=N, brands=("acme", "bolt", "core", "dyne")):
    draw = np.random.default_rng(seed)
    brand = draw.choice(brands, n)
    frame = pandas.DataFrame(
        {
            "qid": np.arange(n) // 8,
            "label": (brand == "core") + (draw.random(n) < 0.3) * 1.0,
            "x": draw.normal(size=n).round(3),
            "brand": brand,
            "shop": [f"s{i}" for i in draw.integers(0, 30, n)],
        }
    )
    frame.loc[::13, "brand"] = None
    return frame


FRAME = make_frame()
DATA = rg.QueryDataset.from_frame(FRAME)
TREES = {"n_trees": 4, "min_leaf": 2, "n_leaves": 4, "n_threads": 1}


@pytest.fixture(scope="module")
def model():
    return rg.LambdaMART(**TREES).fit(DATA)


def test_scored_by_name_whatever_the_order(model):
    assert model.categories_ == DATA.categories
    expected = model.predict(DATA)
    some = FRAME.brand.isin(["bolt", "dyne"]).to_numpy()
    other = rg.QueryDataset.from_frame(FRAME[some])
    assert other.categories != DATA.categories
    assert np.array_equal(model.predict(other), expected[some])
    shuffled = FRAME[FEATURES].assign(
        brand=pandas.Categorical(FRAME.brand, ["zero", "dyne", "core", "bolt", "acme"])
    )
    for table in (FRAME[FEATURES], shuffled, polars.DataFrame(FRAME[FEATURES])):
        assert np.array_equal(model.predict(table), expected)
    assert np.array_equal(model.predict(DATA.X), expected)  # an array holds codes
    nameless = DATA.with_categorical([2, 3])
    assert np.array_equal(model.predict(nameless), expected)
    beyond = np.array(DATA.X)  # codes without a name are missing values
    beyond[:, 1] = 4
    lost = np.array(DATA.X)
    lost[:, 1] = np.nan
    for X in (beyond, rg.QueryDataset(beyond, DATA.y, DATA.qid, categorical=[2, 3])):
        assert np.array_equal(model.predict(X), model.predict(lost))


def test_unknown_categories_go_where_missing_ones_go(model):
    unknown = FRAME.assign(brand="never seen")
    missing = FRAME.assign(brand=pandas.Series([None] * N, dtype="object"))
    expected = model.predict(missing[FEATURES])
    assert np.array_equal(model.predict(rg.QueryDataset.from_frame(unknown)), expected)
    assert np.array_equal(model.predict(unknown[FEATURES]), expected)


def test_other_kinds_of_columns_are_refused(model):
    numbers = rg.QueryDataset.from_frame(FRAME.assign(brand=1.0))
    with pytest.raises(DataError, match=r"'brand' is categorical for the model, with 4 categories"):
        model.predict(numbers)
    plain = rg.LambdaMART(**TREES).fit(numbers.with_categorical(None))
    with pytest.raises(
        DataError, match="'brand' is categorical in the data, and the model has num"
    ):
        plain.predict(DATA.with_categorical({2: DATA.categories[1]}))
    with pytest.raises(DataError, match=r"'brand' holds .*: drop it"):
        plain.predict(FRAME[FEATURES])
    codes = rg.LambdaMART(**TREES).fit(DATA.with_categorical([2, 3]))
    assert codes.categories_ == {1: None, 2: None}
    assert codes.predict(DATA.with_categorical(None)).shape == (N,)
    with pytest.raises(DataError, match="'brand' has names of categories, and the model has codes"):
        codes.predict(DATA)


def test_validation_data_has_the_codes_of_the_training_data():
    few = rg.QueryDataset.from_frame(make_frame(seed=2, brands=("core", "dyne", "echo")))
    seen = []
    ranker = rg.LambdaMART(**TREES)
    keep = ranker._fit
    ranker._fit = lambda training: (seen.append(training), keep(training))[1]
    ranker.fit(DATA, valid=few)
    (valid,) = seen[0].valid.values()
    assert valid.categories == DATA.categories
    is_known = np.array(
        [name in ("core", "dyne") for name in make_frame(2, brands=("core", "dyne", "echo")).brand]
    )
    assert np.array_equal(np.isnan(valid.column("brand")), ~is_known)
    with pytest.raises(DataError, match=r"the valid data: .*categorical for the training data"):
        rg.LambdaMART(**TREES).fit(DATA, valid=few.with_categorical([3]))


def test_the_model_file(model, tmp_path):
    path = tmp_path / "a.rg"
    model.save(path)
    again = rg.load(path)
    assert again.categories_ == model.categories_
    assert np.array_equal(again.predict(FRAME[FEATURES]), model.predict(DATA))
    plain = rg.LambdaMART(**TREES).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert "categories" not in plain.to_state()[0]


@pytest.mark.parametrize(
    "damage",
    [
        {"1": ["a"]},
        [[1, ["a", "a"]]],
        [[9, None]],
        [[1, None], [1, None]],
        [[2, None], [1, None]],
        [[1, [3]]],
        [[1]],
        [["1", None]],
    ],
)
def test_damaged_model_files(model, tmp_path, damage):
    model.save(tmp_path / "a.rg")
    with zipfile.ZipFile(tmp_path / "a.rg") as good, zipfile.ZipFile(tmp_path / "b.rg", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name == "header.json":
                header = json.loads(content)
                header["content"]["categories"] = damage
                content = json.dumps(header)
            bad.writestr(name, content)
    with pytest.raises(ModelFileError, match="damaged"):
        rg.load(tmp_path / "b.rg")


@pytest.mark.parametrize(
    "ranker",
    [
        rg.RankBoost(n_trees=2),
        rg.FRank(n_trees=2),
        rg.RankNet(n_epochs=1),
        rg.ListNet(n_epochs=1),
        rg.RankSVM(),
        rg.SVMMap(),
        rg.AdaRank(),
        rg.CoordinateAscent(),
        rg.CRR(),
        rg.SmoothRank(),
        rg.BaggedRanker(rg.RankNet(n_epochs=1), n_models=2),
        rg.PreparedRanker(rg.RankNet(n_epochs=1), normalise="zscore"),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_rankers_without_categories_refuse_them(ranker):
    assert not ranker.takes_categories
    with pytest.raises(DataError, match=r"'brand', 'shop' are categorical.*encode='auto'"):
        ranker.fit(DATA)


@pytest.mark.parametrize("kind", [rg.LambdaMART, rg.MART, rg.McRank, rg.GBRank, rg.RandomForest])
def test_rankers_of_trees_take_them(kind):
    assert kind.takes_categories
    known = {k: v for k, v in TREES.items() if k in kind().get_params()}
    ranker = kind(**known).fit(DATA)
    assert ranker.categories_ == DATA.categories


def test_a_model_that_goes_on_from_another_keeps_its_codes():
    base = rg.LambdaMART(**TREES).fit(rg.QueryDataset.from_frame(FRAME[FRAME.brand != "acme"]))
    more = rg.LambdaMART(submodel=base, **TREES).fit(DATA)
    assert more.categories_[1][:3] == base.categories_[1]
    assert set(more.categories_[1]) == set(DATA.categories[1])
    assert np.array_equal(more.predict(FRAME[FEATURES]), more.predict(DATA))
    with pytest.raises(DataError, match="is categorical for the model"):
        rg.Trada(base).fit(DATA.with_categorical(None))


def test_bags_and_combinations(model, tmp_path):
    bag = rg.BaggedRanker(rg.LambdaMART(**TREES), n_models=2).fit(DATA, valid=DATA)
    bag.save(tmp_path / "bag.rg")
    again = rg.load(tmp_path / "bag.rg")
    assert again.models_[0].categories_ == bag.categories_ == DATA.categories
    assert "categories" not in bag.to_state()[0]["models"][0]
    part = rg.QueryDataset.from_frame(FRAME[120:])
    assert np.array_equal(again.predict(part), bag.predict(DATA)[120:])
    table = FRAME[FEATURES][120:]
    assert np.array_equal(bag.predict(table, qid=FRAME.qid[120:]), bag.predict(part))
    both = rg.CombinedRanker([model, bag]).fit(part)
    stack = rg.StackedRanker([model, bag], n_epochs=2).fit(part)
    for ranker in (both, stack):
        assert np.array_equal(ranker.predict(part), ranker.predict(DATA)[120:])
        assert ranker.categories_ == part.categories


def test_pairs_of_documents_with_categories():
    pairs = [[2 * i, 2 * i + 1] for i in range(N // 2)]
    table = FRAME[FEATURES]
    ranker = rg.LambdaMART("pairs", **TREES).fit_pairs(table, pairs)
    assert ranker.categories_ == DATA.categories
    again = rg.LambdaMART("pairs", **TREES).fit_pairs(DATA, pairs)
    assert ranker.predict(table).shape == again.predict(DATA).shape


def test_partial_dependence_and_explanation(model):
    part = rg.QueryDataset.from_frame(FRAME[:80])
    curve = rg.partial_dependence(model, part, "x")
    assert np.isfinite(curve.mean).all()
    told = rg.explain(model, part)
    assert np.array_equal(told.scores, model.predict(DATA)[:80])


# -- encoding --------------------------------------------------------------------------------------


def naive_means(train, column, rows):
    """Return the smoothed mean labels of some rows by code, and their mean label."""
    codes = train.column(column + 1)
    weight = np.ones(N) if train.weight is None else train.weight
    prior = np.average(train.y[rows], weights=weight[rows])
    means = {}
    for code in range(len(train.categories[column])):
        inside = rows & (codes == code)
        total = (weight * train.y)[inside].sum()
        means[code] = (total + 10 * prior) / (weight[inside].sum() + 10)
    return means, prior


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_labels_are_those_of_other_folds_in_training(weighted):
    seen = []
    weight = np.random.default_rng(2).integers(0, 9, N) / 4.0
    data = rg.QueryDataset.from_frame(FRAME.assign(w=weight), weight="w") if weighted else DATA

    class Spy(rg.RankNet):
        kind = "spy of encodings"

        def _fit(self, training):
            seen.append(training)
            return super()._fit(training)

    ranker = rg.PreparedRanker(Spy(hidden=(), n_epochs=1), encode="target").fit(data, valid=data)
    fold = fold_of_queries(data)[data.query_of_row]
    assert set(fold) == set(range(FOLDS))
    for column in (1, 2):
        codes, own = data.column(column + 1), seen[0].train.column(column + 1)
        for row in range(0, N, 7):
            means, prior = naive_means(data, column, fold != fold[row])
            assert own[row] == np.float32(means.get(codes[row], prior))
        means, prior = naive_means(data, column, np.ones(N, bool))
        expected = [np.float32(means.get(code, prior)) for code in codes.tolist()]
        for other in (seen[0].valid["valid"], ranker.prepared(data)):
            assert other.column(column + 1).tolist() == expected
        assert other.categories == {}


def test_indicators():
    ranker = rg.PreparedRanker(rg.RankNet(hidden=(), n_epochs=1), encode="auto").fit(DATA)
    inside = ranker.prepared(DATA)
    names = DATA.categories[1]
    assert inside.feature_names == (
        "x",
        "shop (mean label)",
        *(f"brand={name}" for name in names),
    )
    for code, name in enumerate(names):
        assert np.array_equal(inside.column(f"brand={name}"), DATA.column("brand") == code)
    assert ranker.origins().tolist() == [0, 2, 1, 1, 1, 1]
    assert "brand: indicators of 4 categories" in ranker.summary()


@pytest.mark.parametrize(
    "settings",
    [
        {"encode": "auto"},
        {"encode": "onehot", "normalise": "zscore"},
        {"encode": "auto", "normalise": "percentile", "append": True},
        {"encode": "target", "transform": "log1p", "features": ["brand", "x"]},
    ],
)
def test_encoded_models_in_files_and_explained(settings, tmp_path):
    ranker = rg.PreparedRanker(rg.RankNet(hidden=(), n_epochs=2), **settings).fit(DATA)
    ranker.save(tmp_path / "a.rg")
    part = rg.QueryDataset.from_frame(FRAME[:80].assign(shop=["new"] * 40 + ["s1"] * 40))
    again = rg.load(tmp_path / "a.rg")
    expected = ranker.predict(part)
    assert np.array_equal(again.predict(part), expected)
    told = rg.explain(again, part)
    assert told.contributions.shape == (80, 3)
    total = told.base + told.contributions.sum(axis=1)
    assert total == pytest.approx(expected, abs=1e-6)
    if "normalise" not in settings:
        table = FRAME[FEATURES][:80]
        whole = rg.QueryDataset.from_frame(FRAME[:80])
        assert np.array_equal(again.predict(table), again.predict(whole))


def test_codes_are_neither_normalised_nor_transformed():
    base = rg.LambdaMART(**TREES)
    ranker = rg.PreparedRanker(base, normalise="zscore", transform="log1p").fit(DATA)
    inside = ranker.prepared(DATA)
    assert inside.categories == ranker.ranker_.categories_ == DATA.categories
    assert np.array_equal(inside.column(2), DATA.column(2), equal_nan=True)
    assert not np.array_equal(inside.column(1), DATA.column(1))
    added = rg.PreparedRanker(base, normalise="percentile", append=True).fit(DATA)
    assert added.prepared(DATA).feature_names == (*FEATURES, "x (percentile)")
    some = rg.PreparedRanker(rg.RankNet(n_epochs=1), features=["x"]).fit(DATA)
    assert some.predict(DATA).shape == (N,)


def test_candidates_of_the_automatic_search():
    listed = presets("ndcg@10", DATA, trees_only=False)
    assert all(candidate.ranker.takes_categories for candidate in listed)
    groups = {candidate.group for candidate in listed}
    assert groups == {"trees", "net", "linear"}
    nets = [c.ranker for c in listed if c.group == "net"]
    assert all(net.encode == "auto" for net in nets)
    plain = presets("ndcg@10", DATA.with_categorical(None), trees_only=False)
    assert {c.group for c in plain} == groups | {"stumps"}
