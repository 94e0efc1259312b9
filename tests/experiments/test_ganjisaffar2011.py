"""The experiments of the BL-MART paper run end to end on a part of MQ2008, and only once."""

from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.experiments import ganjisaffar2011, ganjisaffar2011_tuning
from tests.experiments.running import run_twice

EXPERIMENTS = [*ganjisaffar2011.EXPERIMENTS, *ganjisaffar2011_tuning.EXPERIMENTS]


@pytest.fixture
def small_folds(data_dir, monkeypatch):
    """Give the experiments the first queries of every part, in one fold."""
    folder = data_dir / "mq2008"
    parts = [rg.read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
    folds = list(rg.letor_folds([part.select(range(15)) for part in parts]))[:1]
    for module in (ganjisaffar2011, ganjisaffar2011_tuning):
        monkeypatch.setattr(module, "mq2008_folds", lambda _: folds)


@pytest.mark.usefixtures("small_folds")
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    found = run_twice(experiment, tmp_path)
    assert "MQ2008" in found.text


def test_absent_data_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKGROVE_DATA", str(tmp_path))
    with pytest.raises(rg.DataError, match=r"'mq2008'.*set RANKGROVE_DATA"):
        ganjisaffar2011.mq2008_folds(None)
