"""The experiments run end to end at a size of seconds, and a second run computes nothing."""

from __future__ import annotations

import dataclasses

import pytest

import rankgrove as rg
from rankgrove.experiments import wu2010
from rankgrove.experiments.catalogue import EXPERIMENTS, chosen
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study
from tests.command import run_here as run


class Tiny(Study):
    """A study whose sizes are a fiftieth of the small ones."""

    def size(self, small: int, full: int) -> int:
        return small if small < 10 else max(12, small // 50)


@pytest.mark.parametrize("experiment", wu2010.EXPERIMENTS, ids=lambda one: one.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    path = tmp_path / "results.jsonl"
    first = experiment.run(Tiny("small", ResultStore(path, {"a": 1})))
    assert "|" in first.text
    again = Tiny("small", ResultStore(path, {"a": 1}), say=lambda text: pytest.fail(text))
    assert experiment.run(again).text == first.text
    for figure in first.figures.values():
        assert figure.lines
        assert dataclasses.is_dataclass(figure)


def test_names():
    assert [one.name for one in chosen("wu2010-table1")] == ["wu2010-table1"]
    assert len(chosen("all")) == len(EXPERIMENTS)
    with pytest.raises(rg.ParameterError, match="wu2010-table1"):
        chosen("wu2010-tabel1")


def test_the_command_lists_experiments_and_refuses_others():
    out, _ = run("reproduce")
    assert "wu2010-table1" in out
    _, error = run("reproduce", "nothing", status=2)
    assert "no experiment 'nothing'" in error
