"""Combined regression and ranking: what is drawn, the steps one by one, and where they lead."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.objectives._crr_kernels import uniform
from rankgrove.objectives.pair_index import PairIndex
from rankgrove.random import derive_seed
from tests.reference import linear as naive


def test_the_random_numbers_are_the_same_hash():
    seed = derive_seed(7, "crr")
    found = [uniform(np.uint64(seed), k) for k in range(2000)]
    assert found == [naive.uniform(seed, k) for k in range(2000)]
    assert 0.45 < np.mean(found) < 0.55
    assert len(set(found)) == 2000


@pytest.mark.parametrize("pairs", ["all", "query"])
def test_every_ordered_pair_is_drawn_alike(pairs):
    rng = np.random.default_rng(0)
    ptr = np.array([0, 4, 5, 8, 14])
    labels = rng.integers(0, 3, 14).astype(np.float64)
    labels[5:8] = 1.0  # no pairs there
    labels[0], labels[1] = 2.0, 0.5
    expected = [
        [(i, j) for i, j in itertools.permutations(range(a, b), 2) if labels[i] != labels[j]]
        for a, b in itertools.pairwise(ptr.tolist())
    ]
    index = PairIndex(labels, ptr, pairs)
    counts = np.array([len(own) if pairs == "all" else bool(own) for own in expected], float)
    borders = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    for q, own in enumerate(expected):
        a = (borders[q] + borders[q + 1]) / 2
        drawn = [index.draw(a, (k + 0.5) / len(own)) for k in range(len(own))]
        assert collections.Counter(drawn) == collections.Counter(own)
    assert index.draw(0.0, 0.0) in expected[0]
    assert index.draw(1 - 2**-53, 1 - 2**-53) in expected[3]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("pairs", ["all", "query"])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_the_steps_are_those_of_the_definition(loss, pairs, alpha):
    data = rg.make_web(4, n_docs=6, n_features=3, seed=5)
    X, labels = data.grouped(np.asarray(data.X, np.float64)), data.grouped(data.y)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if loss == "logistic":
        labels = (labels - labels.min()) / (labels.max() - labels.min())
    model = rg.CRR(alpha, loss, pairs, l2=0.01, learning_rate=0.1, n_epochs=1, random_state=3)
    model.fit(data)
    w, intercept, cost = naive.crr_weights(
        X, labels, data.query_ptr, derive_seed(3, "crr"), data.n_rows,
        alpha=alpha, loss=loss, l2=0.01, rate=0.1, all_pairs=pairs == "all",
    )  # fmt: skip
    np.testing.assert_allclose(model.coef_, w, rtol=1e-5, atol=1e-7)
    assert model.linear_.intercept == pytest.approx(intercept, rel=1e-5, abs=1e-7)
    assert model.objective_ == [pytest.approx(cost, rel=1e-5)]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("pairs", ["all", "query"])
def test_squared_loss_leads_to_the_optimum_of_the_objective(alpha, pairs):
    rng = np.random.default_rng(1)
    sizes = rng.integers(3, 9, 12)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(ptr[-1], 3)).astype(np.float32)
    labels = np.clip(np.round(X @ [0.7, -0.4, 0.1] + 1 + rng.normal(size=ptr[-1]) / 2), 0, 3)
    data = rg.QueryDataset(X, labels, np.repeat(np.arange(12), sizes))
    ends = list(itertools.pairwise(ptr.tolist()))
    rows, target, weight = [np.append(x, 1.0) for x in X], [*labels], [alpha / ptr[-1]] * ptr[-1]
    listed = [
        [(i, j) for i, j in itertools.permutations(range(a, b), 2) if labels[i] != labels[j]]
        for a, b in ends
    ]
    n_pairs, n_queries = sum(map(len, listed)), sum(map(bool, listed))
    for own in listed:
        for i, j in own:
            rows.append(np.append(X[i] - X[j], 0.0))
            target.append(labels[i] - labels[j])
            share = 1 / n_pairs if pairs == "all" else 1 / (n_queries * len(own))
            weight.append((1 - alpha) * share)
    A, root = np.array(rows), np.sqrt(weight)
    ridge = 0.01 * np.diag([1.0, 1.0, 1.0, 0.0])
    gram = (root[:, None] * A).T @ (root[:, None] * A) + ridge
    best = np.linalg.lstsq(gram, A.T @ (np.array(weight) * target), rcond=None)[0]
    model = rg.CRR(
        alpha, pairs=pairs, l2=0.01, learning_rate=0.02, n_epochs=3000, scaling=None
    ).fit(data)
    np.testing.assert_allclose(model.coef_, best[:3], atol=0.02)
    if alpha > 0:
        assert model.linear_.intercept == pytest.approx(best[3], abs=0.03)
