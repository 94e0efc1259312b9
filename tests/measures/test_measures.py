"""Names, conventions, special queries, papers' examples, and users' own measures."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.measures.base import REGISTRY, rank
from rankgrove.measures.conventions import CONVENTIONS
from tests.reference import measures as naive

BUILT_IN = ["ndcg", "dcg", "err", "map", "mrr", "p", "recall", "meanndcg", "auc", "pairs"]
BUILT_IN += ["accuracy", "gmap", "rprec", "success", "f1", "rbp", "pfound", "bpref", "infap"]
BUILT_IN += ["judged", "kendall", "spearman"]
rg.measure("map")  # loads the built-in measures


@st.composite
def measures(draw):
    name = draw(st.sampled_from(BUILT_IN))
    cls = REGISTRY[name]
    own = set(cls.__dataclass_fields__)
    values = {"ties": draw(st.sampled_from(cls.tie_rules))}
    values["empty"] = draw(st.sampled_from(["drop", "drop-equal"]) | st.floats(0, 1))
    optional = {
        "gain": st.sampled_from(["exp2", "identity"])
        | st.lists(st.floats(0, 1e6), min_size=2, max_size=5).map(tuple),
        "discount": st.sampled_from(["log2", "ln", "letor"]),
        "relevant": st.floats(-3, 10),
        "max_grade": st.none() | st.floats(0.5, 30),
        "short": st.sampled_from(["keep", "zero"]),
        "denominator": st.sampled_from(["cutoff", "documents" if name == "p" else "all"]),
        "p": st.floats(0, 0.999),
        "decay": st.floats(0, 1),
    }
    for key, strategy in optional.items():
        if key in own:
            values[key] = draw(strategy)
    if cls.cutoff_is != "refused":
        values["cutoff"] = draw(st.integers(1, 50))
    return cls(**values)


@given(measures())
def test_every_measure_is_parsed_back_from_its_name(measure):
    assert rg.measure(str(measure)) == measure
    assert hash(rg.measure(str(measure))) == hash(measure)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_conventions_are_parsed_back(name, convention):
    spec = name + ("@5" if REGISTRY[name].cutoff_is != "refused" else "")
    measure = rg.measure(spec, convention=convention)
    assert rg.measure(str(measure)) == measure
    assert rg.measure(f"{spec}[{convention}]") == measure


def test_bad_labels_of_one_query():
    for labels in ([], [[1, 0]], [np.nan, 1]):
        with pytest.raises(rg.DataError, match="at least one finite number"):
            rg.measure("map").swap_deltas(labels)
        with pytest.raises(rg.DataError, match="at least one finite number"):
            rg.measure("map").value(labels)


def test_names():
    # two conventions say the same of MAP: no name of one of them is put on it
    assert str(rg.measure("map@5[trec]")) == "map@5[empty=0,ties=stable]"
    assert str(rg.measure("ndcg@10")) == "ndcg@10"
    assert str(rg.measure("NDCG@10", "letor")) == "ndcg@10[letor]"
    assert rg.measure("rr@10") == rg.measure("mrr@10")
    assert rg.measure("ap") == rg.measure("map")
    assert rg.measure("ndcg@10[letor,ties=worst]").ties == "worst"
    assert rg.measure("ndcg@10[letor]", "trec").discount == "letor"
    assert rg.measure("ndcg", cutoff=3) == rg.measure("ndcg@3")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ndgc@10", "did you mean 'ndcg'"),
        ("ndcg@", "not a measure's name"),
        ("ndcg@0", "at least 1"),
        ("ndcg@ten", "at least 1"),
        ("ndcg@99999999999999999999", "whole number between 1 and"),
        ("err[max_grade=2000]", "at most 1000"),
        ("p", "as in 'p@10'"),
        ("auc@3", "whole ranking"),
        ("ndcg@10[lettor]", "did you mean 'letor'"),
        ("ndcg[gain=square]", "'exp2', 'identity' or a table"),
        ("ndcg[ties=random]", "one of 'stable', 'worst', 'expected'"),
        ("ndcg[relevant=1]", "no parameter 'relevant'"),
        ("ndcg[empty=often]", "one of 'drop', 'drop-equal'"),
        ("rbp[p=1]", "below 1"),
        ("pfound[decay=2]", "between 0 and 1"),
        ("kendall[ties=stable]", "must be 'together'"),
        ("ndcg[ties=together]", "one of 'stable', 'worst', 'expected'"),
        ("judge@5", "did you mean 'judged'"),
        ("", "not a measure's name"),
        (7, "is a name such as"),
    ],
)
def test_bad_names(spec, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.measure(spec)


def test_svm_map_paper_toy_tables():
    # Tables 1 and 2: two rankings of eight documents.
    relevant = [1, 0, 0, 0, 0, 1, 1, 0]
    h1, h2 = np.arange(8, 0, -1), np.arange(1, 9)
    ap, roc = rg.measure("map"), rg.measure("auc")
    assert [round(ap.query_value(relevant, h), 2) for h in (h1, h2)] == [0.59, 0.51]
    assert [round(roc.query_value(relevant, h), 2) for h in (h1, h2)] == [0.47, 0.53]
    # Tables 3 and 4: eleven documents, five of them relevant. The best accuracies are as printed.
    # The printed MAP of .70 and .64 is the sum of precisions over 4, not over the 5 relevant.
    relevant = [1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]
    h1, h2 = np.arange(11, 0, -1), np.arange(1, 12)
    accuracy = rg.measure("accuracy")
    assert [round(accuracy.query_value(relevant, h), 2) for h in (h1, h2)] == [0.64, 0.73]
    found = [ap.query_value(relevant, h) for h in (h1, h2)]
    assert [round(value * 5 / 4, 2) for value in found] == [0.70, 0.64]
    assert found == pytest.approx(
        [(1 + 2 / 6 + 3 / 7 + 4 / 8 + 5 / 9) / 5, (1 / 3 + 2 / 4 + 3 / 5 + 4 / 6 + 5 / 11) / 5]
    )


def test_overview_paper_err_is_consistent():
    # Section 3: putting the more relevant of two documents lower never raises ERR.
    measure = rg.measure("err", max_grade=4)
    rng = np.random.default_rng(1)
    for _ in range(50):
        labels = rng.integers(0, 5, 12)
        deltas = measure.swap_deltas(labels)
        for i, j in itertools.combinations(range(12), 2):
            assert deltas[i, j] * np.sign(labels[j] - labels[i]) >= -1e-15


def special(measure, labels):
    return rg.measure(measure).value(labels)


def test_queries_with_nothing_relevant():
    assert math.isnan(special("ndcg@10", [0, 0]))
    assert math.isnan(special("ndcg@10", [2, 2]))  # papers: all labels equal
    assert special("ndcg@10[empty=drop]", [2, 2]) == 1.0
    assert special("ndcg@10[lightgbm]", [0, 0]) == 1.0
    assert special("map[lightgbm]", [0, 0]) == 1.0
    assert special("ndcg@10[yahoo]", [0, 0]) == 0.5
    assert special("ndcg@2[letor]", [0, 0]) == 0.0
    assert special("ndcg@2[sklearn]", [0, 0]) == 0.0
    assert math.isnan(special("auc[letor]", [0, 0]))
    assert math.isnan(special("auc[letor]", [1, 1]))
    assert special("accuracy[letor]", [0, 0]) == 1.0


def test_letor_script():
    assert special("ndcg@3[letor]", [1, 0]) == 0.0  # fewer documents than the cutoff
    assert special("ndcg@2[letor]", [0, 1]) == 1.0  # rank 2 is not discounted
    assert special("p@4[letor]", [1, 1]) == 0.5  # padded with irrelevant documents
    assert special("map[mslr]", [1, 2]) == 0.5  # relevant from label 2 on


def test_negative_grades_gain_nothing():
    assert special("ndcg[trec]", [-2, 2, 1]) == special("ndcg[trec]", [0, 2, 1])
    assert special("ndcg", [-2, 2, 1]) == special("ndcg", [0, 2, 1])
    assert special("err", [-2, 2, 1]) == special("err", [0, 2, 1])


def test_labels_that_do_not_fit():
    with pytest.raises(rg.DataError, match=r"needs whole labels from 0 to 2\. Got the label 3"):
        special("dcg[gain=0/1/3]", [3, 0])
    with pytest.raises(rg.DataError, match="needs whole labels"):
        special("dcg[gain=0/1/3]", [0.5, 0])
    with pytest.raises(rg.DataError, match="overflows for the label 2000"):
        special("ndcg", [2000, 0])
    with pytest.raises(rg.DataError, match="max_grade is 2, but the data has the label 3"):
        special("err[max_grade=2]", [3, 0])
    assert special("ndcg", [31, 30, 0]) == 1.0


def test_err_uses_the_grade_scale_of_the_data_set_not_of_the_query():
    data = rg.QueryDataset(None, [1, 0, 2, 0], qid=[1, 1, 2, 2])
    result = rg.evaluate([1.0, 0, 1, 0], data, "err")
    assert result.per_query["err"].tolist() == [1 / 4, 3 / 4]


def test_ties_at_the_cutoff():
    # One relevant document among three tied ones that straddle the cutoff.
    measure = rg.measure("p@2")
    assert measure.query_value([1, 1, 0, 0], [3, 1, 1, 1]) == pytest.approx((1 + 1 / 3) / 2)
    assert measure.with_(ties="stable").query_value([1, 1, 0, 0], [3, 1, 1, 1]) == 1.0
    assert measure.with_(ties="worst").query_value([1, 1, 0, 0], [3, 1, 1, 1]) == 0.5


def test_large_tied_groups_stay_exact():
    # 1,000 tied documents, 5 relevant: the closed forms against their elementary values.
    labels = np.zeros(1000)
    labels[:5] = 1
    scores = np.zeros(1000)
    assert rg.measure("p@10").query_value(labels, scores) == pytest.approx(0.005, rel=1e-12)
    assert rg.measure("auc").query_value(labels, scores) == pytest.approx(0.5, rel=1e-12)
    assert rg.measure("pairs").query_value(labels, scores) == pytest.approx(0.5, rel=1e-12)
    chance = [math.comb(1000 - j, 4) / math.comb(1000, 5) for j in range(1, 997)]
    expected = math.fsum(p / j for j, p in enumerate(chance, 1))
    assert rg.measure("mrr").query_value(labels, scores) == pytest.approx(expected, rel=1e-10)
    # ERR of binary labels with R = 1/2: stop at the m-th relevant document with chance 2^-m.
    err = rg.measure("err", max_grade=1).query_value(labels, scores)
    rng = np.random.default_rng(0)
    sample = [naive.err(rng.permutation(labels).tolist(), max_grade=1) for _ in range(4000)]
    assert err == pytest.approx(np.mean(sample), abs=4 * np.std(sample) / 60)
    best = rg.measure("accuracy").query_value(labels, scores)
    sample = [naive.best_accuracy(rng.permutation(labels)[:60].tolist()) for _ in range(10)]
    assert 0.995 <= best <= 1.0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    )
)
def test_expected_values_do_not_depend_on_row_order(both):
    rows, shuffled = both
    for spec in ["ndcg@5", "err[max_grade=4]", "map", "mrr", "p@3", "meanndcg", "auc", "pairs"]:
        measure = rg.measure(spec)
        a = measure.query_value([l for l, _ in rows], [s for _, s in rows])
        b = measure.query_value([l for l, _ in shuffled], [s for _, s in shuffled])
        assert a == b or (math.isnan(a) and math.isnan(b))


@given(st.lists(st.floats(allow_nan=False, width=16), min_size=1, max_size=200))
def test_ranking_is_a_stable_descending_sort(scores):
    scores = np.array(scores)
    ranking = rank(scores, np.array([0, scores.size]))
    np.testing.assert_array_equal(ranking.order, np.argsort(-scores, kind="stable"))
    ordered = scores[ranking.order]
    np.testing.assert_array_equal(ranking.tied[1:], ordered[1:] == ordered[:-1])
    assert ranking.retrieved[0] == (scores > -np.inf).sum()


def test_prepare_refuses_queries_without_documents():
    with pytest.raises(rg.DataError, match="at least one document"):
        rg.measure("map").prepare(np.ones(3), np.array([0, 3, 3]))


# -- users' own measures ------------------------------------------------------------------------


@pytest.fixture
def registry():
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.usefixtures("registry")
def test_own_measure_equals_the_built_in_one():
    @rg.register_measure("my_p")
    def precision(labels, k):
        hits = 0
        for i in range(k):
            if labels[i] >= 1:
                hits += 1
        return hits / k

    rng = np.random.default_rng(0)
    data = rg.QueryDataset(None, rng.integers(0, 3, 400), qid=np.repeat(np.arange(40), 10))
    scores = rng.integers(0, 4, 400).astype(float)  # many ties
    for ties in ("stable", "worst"):
        own, built_in = rg.measure("my_p@3", ties=ties), rg.measure("p@3", ties=ties)
        got = rg.evaluate(scores, data, [own, built_in])
        a, b = got.per_query.values()
        np.testing.assert_allclose(a, b, atol=1e-15)
    labels = rng.integers(0, 3, 9)
    np.testing.assert_allclose(
        rg.measure("my_p@3").swap_deltas(labels), rg.measure("p@3").swap_deltas(labels), atol=1e-15
    )
    assert str(rg.measure("my_p@3")) == "my_p@3"
    assert rg.measure("my_p@3") == rg.measure(str(rg.measure("my_p@3")))


@pytest.mark.usefixtures("registry")
def test_own_measure_expectation_is_exact_for_few_arrangements():
    rg.register_measure("first_label", lambda labels: labels[0] * 10 + labels[1])
    labels, scores = [3, 1, 0, 2, 2], [1, 1, 1, 0, 0]
    orders = itertools.permutations([3, 1, 0])
    expected = np.mean([10 * a + b for a, b, _ in orders])
    got = rg.measure("first_label").query_value(labels, scores)
    assert got == pytest.approx(expected, rel=1e-12)
    many = rg.measure("first_label").query_value(np.arange(40), np.zeros(40))
    assert many == pytest.approx(11 * 19.5, rel=0.1)  # sampled, but always the same
    assert many == rg.measure("first_label").query_value(np.arange(40), np.zeros(40))


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_an_index_out_of_bounds_is_an_error():
    rg.register_measure("third", lambda labels: labels[2])
    assert rg.measure("third").value([0, 1, 2]) == 2.0
    with pytest.raises(rg.ParameterError, match=r"'third' failed .*single document"):
        rg.measure("third").value([0, 1])
    data = rg.QueryDataset(None, [1, 0, 1, 0, 1], qid=[1, 1, 1, 2, 2])
    with pytest.raises(rg.ParameterError, match="'third' failed"):
        rg.evaluate(np.arange(5.0), data, "third")


@pytest.mark.usefixtures("registry")
def test_own_delta_is_used():
    rg.register_measure(
        "labelled", lambda labels: labels[0] * 1.0, delta=lambda labels, i, j: 42.0 * (i < j)
    )
    deltas = rg.measure("labelled").swap_deltas([1, 0, 2])
    assert deltas[0, 1] == deltas[1, 2] == 42.0


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_bad_own_measures():
    with pytest.raises(rg.ParameterError, match="built-in"):
        rg.register_measure("ndcg", lambda labels: 1.0)
    with pytest.raises(rg.ParameterError, match="built-in"):
        rg.register_measure("rr", lambda labels: 1.0)
    with pytest.raises(rg.ParameterError, match="lower-case"):
        rg.register_measure("My Measure", lambda labels: 1.0)
    with pytest.raises(rg.ParameterError, match="must be a function"):
        rg.register_measure("mine", 3)
    with pytest.raises(rg.ParameterError, match=r"must take \(labels, i, j\)"):
        rg.register_measure("mine", lambda labels: 1.0, delta=lambda labels: 0.0)
    with pytest.raises(rg.ParameterError, match=r"must take \(labels\) or \(labels, k\)"):
        rg.register_measure("mine", lambda labels, k, more: 1.0)
    rg.register_measure("mine", lambda labels: labels)
    with pytest.raises(rg.ParameterError, match="must return one number"):
        rg.measure("mine").value([1, 0])
    rg.register_measure("mine", lambda labels: float(str(labels).strip()))
    with pytest.raises(rg.ParameterError, match="cannot be compiled"):
        rg.measure("mine").value([1, 0])


def test_shuffling_stays_within_tied_groups_and_is_even():
    from rankgrove.measures._custom_kernels import shuffle_arrangement

    tied = np.array([False, True, True, False, False, True])  # groups of 3, 1 and 2
    state = np.array([1], np.uint64)
    g = np.arange(6.0)
    orders: Counter[tuple[float, ...]] = Counter()
    for _ in range(6000):
        shuffle_arrangement(g, tied, state)
        orders[tuple(g)] += 1
    assert len(orders) == 3 * 2 * 1 * 2
    for order in orders:
        assert (set(order[:3]), order[3], set(order[4:])) == ({0, 1, 2}, 3, {4, 5})
    assert all(abs(count - 500) < 5 * 22 for count in orders.values())  # five deviations


def test_pfound_takes_chances():
    assert rg.measure("pfound").query_value([0.5, 1.0], [2, 1]) == pytest.approx(0.5 + 0.5 * 0.85)
    with pytest.raises(
        rg.DataError, match="needs probabilities from 0 to 1, but the data has the label 3"
    ):
        rg.measure("pfound").query_value([0, 3], [2, 1])


def test_geometric_mean():
    data = rg.QueryDataset(None, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    found = rg.evaluate([2.0, 1, 1, 2], data, ["gmap", "map"])
    np.testing.assert_allclose(found.per_query["gmap"], np.log([1.0, 0.5]))
    assert found.mean["gmap"] == pytest.approx(math.sqrt(0.5))
    both = rg.compare({"a": [2.0, 1, 1, 2], "b": [1.0, 2, 1, 2]}, data, "gmap")
    assert both.mean == pytest.approx({"a": math.sqrt(0.5), "b": 0.5})


def test_a_run_without_a_query_has_the_least_geometric_mean():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 1, "b": 0}}
    with pytest.warns(UserWarning, match="lacks 1 of 2"):
        found = rg.evaluate({"1": {"a": 1.0}}, qrels, ["gmap", "judged@5"], "trec")
    assert found.mean["gmap"] == pytest.approx(math.sqrt(1e-5))
    assert found.mean["judged@5"] == 0.5


def test_documents_that_are_not_judged():
    run = {"1": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    qrels = {"1": {"b": 0, "d": 1, "e": 0, "c": -1}}
    found = rg.evaluate(run, qrels, ["judged@2", "bpref", "map"], "trec")
    assert found.mean == {"judged@2": 0.5, "bpref": 0.0, "map": 0.25}
    data = rg.QueryDataset(None, [0, 1], qid=[1, 1])
    assert rg.evaluate([1, 2], data, "judged@2").mean == {"judged@2": 1.0}


@pytest.mark.parametrize("n", [1, 7, 16, 17, 33, 64, 65, 200, 1000])
def test_rankings_of_long_queries_are_sorted(n):
    rng = np.random.default_rng(n)
    for scores in (rng.normal(size=n), rng.integers(0, 5, n) * 1.0, np.arange(n) * 1.0):
        ranking = rank(scores, np.array([0, n]), 1)
        np.testing.assert_array_equal(ranking.order, np.argsort(-scores, kind="stable"))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("P_10", "p@10"),
        ("P.5", "p@5"),
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.20", "ndcg@20"),
        ("map_cut_10", "map@10"),
        ("recall_100", "recall@100"),
        ("success_1", "success@1"),
        ("recip_rank", "mrr"),
        ("Rprec", "rprec"),
        ("infAP", "infap"),
        ("bpref", "bpref"),
        ("gm_map", "gmap"),
        ("P_10[relevant=2]", "p@10[relevant=2]"),
    ],
)
def test_names_of_trec_eval(theirs, ours):
    assert rg.measure(theirs) == rg.measure(ours)
    assert rg.measure(theirs, "trec") == rg.measure(ours, "trec")


@pytest.mark.parametrize("name", ["iprec_at_recall_0.10", "P_0", "ndcg_cut", "P_x", "set_P"])
def test_names_of_trec_eval_that_there_are_not(name):
    with pytest.raises(rg.ParameterError):
        rg.measure(name)
