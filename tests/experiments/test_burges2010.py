"""The experiments of the overview paper run end to end at a size of seconds, and only once."""

from __future__ import annotations

import dataclasses

import pytest

from rankgrove.experiments import burges2010, burges2010_theory
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study


class Tiny(Study):
    """A study whose sizes are a fiftieth of the small ones."""

    def size(self, small: int, full: int) -> int:
        if small >= 10_000:  # documents that are timed
            return small // 16
        return small if small < 10 else max(8, small // 50)


def twice(experiment, tmp_path):
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


EXPERIMENTS = [*burges2010.EXPERIMENTS, *burges2010_theory.EXPERIMENTS]


@pytest.mark.parametrize(
    "experiment", [one for one in EXPERIMENTS if "letor" not in one.name], ids=lambda one: one.name
)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    found = twice(experiment, tmp_path)
    if "optimum" in experiment.name:
        untrained = [line for line in found.text.splitlines() if "| untrained" in line]
        assert untrained
        assert all("fails" in line for line in untrained)
    if "factorised" in experiment.name:
        assert "to the power" in found.text


def test_letor(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    (experiment,) = [one for one in EXPERIMENTS if "letor" in one.name]
    assert "MQ2008" in twice(experiment, tmp_path).text
