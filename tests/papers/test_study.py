"""Cells of a study: computed once, kept as they come, the same on a cluster."""

from __future__ import annotations

import os
import pickle
import signal
import time

import pytest

from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.ganjisaffar2011 import bags
from rankgrove_papers.sources import Collection, Sources
from rankgrove_papers.study import Study
from tests.papers.running import Tiny, tiny_collection

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed", reason="dask is not installed")


def product(study, a, b):
    return {"product": a * b, "threads": study.n_threads, "scale": study.scale, "pid": os.getpid()}


def broken(study, a, b):
    raise AssertionError("computed again")


def ended_early(study, a, b):
    """Do as a fit does on Ctrl-C: return what there is so far."""
    try:
        if a == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    except KeyboardInterrupt:
        return "half a model"
    return "a model"


def tasks(work):
    return {f"{a} x {b}": (work, a, b) for a in range(3) for b in range(2)}


def test_cells_are_computed_once(tmp_path):
    path = tmp_path / "results.jsonl"
    said = []
    study = Study("small", ResultStore(path, {}), 1, said.append)
    results = study.cells(tasks(product))
    assert said == list(results) == list(tasks(product))
    assert results["2 x 1"]["product"] == 2
    again = Study("small", ResultStore(path, {}), 1, pytest.fail)
    assert again.cells(tasks(broken)) == results
    assert again.cell("2 x 1", broken, 2, 1) == results["2 x 1"]


def test_what_is_done_is_kept_where_a_cell_fails(tmp_path):
    path = tmp_path / "results.jsonl"
    with pytest.raises(AssertionError, match="computed again"):
        Study("small", ResultStore(path, {})).cells({"a": (product, 1, 2), "b": (broken, 1, 2)})
    assert len(ResultStore(path, {})) == 1


def named(study, name, collection, k):
    return f"{name} on {collection.name} {k}"


def test_systems_on_folds_go_fold_by_fold():
    said = []
    study = Study("small", ResultStore(None, {}), 1, said.append)
    results = study.on_folds(Collection("mine", ()), range(1, 3), ("a", "b"), named)
    assert results == {
        "a": ["a on mine 1", "a on mine 2"],
        "b": ["b on mine 1", "b on mine 2"],
    }
    assert said == [f"mine, fold {k}, {name}" for k in (1, 2) for name in "ab"]


def test_a_study_travels_without_its_results():
    store = ResultStore(None, {})
    store.put("a", list(range(10_000)))
    study = Study("full", store, 3, lambda text: None, cluster="local")
    there = pickle.loads(pickle.dumps(study))
    assert (there.scale, there.n_threads, there.cluster, len(there.store)) == ("full", 3, None, 0)
    assert len(pickle.dumps(study)) < 2000


def test_an_experiment_on_a_cluster_has_the_same_table(tmp_path):
    data = Sources.of(tiny_collection(tmp_path / "mine"))
    (experiment,) = (e for e in bags.EXPERIMENTS if e.name.endswith("table4"))
    alone = experiment.run(Tiny("small", ResultStore(None, {}), 1, data=data))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        path = tmp_path / "results.jsonl"
        said = []
        study = Tiny("small", ResultStore(path, {}), 1, said.append, data=data, cluster=client)
        together = experiment.run(study)
        pids = {result["pid"] for result in study.cells(tasks(product)).values()}
    assert together.text == alone.text
    assert os.getpid() not in pids
    assert said[0].endswith("tasks sent to the workers")
    again = Tiny("small", ResultStore(path, {}), 1, pytest.fail, data=data)
    assert experiment.run(again).text == alone.text


def test_what_an_interrupt_ended_early_is_no_result(tmp_path):
    store = ResultStore(tmp_path / "results.jsonl", {"a": 1})
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Study("small", store).cells(tasks(ended_early))
    assert signal.getsignal(signal.SIGINT) is before
    kept = ResultStore(tmp_path / "results.jsonl", {"a": 1})
    assert [key for key in tasks(ended_early) if key in kept] == ["0 x 0", "0 x 1"]
    assert kept["0 x 1"] == "a model"
