"""The experiments of the overview paper run end to end at a size of seconds, and only once."""

from __future__ import annotations

import pytest

from rankgrove.experiments import burges2010, burges2010_theory
from tests.experiments.running import run_twice

pytestmark = pytest.mark.slow

EXPERIMENTS = [*burges2010.EXPERIMENTS, *burges2010_theory.EXPERIMENTS]


@pytest.mark.parametrize(
    "experiment", [one for one in EXPERIMENTS if "letor" not in one.name], ids=lambda one: one.name
)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    found = run_twice(experiment, tmp_path)
    if "optimum" in experiment.name:
        untrained = [line for line in found.text.splitlines() if "| untrained" in line]
        assert untrained
        assert all("fails" in line for line in untrained)
    if "factorised" in experiment.name:
        assert "to the power" in found.text


def test_letor(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    (experiment,) = [one for one in EXPERIMENTS if "letor" in one.name]
    text = run_twice(experiment, tmp_path).text
    assert "MQ2008" in text
    # one fold and one seed of two collections: one choice of the rate per net and collection
    rows = [line.split("|") for line in text.splitlines() if ", rate " in line and "|" in line]
    assert [row[-2].strip() for row in rows] == ["1"] * 8
