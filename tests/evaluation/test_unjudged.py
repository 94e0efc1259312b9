"""Unjudged documents: condensed lists, and bounds that brute force over all grades confirms."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import rankgrove as rg

SPECS = [
    *("dcg@3", "dcg", "ndcg@3", "ndcg", "err", "pfound[gain=exp2]", "p@2", "mrr", "success@2"),
    *("rbp", "recall@3", "f1@3", "rprec", "map", "map@3", "gmap", "auc", "accuracy"),
    *("map[relevant=2]", "ndcg@4[gain=0/5/1]", "map@3[denominator=cutoff]"),
]
GRADES = (0, 1, 2)


def drawn(seed, ties=False):
    """Return a small run and judgements; the first query has every grade."""
    rng = np.random.default_rng(seed)
    run, qrels = {"full": {"x": 1.0}}, {"full": {"x": 2, "y": 1, "z": 0}}
    for q in ("a", "b"):
        documents = [f"d{i}" for i in range(rng.integers(2, 8))]
        scores = rng.integers(0, 4, len(documents)) if ties else rng.permutation(len(documents))
        run[q] = dict(zip(documents, scores.astype(float).tolist(), strict=True))
        unjudged = set(rng.choice(documents, min(4, len(documents)), replace=False))
        judged = [d for d in documents if d not in unjudged] + [f"e{i}" for i in range(2)]
        qrels[q] = {d: int(rng.choice(GRADES, p=[0.6, 0.2, 0.2])) for d in judged}
    return run, qrels


def brute_force(run, qrels, specs, convention):
    """Return query -> spec -> the values with all grades of its unjudged documents."""
    found = {}
    for q in ("a", "b"):
        unjudged = [d for d in run[q] if d not in qrels[q]]
        judged_alone = rg.evaluate(run, qrels, specs, convention)
        kept = {s for s in specs if q not in judged_alone.dropped[s]}
        values = {spec: [] for spec in specs}
        for grades in itertools.product(GRADES, repeat=len(unjudged)):
            known = qrels | {q: qrels[q] | dict(zip(unjudged, grades, strict=True))}
            result = rg.evaluate(run, known, specs, convention)
            place = result.query_ids.tolist().index(q)
            for spec in kept:
                values[spec].append(result.per_query[spec][place])
        found[q] = values
    return found


@pytest.mark.slow
@pytest.mark.parametrize("convention", ["trec", "papers", "yahoo", "lightgbm"])
def test_bounds_are_those_of_brute_force(convention):
    for seed in range(8):
        run, qrels = drawn(seed, ties=seed % 2 == 1)
        result = rg.evaluate(run, qrels, SPECS, convention, unjudged="bounds")
        for q, values in brute_force(run, qrels, SPECS, convention).items():
            place = result.query_ids.tolist().index(q)
            for spec in SPECS:
                low, high = (one[place] for one in result.per_query_bounds[spec])
                note = f"{spec} {convention} {seed} {q}"
                if not values[spec]:
                    assert np.isnan([low, high]).all(), note
                    continue
                assert low == pytest.approx(np.nanmin(values[spec]), abs=1e-12), note
                assert high == pytest.approx(np.nanmax(values[spec]), abs=1e-12), note
                assert low <= result.per_query[spec][place] <= high, note


def test_bounds_of_a_known_case():
    run, qrels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"b": 1, "d": 1}}
    result = rg.evaluate(run, qrels, ["p@2", "recall@3", "mrr"], unjudged="bounds")
    assert result.bounds["p@2"] == (0.5, 1.0)
    assert result.bounds["recall@3"] == (0.5, 0.75)  # a and c relevant: 3 of 4
    assert result.bounds["mrr"] == (0.5, 1.0)
    assert "worst    best" in str(result)
    assert "worst" in result._repr_html_()


def test_many_unjudged_documents_are_quick_and_exact():
    """Monte Carlo never beats the bounds of a long list, and comes near to them."""
    rng = np.random.default_rng(0)
    documents = [f"d{i}" for i in range(300)]
    run = {"q": {d: float(-i) for i, d in enumerate(documents)}}
    judged = {d: int(rng.integers(0, 5)) for d in rng.choice(documents, 40, replace=False)}
    result = rg.evaluate(run, {"q": judged | {"z": 4}}, ["ndcg", "map"], unjudged="bounds")
    low, high = result.bounds["ndcg"]
    assert 0 < low < result.mean["ndcg"] < high <= 1
    unjudged = [d for d in documents if d not in judged]
    for probability in (0.05, 0.3, 0.9):
        grades = 4 * (rng.random(len(unjudged)) < probability)
        known = {"q": judged | {"z": 4} | dict(zip(unjudged, grades.tolist(), strict=True))}
        for name, value in rg.evaluate(run, known, ["ndcg", "map"]).mean.items():
            worst, best = result.bounds[name]
            assert worst <= value <= best


def test_without_unjudged_documents_the_bounds_are_the_value():
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 2}}
    result = rg.evaluate(run, qrels, ["ndcg", "map"], unjudged="bounds")
    for name, mean in result.mean.items():
        assert result.bounds[name] == (mean, mean)


@pytest.mark.parametrize("seed", range(5))
def test_condensed_lists_are_runs_without_the_documents(seed):
    run, qrels = drawn(seed)
    specs = ["ndcg@3", "map", "p@2", "bpref"]
    result = rg.evaluate(run, qrels, specs, unjudged="condensed")
    judged = {
        q: {d: s for d, s in documents.items() if d in qrels[q]} for q, documents in run.items()
    }
    judged = {q: documents or {"none": 0.0} for q, documents in judged.items()}
    expected = rg.evaluate(judged, qrels, specs)
    assert result.mean == expected.mean
    assert result.mean["bpref"] == rg.evaluate(run, qrels, "bpref").mean["bpref"]
    assert "left out of the rankings" in str(result)


@pytest.mark.parametrize("spec", ["bpref", "infap", "judged@5", "kendall", "pairs", "meanndcg"])
def test_measures_without_bounds_are_refused_by_name(spec):
    run, qrels = drawn(0)
    with pytest.raises(rg.ParameterError, match=f"^{spec} has no bounds"):
        rg.evaluate(run, qrels, spec, unjudged="bounds")


def test_what_does_not_fit_is_refused():
    run, qrels = drawn(0)
    with pytest.raises(rg.ParameterError, match="judged@5 is 1 on condensed lists"):
        rg.evaluate(run, qrels, "judged@5", unjudged="condensed")
    with pytest.raises(rg.ParameterError, match="the order of tied documents"):
        rg.evaluate(run, qrels, "map[ties=worst]", unjudged="bounds")
    with pytest.raises(rg.ParameterError, match="'unjudged' parameter"):
        rg.evaluate(run, qrels, "map", unjudged="left out")
    data = rg.QueryDataset(None, [1, 0], qid=[1, 1])
    with pytest.raises(rg.DataError, match="needs a run and qrels"):
        rg.evaluate([1, 2], data, "map", unjudged="bounds")


def test_bounds_are_written(tmp_path):
    run, qrels = drawn(3)
    result = rg.evaluate(run, qrels, ["map", "mrr"], unjudged="bounds")
    text = json.loads(result.to_json(tmp_path / "out.json"))
    assert text["measures"][0]["worst"] == result.bounds["map"][0]
    assert text["per_query_bounds"]["mrr"]["best"] == result.per_query_bounds["mrr"][1].tolist()
    header = result.to_csv().splitlines()[0]
    assert header == "qid,map,mrr,map worst,map best,mrr worst,mrr best"


@pytest.mark.parametrize("unjudged", ["irrelevant", "condensed", "bounds"])
def test_compare_treats_unjudged_documents_as_evaluate_does(unjudged):
    (run, qrels), (other, _) = drawn(3), drawn(3)
    other = {q: {d: -s for d, s in documents.items()} for q, documents in other.items()}
    found = rg.compare({"a": run, "b": other}, qrels, "ndcg@3", unjudged=unjudged)
    for name, system in (("a", run), ("b", other)):
        alone = rg.evaluate(system, qrels, "ndcg@3", unjudged=unjudged)
        assert found.mean[name] == alone.mean["ndcg@3"]
        if unjudged == "bounds":
            assert found.bounds[name] == alone.bounds["ndcg@3"]
    assert found.to_dict()["unjudged"] == unjudged
    for text in (str(found), found._repr_html_()):
        assert ("best" in text) == (unjudged == "bounds")
    assert ("left out of the rankings" in str(found)) == (unjudged == "condensed")


def test_bounds_of_a_comparison_are_over_the_common_queries():
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    with pytest.warns(UserWarning, match="lacks"):
        found = rg.compare(
            {"a": run, "b": {"q1": run["q1"]}},
            qrels,
            "p@2",
            missing_queries="drop",
            unjudged="bounds",
        )
    assert found.query_ids.tolist() == ["q1"]
    assert found.bounds == {"a": (0.5, 1.0), "b": (0.5, 1.0)}


def test_compare_refuses_treatments_as_evaluate_does():
    run, qrels = drawn(1)
    with pytest.raises(rg.ParameterError, match="'unjudged' parameter of compare"):
        rg.compare({"a": run, "b": run}, qrels, "map", unjudged="none")
    with pytest.raises(rg.ParameterError, match="bpref has no bounds"):
        rg.compare({"a": run, "b": run}, qrels, "bpref", unjudged="bounds")
    data = rg.make_web(5, seed=1)
    with pytest.raises(rg.DataError, match="needs a run and qrels"):
        rg.compare({"a": data.column(1), "b": data.column(2)}, data, "map", unjudged="condensed")
