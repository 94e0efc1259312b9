"""The experiments of the overview paper run end to end at a size of seconds, and only once."""

from __future__ import annotations

import pytest

from rankgrove_papers.burges2010 import nets, theory
from tests.papers.running import run_twice

pytestmark = pytest.mark.slow

EXPERIMENTS = [*nets.EXPERIMENTS, *theory.EXPERIMENTS]


@pytest.mark.parametrize(
    "experiment", [e for e in EXPERIMENTS if "letor" not in e.name], ids=lambda e: e.name
)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    findings = run_twice(experiment, tmp_path)
    if "optimum" in experiment.name:
        untrained = [line for line in findings.text.splitlines() if "| untrained" in line]
        assert untrained
        assert all("fails" in line for line in untrained)
    if "factorised" in experiment.name:
        assert "to the power" in findings.text


def test_letor(tmp_path, data_dir, monkeypatch):
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    (experiment,) = [e for e in EXPERIMENTS if "letor" in e.name]
    text = run_twice(experiment, tmp_path).text
    assert "MQ2008" in text
    # one fold and one seed of two collections: one choice of the rate per net and collection
    rows = [line.split("|") for line in text.splitlines() if ", rate " in line and "|" in line]
    assert [row[-2].strip() for row in rows] == ["1"] * 8
