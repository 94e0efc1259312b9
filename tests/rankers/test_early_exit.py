"""Early exit: documents are left out by learned gaps, the loss is bounded on other queries."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.rankers.ensembles.early_exit import _shortfalls, _upper_bound
from rankgrove.scoring.scorer import Exits, Scorer


@pytest.fixture(scope="module")
def parts():
    return [rg.make_web(n, 300, 10, seed=seed) for n, seed in ((30, 1), (80, 2), (60, 3))]


@pytest.fixture(scope="module")
def model(parts):
    return rg.LambdaMART(n_trees=160, n_leaves=8, n_threads=1).fit(parts[0])


@pytest.fixture(scope="module")
def fast(model, parts):
    return rg.EarlyExitRanker(model, "ndcg@5", max_loss=0.01, n_threads=1).fit(parts[1])


def by_definition(model, data, exits):
    """Leave out, chunk by chunk, what is further below the k-th best than the gap."""
    trees, kept = model.flat(), np.full(data.n_rows, -np.inf)
    sums = [model.truncated(int(end)).predict(data) for end in exits.ends]
    assert sums[-1] == pytest.approx(model.predict(data))
    looked_at = 0
    for query in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == query)
        for end, gap, total in zip(exits.ends[:-1], exits.gaps, sums, strict=False):
            looked_at += rows.size * 32
            kth = np.sort(total[rows])[-exits.k]
            rows = rows[total[rows] >= kth - gap]
            assert end % 32 == 0
        looked_at += rows.size * (trees.n_trees - 32 * (exits.ends.size - 1))
        kept[rows] = model.predict(data)[rows]
    return kept, looked_at


def test_the_kernel_does_what_the_rule_says(model, parts, fast):
    exits, data = fast.exits_, parts[2]
    kept, _ = by_definition(model, data, exits)
    top = fast.predict_top(data, 5)
    for query in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == query)
        best = rows[np.argsort(-kept[rows], kind="stable")[:5]]
        shown = rows[np.isfinite(top.scores[rows])]
        assert set(best) == set(shown)
        assert np.array_equal(top.scores[best], model.predict(data)[best])


def test_far_fewer_pairs_at_a_small_loss(model, parts, fast):
    certificate = fast.certificate_
    assert certificate.bound <= 0.01
    assert certificate.saved > 0.5
    top = fast.predict_top(parts[2], 5)
    assert abs(top.saved - certificate.saved) < 0.1
    full, quick = (
        rg.evaluate(scores, parts[2], "ndcg@5").mean["ndcg@5"]
        for scores in (model.predict(parts[2]), top.scores)
    )
    assert full - quick < 0.01
    assert np.array_equal(fast.predict(parts[2]), model.predict(parts[2]))


def test_shortfalls_by_definition(model, parts):
    data = parts[2].select(np.arange(7))
    ends, shortfall, query = _shortfalls(model.flat(), data, 5, 1)
    assert ends.tolist() == [32, 64, 96, 128, 160]
    count = 0
    for q in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == q)
        final = model.predict(data)[rows]
        first = rows[np.argsort(-final, kind="stable")[:5]]
        for row in first[data.y[first] > 0]:
            assert query[count] == q
            for c, end in enumerate(ends):
                partial = model.truncated(int(end)).predict(data)
                expected = np.sort(partial[rows])[-5] - partial[row]
                assert shortfall[count, c] == pytest.approx(expected)
            count += 1
    assert count == query.size
    assert (shortfall[:, -1] <= 1e-12).all()  # at the end they are among the first five


def test_bounds_hold_as_often_as_they_say():
    random = np.random.default_rng(3)
    held = [_upper_bound(random.normal(0.1, 1.0, 30), 0.9)[1] >= 0.1 for _ in range(2000)]
    assert 0.88 < np.mean(held) < 0.92


@pytest.mark.parametrize("expected_number", [0.5, 2.0, 5.0, 20.0])
def test_bounds_hold_where_losses_are_rare(expected_number):
    """By Student's t alone they hold in 33, 67, 81 and 87 %: most samples have few losses."""
    random, n, size = np.random.default_rng(4), 100, 0.06
    losses = (random.random((1000, n)) < expected_number / n) * random.exponential(size, (1000, n))
    unseen = 2**0.5 * size  # the root mean square of an exponential size
    bounds = np.array([_upper_bound(row, 0.95, unseen)[1] for row in losses])
    assert (bounds >= expected_number / n * size).mean() > 0.9
    assert (bounds - losses.mean(axis=1)).mean() < 0.12 * size  # and they are no empty words


def test_few_queries_without_a_loss_show_little(model, parts):
    certificate = rg.EarlyExitRanker(model, "ndcg@5", max_loss=1e-4).fit(parts[2]).certificate_
    assert certificate.saved == 0
    assert certificate.least > 1e-4
    assert f"60 queries can show no loss below {certificate.least:.5f}" in str(certificate)
    # the rule of three: a share of 3 / n of the queries may have a loss that no query showed
    assert certificate.least == pytest.approx(3 * certificate.unseen / 60, rel=0.15)


def test_a_model_of_one_chunk_leaves_nothing_out_and_loses_nothing(model, parts):
    short = model.truncated(20)
    fast = rg.EarlyExitRanker(short, "ndcg@5", max_loss=0.0).fit(parts[2])
    assert fast.certificate_.bound == 0.0
    assert fast.certificate_.saved == 0.0
    assert fast.predict_top(parts[2], 5).saved == 0.0


def test_bolder_with_a_larger_loss(model, parts):
    saved = [
        rg.EarlyExitRanker(model, "ndcg@5", max_loss=loss).fit(parts[1]).certificate_.saved
        for loss in (0.0005, 0.01, 0.05)
    ]
    assert saved == sorted(saved)
    assert saved[0] < saved[2]


def test_no_rule_is_safe_enough(model, parts):
    noisy = rg.QueryDataset(  # labels that the scores say nothing about
        parts[1].X, np.random.default_rng(1).integers(0, 2, parts[1].n_rows), parts[1].qid
    )
    careful = rg.EarlyExitRanker(model, "ndcg@5", max_loss=0.0).fit(noisy)
    if careful.exits_ is None:
        assert careful.certificate_.saved == 0
        assert "no documents are left out" in careful.summary()
    top = careful.predict_top(parts[2], 5)
    assert np.isfinite(top.scores).any()


def test_the_same_for_any_number_of_threads_and_after_loading(model, parts, fast, tmp_path):
    again = rg.EarlyExitRanker(model, "ndcg@5", max_loss=0.01, n_threads=2).fit(parts[1])
    assert np.array_equal(again.exits_.gaps, fast.exits_.gaps)
    assert again.certificate_ == fast.certificate_
    fast.save(tmp_path / "fast.rg")
    loaded = rg.load(tmp_path / "fast.rg")
    assert loaded.certificate_ == fast.certificate_
    for threads in (1, 2):
        top = loaded.predict_top(parts[2], 3, n_threads=threads)
        assert np.array_equal(top.scores, fast.predict_top(parts[2], 3).scores)
    rows = parts[2].X[:300]
    one, other = loaded.scorer().top(rows, 5), fast.scorer().top(rows, 5)
    assert np.array_equal(one.rows, other.rows)
    assert one.saved > 0.3


def test_without_gaps_the_rule_is_exact(model, parts):
    ends = np.array([32, 64, 96, 128, 160])
    scorer = Scorer(model.flat(), Exits(5, ends, np.full(5, 1e9)))
    rows = parts[2].X[:300]
    assert np.array_equal(scorer.top(rows, 5).rows, model.scorer().top(rows, 5).rows)


def test_mistakes_are_named(model, parts, fast):
    with pytest.raises(rg.ParameterError, match="learned for the first 5 of a query"):
        fast.predict_top(parts[2], 6)
    with pytest.raises(rg.ParameterError, match="with a cutoff"):
        rg.EarlyExitRanker(model, "map").fit(parts[1])
    with pytest.raises(rg.ParameterError, match="one sum of trees"):
        rg.EarlyExitRanker(rg.RankSVM().fit(parts[0]), "ndcg@5").fit(parts[1])
    with pytest.raises(rg.DataError, match="at least 5 queries"):
        rg.EarlyExitRanker(model).fit(parts[1].select(np.arange(3)))
    nothing = rg.QueryDataset(parts[1].X, np.zeros(parts[1].n_rows), parts[1].qid)
    with pytest.raises(rg.DataError, match="no loss can be measured"):
        rg.EarlyExitRanker(model).fit(nothing)
