"""Experiments at a size of seconds, run twice."""

from __future__ import annotations

import dataclasses

import pytest

from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study


class Tiny(Study):
    """A study whose sizes are a fiftieth of the small ones."""

    def size(self, small: int, full: int) -> int:
        if small >= 10_000:  # documents that are timed
            return small // 16
        return small if small < 10 else max(12, small // 50)


def run_twice(experiment, tmp_path):
    """Run an experiment, and again from what it kept; return its findings."""
    path = tmp_path / "results.jsonl"
    first = experiment.run(Tiny("small", ResultStore(path, {"a": 1})))
    assert "|" in first.text
    again = Tiny("small", ResultStore(path, {"a": 1}), say=lambda text: pytest.fail(text))
    assert experiment.run(again).text == first.text
    for figure in first.figures.values():
        assert figure.lines
        assert dataclasses.is_dataclass(figure)
    return first
