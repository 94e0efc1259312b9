"""Cells of docs/comparison.md, checked by training with each library, or by what the package has.

A test finds out what a library does from scores of models on tiny data; the cell must say the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.formats.endings import ENDING_OF
from rankgrove.measures.conventions import CONVENTIONS
from rankgrove.rankers.nets.net import NetRanker

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
N_DOCS = 10
DEEP = {"trees": 20, "depth": 4}
STUMP = {"trees": 1, "depth": 1}

Scores = Callable[[np.ndarray], np.ndarray]


def cell(row: str, library: str) -> str:
    lines = [
        line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line[:1] == "|"
    ]
    heads, _, *rows = [[text.strip() for text in line] for line in lines]
    return dict(zip(heads, next(cells for cells in rows if cells[0] == row), strict=True))[library]


# -- our own cells, compared with what the package has ---------------------------------------------


def test_our_conventions_and_nets():
    assert cell("conventions of measures", "rankgrove") == "eight, by name"
    assert len(CONVENTIONS) == 8
    nets = cell("nets", "rankgrove").split(";")[0].split(", ")
    assert nets.pop() == "stacks"
    assert all(issubclass(getattr(rg, net), NetRanker) for net in nets)


def test_our_formats():
    text = cell("models written", "rankgrove").lower()
    own, *names = re.sub(r" \(plugin and its own\)", ", elasticsearch-native", text).split(", ")
    assert own == "own"
    assert set(names) == set(ENDING_OF) - {"rankgrove"}


def test_our_ways_to_learn_from_clicks():
    text = cell("position bias in clicks", "rankgrove")
    words = {"ips": "inverse propensities", "two_tower": "two towers"}
    rules = (ranker.parameters["position_bias"].rule for ranker in (rg.LambdaMART, rg.ListNet))
    for rule in rules:
        with pytest.raises(rg.ParameterError) as error:
            rule("position_bias", "", "?")
        for name in re.findall(r"'(\w+)'", str(error.value).split(" must be ")[1].split(".")[0]):
            assert words.get(name, name) in text


# -- a ranker of every library: what it is trained on, its options, the scores of rows -------------


def rankgrove(X, y, trees, depth, categorical=False, **options) -> Scores:
    options |= {"n_trees": trees, "max_depth": depth, "n_leaves": 2**depth}
    qid, columns = np.arange(len(X)) // N_DOCS, [1] if categorical else None
    data = rg.QueryDataset(X, y, qid=qid, categorical=columns)
    return rg.LambdaMART(min_leaf=1, n_threads=1, **options).fit(data).predict


def lightgbm(X, y, trees, depth, categorical=False, **options) -> Scores:
    lgb = pytest.importorskip("lightgbm")
    quiet = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 1, "min_data_per_group": 1}
    data = lgb.Dataset(
        X,
        y,
        group=np.full(len(X) // N_DOCS, N_DOCS),
        categorical_feature=[0] if categorical else [],
        params=quiet,
    )
    params = {"objective": "lambdarank", "max_depth": depth, **quiet, **options}
    return lgb.train(params, data, trees).predict


def xgboost(X, y, trees, depth, categorical=False, **options) -> Scores:
    xgb = pytest.importorskip("xgboost")

    def data(X, **more):
        types = {"feature_types": ["c"], "enable_categorical": True} if categorical else {}
        return xgb.DMatrix(X, **types, **more)

    params = {"objective": "rank:ndcg", "max_depth": depth, "nthread": 1, "min_child_weight": 0}
    booster = xgb.train(params | options, data(X, label=y, qid=np.arange(len(X)) // N_DOCS), trees)
    return lambda X: booster.predict(data(X), output_margin=True)


def catboost_model(X, y, trees, depth, categorical=False, **options) -> Any:
    cat = pytest.importorskip("catboost")
    params = {"loss_function": "YetiRank", "iterations": trees, "depth": depth, "thread_count": 1}
    params |= {"allow_writing_files": False, "verbose": False}
    pool = cat.Pool(
        X.astype(int) if categorical else X,
        y,
        group_id=np.arange(len(X)) // N_DOCS,
        cat_features=[0] if categorical else None,
    )
    return cat.CatBoost(params | options).fit(pool)


def catboost(*data, **options) -> Scores:
    return catboost_model(*data, **options).predict


LIBRARIES = {
    "rankgrove": rankgrove,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
}


# -- categorical features --------------------------------------------------------------------------

CATEGORIES = np.arange(12)
RELEVANT = [1, 4, 6, 11]  # apart from each other: no threshold separates them


def categorical_data():
    codes = np.random.default_rng(0).permutation(np.tile(CATEGORIES, 50))
    return codes[:, None].astype(np.float32), np.isin(codes, RELEVANT).astype(float)


def set_of_stump(learn, **options) -> list[int]:
    """Return the categories on the higher side of one split on a categorical feature."""
    scores = learn(*categorical_data(), **STUMP, categorical=True, **options)
    values = scores(CATEGORIES[:, None].astype(np.float32))
    assert np.unique(values).size == 2
    return np.flatnonzero(values == values.max()).tolist()


@pytest.mark.parametrize("library", ["rankgrove", "LightGBM"])
def test_sets_of_categories(library):
    assert set_of_stump(LIBRARIES[library]) == RELEVANT
    assert cell("categorical features", library) == "sets of categories"


def test_sets_or_one_category_of_xgboost():
    assert set_of_stump(xgboost, max_cat_to_onehot=1) == RELEVANT
    alone = set_of_stump(xgboost, max_cat_to_onehot=CATEGORIES.size + 1)
    assert 1 in (len(alone), CATEGORIES.size - len(alone))
    assert cell("categorical features", "XGBoost") == "sets, or one category"


def test_means_or_one_category_of_catboost(tmp_path):
    for most, kind in ((2, "OnlineCtr"), (CATEGORIES.size, "OneHotFeature")):
        model = catboost_model(
            *categorical_data(), **STUMP, categorical=True, one_hot_max_size=most
        )
        model.save_model(str(tmp_path / "model.json"), format="json")
        tree = json.loads((tmp_path / "model.json").read_text())["oblivious_trees"][0]
        assert [split["split_type"] for split in tree["splits"]] == [kind]
    assert cell("categorical features", "CatBoost") == "means of the target, or one category"


# -- constraints -----------------------------------------------------------------------------------

APART = {"interaction_constraints": [[0], [1]]}
OPTIONS = {
    "rankgrove": ({"monotone": {1: 1}}, {"interactions": []}),
    "LightGBM": ({"monotone_constraints": [1, 0]}, APART),
    "XGBoost": ({"monotone_constraints": (1, 0)}, {"interaction_constraints": "[[0],[1]]"}),
    "CatBoost": ({"monotone_constraints": [1, 0]}, APART),
}


def numeric_data():
    """Return labels that rise with the first feature, or fall where the second is below -0.5."""
    X = np.random.default_rng(1).uniform(-1, 1, (400, 2)).astype(np.float32)
    return X, (X[:, 0] * (0.5 + X[:, 1]) > 0.2).astype(float)


def table_of_scores(scores: Scores) -> np.ndarray:
    """Return the scores of a grid: one row per value of the first feature."""
    values = np.linspace(-1, 1, 15)
    grid = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1).astype(np.float32)
    return np.asarray(scores(grid.reshape(-1, 2))).reshape(15, 15)


def is_monotone(scores: Scores) -> bool:
    return bool((np.diff(table_of_scores(scores), axis=0) >= -1e-6).all())


def is_a_sum(scores: Scores) -> bool:
    """Tell whether scores are a function of the one feature plus a function of the other."""
    mixed = np.diff(np.diff(table_of_scores(scores), axis=0), axis=1)
    return bool((abs(mixed) < 1e-5).all())


@pytest.mark.parametrize("library", LIBRARIES)
def test_constraints(library):
    def learn(**options) -> Scores | None:
        """Return None where the library does not know an option."""
        try:
            return LIBRARIES[library](*numeric_data(), **DEEP, **options)
        except Exception as error:
            if "unknown option" not in str(error).lower():
                raise
            return None

    unconstrained = learn()
    words = []
    for options, holds in zip(OPTIONS[library], (is_monotone, is_a_sum), strict=True):
        assert not holds(unconstrained)
        scores = learn(**options)
        assert scores is None or (holds(scores) and np.ptp(table_of_scores(scores)) > 0)
        words.append("-" if scores is None else "yes")
    row = "monotone constraints, interaction constraints"
    assert cell(row, library) == ", ".join(words)
