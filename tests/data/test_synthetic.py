from __future__ import annotations

import numpy as np
import pytest

from rankgrove.data.queries import QueryDataset
from rankgrove.data.synthetic import (
    artificial,
    domains,
    make_artificial,
    make_domains,
    make_web,
)
from rankgrove.data.synthetic import (
    web as web_module,
)
from rankgrove.errors import ParameterError

MAKERS = {
    "artificial": lambda n, **o: make_artificial(n, n_docs=7, n_features=20, **o),
    "web": lambda n, **o: make_web(n, n_docs=7, n_features=40, **o),
    "source": lambda n, **o: make_domains(n, 3, n_docs=7, n_features=20, **o)[0],
    "target": lambda n, **o: make_domains(3, n, n_docs=7, n_features=20, **o)[1],
}


@pytest.fixture(params=list(MAKERS))
def make(request):
    return MAKERS[request.param]


def same(a: QueryDataset, b: QueryDataset) -> bool:
    return (
        np.array_equal(a.X, b.X, equal_nan=True)
        and np.array_equal(a.y, b.y)
        and a.query_ids.tolist() == b.query_ids.tolist()
        and a.query_ptr.tolist() == b.query_ptr.tolist()
    )


def dcg(gains: np.ndarray) -> float:
    return float((gains / np.log2(2 + np.arange(gains.size))).sum())


def mean_ndcg(scores: np.ndarray, data: QueryDataset, k: int = 10) -> float:
    values = []
    for start, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        gains = 2 ** data.y[start:end] - 1
        ideal = dcg(np.sort(gains)[::-1][:k])
        if ideal > 0:
            order = np.argsort(-scores[start:end], kind="stable")
            values.append(dcg(gains[order][:k]) / ideal)
    return float(np.mean(values))


def trained(data: QueryDataset, n_trees: int = 40):
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": "lambdarank", "num_leaves": 15, "verbose": -1, "num_threads": 1}
    group = np.diff(data.query_ptr)
    return lightgbm.train(options, lightgbm.Dataset(data.X, data.y, group=group), n_trees)


# -- all of them ------------------------------------------------------------------------------


def test_forms(make):
    data = make(70)
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert data.n_queries == 70
    assert set(np.unique(data.y)) <= {0, 1, 2, 3, 4}
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1


def test_the_same_seed_gives_the_same_data(make):
    assert same(make(70, seed=3), make(70, seed=3))
    assert not same(make(70, seed=3), make(70, seed=4))
    assert not same(make(70, seed=3), make(70, seed=3, task=1))


@pytest.mark.parametrize("n", [1, 20, 64, 65, 130])
def test_the_beginning_of_a_larger_set_is_the_smaller_set(make, n):
    assert same(make(150).select(range(n)), make(n))


def test_different_blocks_have_different_documents(make):
    data = make(130)
    first, second = data.select([0]).X, data.select([64]).X
    n = min(len(first), len(second))
    assert not np.array_equal(first[:n], second[:n], equal_nan=True)


def test_every_draw_of_a_block_is_its_own():
    one, other = (web_module._draw(0, block, np.full(4, 3)) for block in (0, 1))
    assert not np.isclose(one.nature, other.nature).any()
    # Differences within a query: what the documents have of their own.
    own = [drawn.latents[1::3] - drawn.latents[::3] for drawn in (one, other)]
    assert not np.isclose(*own).any()
    first, second = (domains._hidden((0, "x", number), 4, 3, 6) for number in (0, 1))
    assert not np.isclose(first, second).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_artificial(0), "'n_queries' parameter of make_artificial"),
        (lambda: make_artificial(2, n_docs=1.5), "'n_docs'"),
        (lambda: make_artificial(2, seed="x"), "'seed'"),
        (lambda: make_artificial(2, seed=-1), "'seed' .* whole number of at least 0. Got -1"),
        (lambda: make_web(2, seed=-1), "'seed' parameter of make_web must be a whole number of at"),
        (lambda: make_domains(2, 2, seed=-1), "'seed' parameter of make_domains"),
        (lambda: make_domains(2, 2, task=-1), "'task' .* whole number of at least 0"),
        (lambda: make_artificial(2, labels="skew"), "'skewed' or 'equal' or 'fitted'"),
        (lambda: make_artificial(2, labels=[0.5, 0.4]), "add up to 1"),
        (lambda: make_artificial(2, labels=[1.0]), "two or more"),
        (lambda: make_artificial(2, labels=[1.5, -0.5]), "above 0"),
        (lambda: make_web(2, noise=-1), "'noise' parameter of make_web"),
        (lambda: make_web(2, n_features=0), "'n_features'"),
        (lambda: make_domains(2, 0), "'n_target'"),
        (lambda: make_domains(2, 2, feature_shift=1.5), "'feature_shift'.*between 0 and 1"),
        (lambda: make_domains(2, 2, relevance_shift=-0.5), "'relevance_shift'"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("n_features", [1, 2, 3, 9])
def test_few_features(n_features):
    assert make_artificial(3, 4, n_features).n_features == n_features
    assert make_web(3, 4, n_features).n_features == n_features
    assert make_domains(3, 3, 4, n_features)[1].n_features == n_features


def test_one_document_a_query():
    assert np.diff(make_web(5, n_docs=1, n_features=4).query_ptr).tolist() == [1] * 5


# -- artificial -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "shares"),
    [
        ("skewed", [0.52, 0.33, 0.105, 0.035, 0.01]),
        ("equal", [0.2] * 5),
        ("fitted", [0.5, 0.1, 0.34, 0.055, 0.005]),
        ([0.7, 0.2, 0.1], [0.7, 0.2, 0.1]),
    ],
)
def test_label_shares(labels, shares):
    data = make_artificial(600, labels=labels, seed=9)
    found = np.bincount(data.y.astype(int), minlength=len(shares)) / data.n_rows
    assert found == pytest.approx(shares, abs=0.01)


def test_the_polynomial_is_the_papers():
    """Labels follow the target, computed here term by term in the slowest way."""
    data = make_artificial(12, n_docs=10, n_features=6, labels="equal", seed=5, task=2)
    p = artificial._problem(2, 6)
    targets = []
    for x in data.X.astype(float):
        terms = [
            sum(x[i] * p.v[i] for i in range(6)),
            sum(x[i] * x[p.q[i]] for i in range(6)),
            sum(x[i] * x[p.r[i]] * x[p.s[i]] for i in range(6)),
        ]
        targets.append(sum((t - m) / s for t, m, s in zip(terms, p.mean, p.scale, strict=True)))
    order = np.argsort(targets)
    assert (np.diff(data.y[order]) >= 0).all()
    assert sorted(p.q) == sorted(p.r) == sorted(p.s) == list(range(6))
    assert np.std(p.reference) == pytest.approx(3**-0.5, abs=0.02)


def test_artificial_features_are_uniform():
    X = make_artificial(200).X
    assert X.min() >= -1
    assert X.max() < 1
    assert X.mean() == pytest.approx(0, abs=0.01)
    assert X.var() == pytest.approx(1 / 3, abs=0.01)


# -- web --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web():
    return make_web(400, n_docs=40, seed=1)


def test_web_shape(web):
    found = np.bincount(web.y.astype(int)) / web.n_rows
    assert found == pytest.approx([0.52, 0.33, 0.105, 0.035, 0.01], abs=0.02)
    sizes = np.diff(web.query_ptr)
    assert sizes.mean() == pytest.approx(40, rel=0.1)
    assert sizes.std() > 10
    assert web.n_features == 136
    assert np.isfinite(web.X).all()


def test_web_features(web):
    of_kind: dict[str, list[int]] = {}
    for j, name in enumerate(web.feature_names):
        _, kind, number = name.split(".")
        assert int(number) == j + 1
        of_kind.setdefault(kind, []).append(j)
    X = web.X
    counts = X[:, of_kind["count"]]
    assert (counts == np.floor(counts)).all()
    assert counts.max() > 100 * np.median(counts[counts > 0])
    ratios = X[:, of_kind["ratio"]]
    assert ratios.min() == 0
    assert ratios.max() <= 1
    assert ((X[:, of_kind["sparse"]] == 0).mean(axis=0) > 0.5).all()
    assert (np.ptp(X[:, of_kind["constant"]], axis=0) == 0).all()
    assert len(of_kind["constant"]) >= 2
    for j in of_kind["query"]:
        assert all(
            np.ptp(X[a:b, j]) == 0 for a, b in zip(web.query_ptr, web.query_ptr[1:], strict=False)
        )
        assert np.ptp(X[:, j]) > 0
    logs = np.abs(np.corrcoef(X[:, of_kind["log"]].T))
    assert np.median(logs) > 0.05


def test_web_is_learnable_but_not_by_one_feature(web):
    test = make_web(200, n_docs=40, seed=2)
    learned = mean_ndcg(trained(web).predict(test.X), test)
    single = max(mean_ndcg(s * test.column(j + 1), test) for j in range(136) for s in (1, -1))
    chance = mean_ndcg(np.zeros(test.n_rows), test)
    assert 0.45 < learned < 0.75
    assert chance < single < learned - 0.08


def test_noise_makes_it_harder():
    def learned(noise):
        train = make_web(150, n_docs=30, n_features=40, seed=1, noise=noise)
        test = make_web(150, n_docs=30, n_features=40, seed=2, noise=noise)
        return mean_ndcg(trained(train).predict(test.X), test)

    assert learned(0) > learned(2) + 0.1


# -- domains ----------------------------------------------------------------------------------


def test_no_shift_is_one_domain():
    source, target = make_domains(2000, 2000, feature_shift=0, relevance_shift=0)
    assert not np.isnan(source.X).any()
    # Medians: the exponential features have means that vary much.
    middle = [np.median(d.X, axis=0) for d in (source, target)]
    assert middle[0] == pytest.approx(middle[1], abs=0.06)
    shares = [np.bincount(d.y.astype(int)) / d.n_rows for d in (source, target)]
    assert shares[0] == pytest.approx([0.4, 0.25, 0.2, 0.1, 0.05], abs=0.02)
    assert shares[1] == pytest.approx(shares[0], abs=0.02)


def test_feature_shift_moves_and_removes_features():
    source, target = make_domains(200, 200, feature_shift=1, relevance_shift=0)
    lost, new = (np.isnan(d.X).any(axis=0) for d in (target, source))
    assert lost.sum() == new.sum() == 5
    assert not (lost & new).any()
    assert (np.isnan(target.X).all(axis=0) == lost).all()
    both = ~(lost | new)
    moved = np.abs(source.X[:, both].mean(axis=0) - target.X[:, both].mean(axis=0))
    assert np.median(moved) > 0.3
    less = make_domains(200, 200, feature_shift=0.1, relevance_shift=0)[1]
    assert np.median(np.abs(source.X[:, both].mean(axis=0) - less.X[:, both].mean(axis=0))) < 0.2


def test_relevance_shift_leaves_features_alone():
    a = make_domains(20, 20, relevance_shift=0)
    b = make_domains(20, 20, relevance_shift=1)
    assert same(a[0], b[0])
    assert np.array_equal(a[1].X, b[1].X, equal_nan=True)
    assert not np.array_equal(a[1].y, b[1].y)


def test_the_two_functions_are_uncorrelated():
    reference = domains._problem(0, 50).reference
    assert np.corrcoef(reference.T)[0, 1] == pytest.approx(0, abs=1e-9)
    assert reference.std(axis=0) == pytest.approx([1, 1])
    for shift, correlation in [(0, 1), (0.5, 0.5**0.5), (1, 0)]:
        mixed = domains._mixed(reference, shift)
        assert mixed.std() == pytest.approx(1)
        assert np.corrcoef(mixed, reference[:, 0])[0, 1] == pytest.approx(correlation, abs=1e-9)


def test_domains_can_be_put_together():
    from rankgrove.data.concatenate import concatenate

    assert concatenate(make_domains(4, 3)).n_queries == 7


def test_shifts_mislead_a_source_model_and_data_help_a_target_model():
    def on_target(model, **shifts):
        _, test = make_domains(1, 150, seed=2, **shifts)
        return mean_ndcg(model.predict(test.X), test)

    values = []
    for shift in (0.0, 0.5, 1.0):
        source, target = make_domains(200, 200, feature_shift=0, relevance_shift=shift, seed=1)
        values.append(on_target(trained(source), feature_shift=0, relevance_shift=shift))
    assert values[0] > values[1] + 0.05 > values[2] + 0.1
    shifts = {"feature_shift": 0.0, "relevance_shift": 0.0}
    source, target = make_domains(200, 200, seed=1, **shifts)
    much = on_target(trained(target), **shifts)
    assert much == pytest.approx(values[0], abs=0.03)
    assert on_target(trained(target.select(range(20))), **shifts) < much - 0.03
