"""The test of local optimality: directions, verdicts, curves; against the definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.nets.local_optimum import directions_needed, local_optimum
from rankgrove.random import generator


@pytest.fixture(scope="module")
def train():
    return rg.make_artificial(120, n_docs=20, n_features=6, seed=1)


@pytest.fixture(scope="module")
def trained(train):
    return rg.LambdaRank(
        "ndcg@5", hidden=(4,), n_epochs=150, schedule="linear", learning_rate=0.01
    ).fit(train)


def mean(scores, data, measure):
    return rg.evaluate(scores, data, measure).mean[measure]


def test_equation_9():
    assert directions_needed(0.01, 0.99) == 459  # the paper's own figure
    for p0, confidence in [(0.05, 0.9), (0.3, 0.999), (0.9, 0.5)]:
        n = directions_needed(p0, confidence)
        assert (1 - p0) ** n <= 1 - confidence
        assert n == 1 or (1 - p0) ** (n - 1) > 1 - confidence


def test_a_trained_net_passes_and_an_untrained_one_fails(train, trained):
    found = rg.check_local_optimum(trained, train, steps=(0.2,), coordinates=4)
    assert found.n_directions == 459
    assert found.passed
    assert found.fraction == 0.0
    assert found.p_bound == pytest.approx(1 - 0.01 ** (1 / 459))
    assert found.p_bound <= 0.01
    assert "a local optimum of ndcg@5" in str(found)
    raw = rg.LambdaRank("ndcg@5", hidden=(4,), n_epochs=1, learning_rate=1e-9).fit(train)
    found = rg.check_local_optimum(raw, train, steps=(0.2,), coordinates=0)
    assert not found.passed
    assert 0.2 < found.fraction < 0.8
    assert found.fraction < found.p_bound < 0.9
    assert repr(found).startswith("no local optimum of ndcg@5: it rose along")
    assert math.isnan(found.best_coordinates)


def test_values_are_those_of_moved_weights(train, trained):
    options = {"p0": 0.3, "confidence": 0.9, "steps": (0.05, 0.4), "random_state": 3}
    found = rg.check_local_optimum(trained, train, "map", **options, coordinates=3)
    net = trained.network_
    length = np.linalg.norm(net.flat)
    assert found.value == mean(trained, train, "map")
    for d in range(found.n_directions):
        direction = generator(3, "direction", d).standard_normal(net.flat.size)
        direction /= np.linalg.norm(direction)
        for k, step in enumerate((0.05, 0.4)):
            moved = net.with_flat(net.flat + step * length * direction)
            assert found.values[d, k] == mean(moved.scores(train.features), train, "map")
    assert found.offsets[found.offsets.size // 2] == 0.0
    assert np.abs(found.offsets).max() == pytest.approx(length / math.sqrt(net.flat.size))
    assert np.all(np.diff(found.offsets) > 0)
    for c, i in enumerate(found.coordinates):
        for k, offset in enumerate(found.offsets):
            flat = net.flat.copy()
            flat[i] += offset
            assert found.curves[c, k] == mean(
                net.with_flat(flat).scores(train.features), train, "map"
            )
    assert np.all(found.curves[:, found.offsets.size // 2] == found.value)
    again = rg.check_local_optimum(trained, train, "map", **options, coordinates=3, n_threads=1)
    assert np.array_equal(again.values, found.values)
    assert np.array_equal(again.curves, found.curves)
    other = rg.check_local_optimum(
        trained, train, "map", **options | {"random_state": 4}, coordinates=0
    )
    assert not np.array_equal(other.values, found.values)


def test_directions_are_uniform_on_the_sphere(train):
    """The scores of a linear model at the moved weights give the directions back."""
    seen = []
    weights = np.array([3.0, 0.0, 4.0])
    prepared = rg.measure("ndcg").prepare(train.y, train.query_ptr)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(train.n_rows, 3))

    def scores(w):
        seen.append(w - weights)
        return x @ w

    local_optimum(
        scores, weights, prepared, p0=0.01, confidence=0.9, steps=(0.5,), n_coordinates=0,
        n_threads=1,
    )  # fmt: skip
    moves = np.array(seen[1:])
    np.testing.assert_allclose(np.linalg.norm(moves, axis=1), 2.5)
    n = len(moves)
    assert np.abs(moves.mean(axis=0)).max() < 2.5 * 4 / math.sqrt(3 * n)
    np.testing.assert_allclose(moves.T @ moves / n, np.eye(3) * 2.5**2 / 3, atol=0.6)


def test_a_step_too_small_is_undecided(train, trained):
    found = rg.check_local_optimum(trained, train, steps=(1e-12,), p0=0.3, coordinates=0)
    assert not found.passed
    assert found.fraction == 0.0
    assert found.unchanged == found.n_directions
    assert str(found).startswith("undecided: ndcg@5 did not change along")


def test_linear_models(train):
    linear = rg.LambdaRank("ndcg@5", hidden=(), n_epochs=30).fit(train)
    for model in (
        linear,
        rg.SVMMap(C=1.0).fit(train),
        rg.SVMMap(C=1.0, scaling="query").fit(train),
        rg.SVMMap(C=1.0, thresholds=4).fit(train),
    ):
        found = rg.check_local_optimum(model, train, p0=0.3, coordinates=2)
        assert found.value == mean(model, train, str(found.measure))
        assert found.curves.shape == (2, found.offsets.size)
    # rows in any order: the same directions, the same values
    turned = np.random.default_rng(0).permutation(train.n_rows)
    mixed = rg.QueryDataset(train.X[turned], train.y[turned], qid=train.qid[turned])
    for model in (linear, rg.SVMMap(C=1.0, scaling="query").fit(train)):
        a, b = (
            rg.check_local_optimum(model, data, "ndcg", p0=0.3, coordinates=1)
            for data in (train, mixed)
        )
        np.testing.assert_allclose(a.values, b.values, rtol=1e-12)


def test_a_stack(train, trained):
    stack = rg.StackedRanker([trained, trained], "ndcg@5", n_epochs=2).fit(train)
    found = rg.check_local_optimum(stack, train, p0=0.3)
    assert found.value == mean(stack, train, "ndcg@5")
    assert found.weights.size == 2


def test_refusals(train, trained):
    check = rg.check_local_optimum
    with pytest.raises(rg.DataError, match=r"Got LambdaMART\.$"):  # it is trained
        check(rg.LambdaMART(n_trees=2).fit(train), train)
    with pytest.raises(rg.DataError, match="not trained"):
        check(rg.LambdaRank(), train)
    with pytest.raises(rg.DataError, match="needs a QueryDataset"):
        check(trained, train.X)
    with pytest.raises(rg.DataError, match="needs 6 features"):
        check(trained, rg.make_artificial(5, n_features=7))
    with pytest.raises(rg.DataError, match="6 features; the data has 7"):
        check(rg.SVMMap(C=1.0).fit(train), rg.make_artificial(5, n_features=7))
    for name, value in [
        ("p0", 0.0),
        ("p0", 1.0),
        ("p0", 1e-9),
        ("p0", 1e-320),
        ("confidence", 1.0),
        ("steps", ()),
        ("steps", [-0.1]),
        ("reach", 0.0),
        ("coordinates", -1),
        ("random_state", -1),
    ]:
        with pytest.raises(rg.ParameterError, match=f"'{name}' parameter of check_local_optimum"):
            check(trained, train, **{name: value})
    empty = rg.QueryDataset(train.X, np.zeros(train.n_rows), qid=train.qid)
    with pytest.raises(rg.DataError, match="leaves out every query"):
        check(trained, empty)


@pytest.mark.parametrize("coordinates", [None, 0])
def test_the_plot(train, trained, coordinates, tmp_path):
    found = rg.check_local_optimum(trained, train, p0=0.3, coordinates=coordinates)
    figure = rg.plot.local_optimum(found)
    assert len(figure.axes) == (1 if coordinates == 0 else 2)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [text.split(":")[0] for text in legend] == ["step 0.1", "step 0.2"]
    if coordinates is None:
        assert len(figure.axes[1].lines) == found.weights.size + 2
    figure.savefig(tmp_path / "optimum.png")
    low = replace(found, values=found.values + 1.0)  # a failed test
    title = rg.plot.local_optimum(low).get_suptitle()
    assert title == "no local optimum of ndcg@5: it rose along 13 of 13 directions"
    with pytest.raises(rg.ParameterError, match=r"the result of rg\.check_local_optimum"):
        rg.plot.local_optimum(None)
