"""Vespa's form of LightGBM's dump, by the mirrored evaluator of tests/reference/formats.py."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data.categories import without_unknown
from rankgrove.errors import ParameterError
from rankgrove.formats import lightgbm, vespa
from rankgrove.formats.foreign import TreeParts
from rankgrove.formats.write import Labels, encode
from rankgrove.formats.zero_missing import ZERO
from rankgrove.model.ensemble import Ensemble
from tests.formats.made import random_ensemble, rows_for, walked
from tests.reference import formats as mirrored

NAMES = ["bm25(title)", "brand", "fieldMatch(title).completeness", "attribute(shop)"]
LABELS = Labels("web", NAMES, True)
WORDS = {1: ("acme", "b o", "c,d", "'", "3"), 3: tuple(f"shop {j}" for j in range(300))}


def documents(rows, categories):
    """Rows as Vespa has them: numbers, NaN if they are missing; strings, empty if missing."""
    words = {j: [*names, "never seen", ""] for j, names in categories.items() if names is not None}

    def value(j, x):
        if j not in words:
            return float(x)
        known = 0 <= x < len(words[j]) - 2
        return words[j][-1 if np.isnan(x) else int(x) if known else -2]

    return [{name: value(j, row[j]) for j, name in enumerate(NAMES)} for row in rows]


def check(trees, seed, categories):
    """Vespa and our reader score rows like the trees."""
    text = encode(trees, "vespa", replace(LABELS, categories=categories))[0].decode()
    rows = rows_for(trees, seed, 40)
    scored = without_unknown(rows, categories)  # as rankers do
    expected = walked(trees, scored)[0]
    given_rows = documents(rows, categories)
    np.testing.assert_array_equal(mirrored.vespa(text, given_rows), expected)
    if trees.base == 0.0:
        leaves = replace(trees, value=trees.value.astype(np.float32).astype(np.float64))
        found = mirrored.vespa(text, given_rows, large=True)
        np.testing.assert_array_equal(found, walked(leaves, scored)[0])
    again = lightgbm.read_json(json.loads(text))
    assert again.feature_names == tuple(NAMES)
    assert again.categories == dict.fromkeys(trees.categorical_features().tolist()) | categories
    scored[np.abs(scored) <= ZERO] = 0.0  # as in all models of LightGBM's form
    expected = walked(trees, scored)[0]
    np.testing.assert_array_equal(walked(again.ensemble, scored)[0], expected)
    second = encode(again.ensemble, "vespa", replace(LABELS, categories=again.categories))[0]
    third = lightgbm.read_json(json.loads(second)).ensemble
    np.testing.assert_array_equal(walked(third, scored)[0], expected)


@given(
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([2, 3, 40]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, -0.7]),
)
@settings(max_examples=20)
def test_numbers(seed, n_trees, leaves, dtype, base):
    check(random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base), seed, {})


@given(
    st.integers(0, 2**32),
    st.integers(0, 5),
    st.sampled_from(["right", "both"]),
    st.sampled_from([{}, {1: WORDS[1]}, WORDS]),
    st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=25)
def test_categories(seed, n_trees, missing, categories, base):
    check(random_ensemble(seed, n_trees, 12, base=base, categories=missing), seed, categories)


@pytest.mark.parametrize("categories", [{1: WORDS[1]}, {1: None}], ids=["names", "codes"])
@pytest.mark.parametrize("missing_left", [True, False])
def test_every_split_on_a_categorical_feature(missing_left, categories):
    """Strings have no order, and cannot be missing; sets cannot be empty."""
    rows = np.zeros((8, 4), np.float32)
    rows[:, 1] = 0, 1, 2, 3, 4, 5, 70, np.nan
    sets = [np.array(codes, int) for codes in ([], [0], [2, 4], [0, 1, 2, 3, 4])]
    for rule in (-np.inf, -1.0, 0.0, 2.5, 4.0, np.inf, *sets):
        parts = TreeParts()
        threshold, codes = (0.0, rule) if isinstance(rule, np.ndarray) else (rule, None)
        node = parts.split(None, 1, threshold, missing_left, codes)
        parts.leaf((node, True), 1.0)
        parts.leaf((node, False), 2.0)
        trees = Ensemble.from_trees([parts.tree(np.float32)], 4)
        text = encode(trees, "vespa", replace(LABELS, categories=categories))[0].decode()
        expected = walked(trees, without_unknown(rows, categories))[0]
        found = mirrored.vespa(text, documents(rows, categories))
        np.testing.assert_array_equal(found, expected, err_msg=str(rule))
        again = lightgbm.read_json(json.loads(text))
        found = walked(again.ensemble, without_unknown(rows, again.categories))[0]
        np.testing.assert_array_equal(found, expected, err_msg=str(rule))


def test_thresholds_lie_between_float32_numbers():
    rng = np.random.default_rng(1)
    most, tiny = np.finfo(np.float32).max, np.float32(1e-45)
    single = np.concatenate(
        [
            (rng.normal(size=2000) * 10.0 ** rng.uniform(-44, 37, 2000)).astype(np.float32),
            np.array([0.0, -0.0, 1.0, most, -most, tiny, -tiny], np.float32),
        ]
    )
    double = np.nextafter(single.astype(np.float64), rng.choice([-np.inf, np.inf], single.size))
    anywhere = single * rng.uniform(0.9, 1.1, single.size)
    beyond = np.array([1e39, -1e39, 1e305, -1e305])
    for threshold in (single, single.astype(np.float64), double, anywhere, beyond):
        t = vespa.limits(threshold)
        with np.errstate(over="ignore"):
            rounded, near = t.astype(np.float32), threshold.astype(np.float32)
            around = [np.nextafter(near, np.float32(s)) for s in (-np.inf, np.inf)]
        for x in (near, *around, np.zeros_like(near)):
            goes_left = x.astype(np.float64) <= threshold
            np.testing.assert_array_equal(x < t, goes_left)
            np.testing.assert_array_equal(x <= t, goes_left)
            finite = np.isfinite(x)
            np.testing.assert_array_equal((x < rounded)[finite], goes_left[finite])
    # a float64 value goes where it goes when a data set rounds it, except for exact ties
    single = single[np.abs(single) < 1e30]
    gap = np.nextafter(single, np.float32(np.inf)) - single.astype(np.float64)
    value = single + rng.uniform(0.45, 0.55, single.size) * gap
    goes_left = value.astype(np.float32) <= single
    assert 0.4 < goes_left.mean() < 0.6
    np.testing.assert_array_equal(value < vespa.limits(single), goes_left)
    assert vespa.limits(np.array([np.inf, -np.inf])).tolist() == [1e300, -1e300]


@pytest.mark.parametrize(
    "name", ["bm25-title", "title score", "f", "true", "3", "attribute(price", "naïve", "a)b(", ""]
)
def test_names_that_are_no_features(name):
    trees = random_ensemble(5, 4, 8)
    labels = replace(LABELS, features=["a", name, "c", "d"])
    with pytest.raises(ParameterError, match=r"is not a feature\. Use .*--features"):
        encode(trees, "vespa", labels)
    unused = replace(trees, feature=np.where(trees.feature == 1, 0, trees.feature))
    encode(unused, "vespa", labels)


@pytest.mark.parametrize(
    "name", ["f1", "matches(title, 3)", "attribute(tags).count", "a.b", "foreach(a,N,b(c(N)),>)"]
)
def test_names_that_are_features(name):
    encode(random_ensemble(5, 4, 8), "vespa", replace(LABELS, features=[name, "b", "c", "d"]))


@pytest.mark.parametrize("text", ['5" disk', "back\\slash", "Bölt", "two\nlines"])
def test_names_that_are_no_categories(text):
    trees = random_ensemble(2, 5, 12, categories="right")
    named = replace(LABELS, categories={1: (text, "b", "c", "d", "e")})
    with pytest.raises(ParameterError, match=r"'brand' has the category .*categories_"):
        encode(trees, "vespa", named)
    unused = replace(LABELS, categories={1: ("a", "b", "c", "d", "e", text)})
    encode(trees, "vespa", unused)


def test_what_vespa_cannot_hold():
    with pytest.raises(ParameterError, match=r"3 scores per row.*Vespa allows one"):
        encode(random_ensemble(5, 4, 8, n_columns=3), "vespa", LABELS)
    sets = random_ensemble(2, 2, 3, categories="right")
    with pytest.raises(ParameterError, match=r"holds sets of categories: leave expand_categories"):
        encode(sets, "vespa", LABELS, zero=True, expand_categories=True)


def test_a_trained_model_goes_round(tmp_path):
    """Names, statistics and absent features stay; unknown and missing categories go together."""
    rng = np.random.default_rng(3)
    n = 400
    table = pd.DataFrame({"price": rng.normal(size=n).astype(np.float32)})
    table["brand"] = rng.choice(["acme", "bolt", "core", None], n)
    table["label"] = (table["brand"] == "bolt") + (table["price"] > 0.3)
    table["qid"] = np.repeat(np.arange(n // 10), 10)
    train = rg.QueryDataset.from_frame(table)
    model = rg.LambdaMART(n_trees=5, n_leaves=5, min_leaf=5).fit(train)
    assert model.ensemble_.has_sets
    path = tmp_path / "web.json"
    rg.convert(model, path, to="vespa")
    again = rg.load(path)
    assert again.categories_ == dict(model.categories_)
    assert again.absent_ == (model.absent_ or "missing")
    for name in ("node_count", "leaf_count", "gain"):  # leaves are numbered otherwise
        found, kept = (np.sort(getattr(m.ensemble_, name)) for m in (again, model))
        np.testing.assert_array_equal(found, kept)
    rows = table[["price", "brand"]].copy()
    rows.loc[:50, "brand"] = "new"
    expected = model.predict(rows)
    np.testing.assert_array_equal(again.predict(rows), expected)
    given_rows = [
        {"price": float(price), "brand": "" if brand is None else brand}
        for price, brand in zip(rows["price"], rows["brand"], strict=True)
    ]
    np.testing.assert_array_equal(mirrored.vespa(path.read_text(), given_rows), expected)
