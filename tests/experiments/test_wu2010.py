"""The experiments run end to end at a size of seconds, and a second run computes nothing."""

from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.experiments import wu2010
from rankgrove.experiments.catalogue import EXPERIMENTS, chosen
from tests.command import run_here as run
from tests.experiments.running import run_twice


@pytest.mark.parametrize("experiment", wu2010.EXPERIMENTS, ids=lambda one: one.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    run_twice(experiment, tmp_path)


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
