"""Experiments at a size of seconds, run twice."""

from __future__ import annotations

import dataclasses

import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.study import Study


class Tiny(Study):
    """A study whose sizes are a fiftieth of the small ones."""

    def size(self, small: int, full: int) -> int:
        if small >= 10_000:  # documents that are timed
            return small // 16
        return small if small < 10 else max(12, small // 50)


def tiny_collection(folder, name="mine", n_queries=12):
    """Write a collection of five parts; return its folder."""
    folder.mkdir(exist_ok=True)
    for k in range(1, 6):
        part = rg.make_artificial(n_queries, n_docs=12, n_features=8, seed=k)
        qid = [f"{name}{k}q{q}" for q in part.qid]
        rg.write_letor(rg.QueryDataset(part.X, part.y.clip(0, 2), qid), folder / f"S{k}.txt")
    return folder


def run_twice(experiment, tmp_path, data=None):
    """Run an experiment, and again from what it kept; return its findings."""
    path = tmp_path / "results.jsonl"
    options = {} if data is None else {"data": data}
    first = experiment.run(Tiny("small", ResultStore(path, {"a": 1}), **options))
    assert "|" in first.text
    again = Tiny(
        "small", ResultStore(path, {"a": 1}), say=lambda text: pytest.fail(text), **options
    )
    assert experiment.run(again).text == first.text
    for figure in first.figures.values():
        assert figure.lines
        assert dataclasses.is_dataclass(figure)
    return first
