"""The Trada paper's experiments run end to end in seconds; a second run computes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.experiments import chen2008, chen2008_letor
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study


class Tiny(Study):
    """A study of a few queries and trees."""

    def size(self, small: int, full: int) -> int:
        return min(small, 2) if small < 10 else max(8, small // 100)


@pytest.mark.parametrize("experiment", chen2008.EXPERIMENTS, ids=lambda one: one.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(chen2008, "FOLDS", 2)
    monkeypatch.setattr(chen2008, "BETAS", (1.0, 10.0))
    quick = {"beta": "cv", "betas": (1.0, 10.0), "folds": 2, "extra_trees": 2}
    monkeypatch.setitem(chen2008.METHODS, "ADP cv", quick)
    path = tmp_path / "results.jsonl"
    first = experiment.run(Tiny("small", ResultStore(path, {"a": 1}), 1))
    assert "|" in first.text
    again = Tiny("small", ResultStore(path, {"a": 1}), 1, say=lambda text: pytest.fail(text))
    assert experiment.run(again).text == first.text
    for figure in first.figures.values():
        assert figure.lines


def test_the_sizes_are_the_papers():
    full = Study("full", ResultStore(None, {}))
    assert chen2008.sizes(full) == [200, 400, 600, 800, 1000]
    assert chen2008.middle(full) == 600


def test_samples_are_apart_from_what_is_tested():
    target = rg.make_domains(1, 20, n_docs=5, seed=1)[1]
    tested = []
    for train, test in chen2008.samples(target, 10):
        assert train.n_queries == 10
        assert not set(train.query_ids) & set(test.query_ids)
        tested += list(test.query_ids)
    assert sorted(tested) == sorted(target.query_ids)


def test_grades_and_measure():
    data = rg.QueryDataset(None, [4, 0, 2], qid=[1, 1, 1])
    grades = chen2008.graded(data)
    assert grades.y.tolist() == [10, 0, 3]
    (value,) = rg.evaluate([3.0, 2.0, 1.0], grades, chen2008.MEASURE).mean.values()
    assert value == pytest.approx(10 / np.log(2) + 3 / np.log(4))


def test_short_lists_and_long_ones(data_dir):
    data = rg.read_letor(data_dir / "ohsumed" / "S1.txt.gz")
    short, long = chen2008_letor.short_and_long(data)
    assert short.n_queries + long.n_queries == data.n_queries
    assert np.diff(short.query_ptr).max() < np.diff(long.query_ptr).min()
