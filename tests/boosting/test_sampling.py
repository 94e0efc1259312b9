"""Which queries and rows a round sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.boosting.sampling import Sampler
from rankgrove.random import row_keys, string_keys


def sampler(sizes, names=None, **options):
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    queries = string_keys(range(len(sizes)) if names is None else names)
    return Sampler(queries, row_keys(queries, ptr), ptr, **options), ptr


fractions = st.floats(0.01, 1.0)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
    fractions,
    fractions,
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_shares_are_exact_and_rows_are_of_the_drawn_queries(sizes, of_queries, of_rows, seed, t):
    made, ptr = sampler(sizes, query_fraction=of_queries, row_fraction=of_rows, seed=seed)
    queries, rows = made.draw(t)
    n = len(sizes)
    drawn = np.arange(n) if queries is None else queries
    assert drawn.size == min(n, max(1, round(of_queries * n)))
    assert np.all(np.diff(drawn) > 0)
    inside = np.concatenate([np.arange(ptr[q], ptr[q + 1]) for q in drawn])
    if rows is None:
        assert of_rows == 1.0
        assert drawn.size == n
        return
    assert rows.dtype == np.int32
    assert np.all(np.diff(rows) > 0)
    assert set(rows) <= set(inside)
    wanted = inside.size if of_rows == 1.0 else max(1, round(of_rows * inside.size))
    assert rows.size == min(wanted, inside.size)
    # drawn again, the same
    again = made.draw(t)
    np.testing.assert_array_equal(again[1], rows)


def test_draws_follow_the_rows_not_their_order():
    sizes = np.random.default_rng(0).integers(1, 12, 50)
    options = {"query_fraction": 0.6, "row_fraction": 0.7, "seed": 4}
    names = [f"q{i}" for i in range(50)]
    turn = np.random.default_rng(1).permutation(50)
    first, ptr = sampler(sizes, names, **options)
    second, turned_ptr = sampler(sizes[turn], [names[i] for i in turn], **options)

    def marks(drawn, ptr, of):
        query = np.searchsorted(ptr, drawn[1], side="right") - 1
        return {(of[q], int(r - ptr[q])) for q, r in zip(query, drawn[1], strict=True)}

    for t in range(5):
        a, b = first.draw(t), second.draw(t)
        assert marks(a, ptr, names) == marks(b, turned_ptr, [names[i] for i in turn])


def test_rounds_and_seeds_draw_anew_and_every_row_in_its_turn():
    made, ptr = sampler([10] * 30, row_fraction=0.7, seed=0)
    other, _ = sampler([10] * 30, row_fraction=0.7, seed=1)
    assert made.is_random
    counts = np.zeros(ptr[-1])
    for t in range(400):
        queries, rows = made.draw(t)
        assert queries is None
        counts[rows] += 1
    assert not np.array_equal(made.draw(0)[1], made.draw(1)[1])
    assert not np.array_equal(made.draw(0)[1], other.draw(0)[1])
    # 400 draws with probability .7: 280, standard deviation 9
    assert abs(counts - 280).max() < 5 * 9.2
    plain, _ = sampler([10] * 30)
    assert not plain.is_random
    assert plain.draw(3) == (None, None)


@pytest.mark.parametrize("options", [{"row_fraction": 0.7}, {"row_fraction": 0.5, "split": "mse"}])
def test_a_tree_is_grown_on_the_drawn_rows_alone(options):
    data = rg.make_web(40, n_docs=20, n_features=8, seed=1)
    model = rg.LambdaMART(n_trees=4, n_leaves=5, **options).fit(data)
    for t in range(4):
        tree = model.ensemble_.tree(t)
        assert tree.count[0] == round(options["row_fraction"] * data.n_rows)
    same = rg.LambdaMART(n_trees=4, n_leaves=5, **options | {"row_fraction": 1.0}).fit(data)
    assert same.ensemble_.tree(0).count[0] == data.n_rows


def test_lambdas_are_of_all_documents_of_the_drawn_queries():
    # All documents but one are left out of growing; its lambda still comes from its pairs.
    X = np.arange(40, dtype=float)[:, None]
    y, qid = np.arange(40) % 2, np.repeat(np.arange(2), 20)
    model = rg.LambdaMART("pairs", n_trees=1, min_leaf=1, row_fraction=0.025, l2=0, learning_rate=1)
    tree = model.fit(X, y, qid=qid).ensemble_.tree(0)
    assert tree.n_leaves == 1
    assert tree.count[0] == 1
    assert tree.value[0] != 0


@pytest.mark.parametrize("bad", [0, -0.5, 1.5, "all", None, True])
def test_bad_row_fractions(bad):
    data = rg.make_artificial(5, n_docs=5, seed=1)
    with pytest.raises(rg.ParameterError, match="'row_fraction' parameter of LambdaMART"):
        rg.LambdaMART(row_fraction=bad).fit(data)
