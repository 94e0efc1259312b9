"""The table of all rankers: every system runs, results are kept, published figures stand beside."""

from __future__ import annotations

import pytest

from rankgrove_papers import classical
from tests.papers.running import run_twice

pytestmark = pytest.mark.slow


def test_every_system_is_in_the_tables(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    kept = ["RankBoost", "RankBoost, 10 thresholds", "AdaRank-MAP", "AdaRank-NDCG", "SVM-roc"]
    kept += ["LambdaMART"]
    systems = {name: classical.SYSTEMS[name] for name in kept}
    monkeypatch.setattr(classical, "SYSTEMS", systems)
    (experiment,) = classical.EXPERIMENTS
    mq2008, ohsumed = run_twice(experiment, tmp_path).text.split("### ")[1:]
    for name in kept:
        assert f"| {name} " in mq2008
        assert f"| {name} " in ohsumed
    for table in (mq2008, ohsumed):  # how often C was at an edge
        assert table.count("| SVM-roc, C |") == 1
        assert "| RankBoost, C |" not in table
    assert mq2008.startswith("MQ2008: 784 queries, 15,211 documents, 46 features")
    for published in ("| RankBoost (published)", "ours / published"):
        assert published in mq2008
        assert published not in ohsumed
    assert "| RankBoost, 10 thresholds, MAP " in mq2008
    assert mq2008.count("RankBoost (published)") == 1
    for text in (mq2008, ohsumed):
        assert "| RankBoost minus RankBoost, 10 thresholds |" in text
