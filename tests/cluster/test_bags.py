"""Bags and tuning on a cluster, and killed in the middle: the same bits as in one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.tuning import trial_runner
from rankgrove.tuning.result_store import ResultStore

pytestmark = pytest.mark.slow

BASE = rg.LambdaMART(n_trees=6, n_leaves=4, min_leaf=3, query_fraction=0.7)


def sets():
    return [rg.make_web(n, n_docs=10, n_features=5, seed=s) for n, s in ((30, 1), (12, 2), (12, 3))]


def test_a_bag_is_the_same_on_a_cluster(client, tmp_path):
    train, valid, _ = sets()
    here = rg.BaggedRanker(BASE, 5).fit(train, valid=valid)
    there = rg.BaggedRanker(BASE, 5, cluster=client).fit(train, valid=valid)
    np.testing.assert_array_equal(here.out_of_bag_scores_, there.out_of_bag_scores_)
    here.save(tmp_path / "here.rg")
    there.save(tmp_path / "there.rg")
    assert (tmp_path / "here.rg").read_bytes() == (tmp_path / "there.rg").read_bytes()


def test_tuning_is_the_same_on_a_cluster_with_a_worker_killed(client, tmp_path, monkeypatch):
    space = {"n_leaves": [2, 4], "learning_rate": [0.1, 0.4]}
    here = rg.tune(BASE, sets(), space, n_seeds=2)
    pids = list(client.run(os.getpid).values())
    told = []

    class Killing(ResultStore):
        def put(self, key, value):
            super().put(key, value)
            told.append(key)
            if len(told) == 2:
                os.kill(pids[0], signal.SIGKILL)

    monkeypatch.setattr(trial_runner, "ResultStore", Killing)
    there = rg.tune(BASE, sets(), space, n_seeds=2, cluster=client, store=tmp_path / "trials.jsonl")
    monkeypatch.undo()
    assert len(told) == len(set(told)) == 8
    for one, other in zip(here.trials, there.trials, strict=True):
        assert one.parameters == other.parameters
        assert one.values == other.values
    again = rg.tune(BASE, sets(), space, n_seeds=2, store=tmp_path / "trials.jsonl")
    assert [t.values for t in again.trials] == [t.values for t in here.trials]


def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    script = textwrap.dedent("""
        import os, signal, sys, rankgrove as rg
        from rankgrove.rankers.ensembles import bag_folder
        at, folder, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        train, valid = (rg.make_web(20, n_docs=8, n_features=4, seed=s) for s in (1, 2))
        write = bag_folder.BagFolder.write
        def then_die(self, model, ranker):
            write(self, model, ranker)
            if model == at:
                os.kill(os.getpid(), signal.SIGKILL)
        bag_folder.BagFolder.write = then_die
        base = rg.LambdaMART(n_trees=4, n_leaves=4, min_leaf=3)
        rg.BaggedRanker(base, 4, checkpoint=folder or None).fit(train, valid=valid).save(out)
    """)

    def run(at, folder, out):
        words = [sys.executable, "-c", script, str(at), folder, out]
        return subprocess.run(words, capture_output=True, cwd=tmp_path).returncode

    assert run(1, "models", "a.rg") == -signal.SIGKILL
    assert not (tmp_path / "a.rg").exists()
    assert run(9, "models", "a.rg") == 0
    assert run(9, "", "b.rg") == 0
    assert (tmp_path / "a.rg").read_bytes() == (tmp_path / "b.rg").read_bytes()
    assert np.isfinite(rg.load(tmp_path / "a.rg").weights_).all()
