"""The table of all rankers: every system runs, results are kept, published figures stand beside."""

from __future__ import annotations

import pytest

from rankgrove.experiments import classical
from tests.experiments.running import run_twice


@pytest.mark.parametrize("experiment", classical.EXPERIMENTS, ids=lambda one: one.name)
def test_every_system_is_in_the_tables(experiment, data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    kept = ["RankBoost", "AdaRank-MAP", "AdaRank-NDCG", "LambdaMART"]
    if experiment.name == "classical-ohsumed":
        kept = ["AdaRank-MAP", "LambdaMART"]
    systems = {name: classical.SYSTEMS[name] for name in kept}
    monkeypatch.setattr(classical, "SYSTEMS", systems)
    found = run_twice(experiment, tmp_path)
    for name in kept:
        assert f"| {name} " in found.text
    published = experiment.name == "classical-mq2008"
    assert ("| RankBoost (published)" in found.text) == published
    assert ("ours / published" in found.text) == published


def test_every_system_can_be_made(tmp_path):
    from rankgrove.experiments.store import ResultStore
    from rankgrove.experiments.study import Study

    for scale in ("small", "full"):
        study = Study(scale, ResultStore(None, {}))
        for make in classical.SYSTEMS.values():
            make(study).check_parameters()
