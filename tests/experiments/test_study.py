"""Cells of a study: computed once, kept as they come, the same on a cluster."""

from __future__ import annotations

import os
import pickle
import signal
import time

import pytest

import rankgrove as rg
from rankgrove.experiments import ganjisaffar2011
from rankgrove.experiments.sources import Collection, Sources
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Choices, Study, edge_report, mean_and_reach, variant_of
from tests.experiments.running import Tiny, tiny_collection

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
    found = study.cells(tasks(product))
    assert said == list(found) == list(tasks(product))
    assert found["2 x 1"]["product"] == 2
    again = Study("small", ResultStore(path, {}), 1, pytest.fail)
    assert again.cells(tasks(broken)) == found
    assert again.cell("2 x 1", broken, 2, 1) == found["2 x 1"]


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
    found = study.on_folds(Collection("mine", ()), range(1, 3), ("a", "b"), named)
    assert found == {
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
    (experiment,) = (e for e in ganjisaffar2011.EXPERIMENTS if e.name.endswith("table4"))
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
        pids = {one["pid"] for one in study.cells(tasks(product)).values()}
    assert together.text == alone.text
    assert os.getpid() not in pids
    assert said[0].endswith("pieces of work to the workers")
    again = Tiny("small", ResultStore(path, {}), 1, pytest.fail, data=data)
    assert experiment.run(again).text == alone.text


def test_a_mean_of_folds_with_the_reach_of_all_queries():
    assert mean_and_reach([[0.5, 0.5], [0.5]]) == "0.5000 (0.0000)"
    assert mean_and_reach([[0.0, 1.0, 0.5], [1.0]]).startswith("0.7500 (0.")


def cells_of(table):
    rows = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_choices_at_either_edge_are_counted_and_warned_of():
    grid = (0.1, 1.0, 10.0)
    often = Choices([0.1, 10.0, 10.0, 1.0], grid)
    assert (often.share_at(min), often.share_at(max), often.at_edges) == (0.25, 0.5, 0.75)
    assert often.most_often == 10.0
    rarely = Choices([1.0] * 9 + [10.0], grid)
    assert rarely.at_edges == 0.1  # 10 % is not more than 10 %
    text = edge_report({"often": often, "rarely": rarely})
    assert cells_of(text)[2:] == [
        ["often", "0.1 to 10, 3 values", "10", "25%", "50%", "4"],
        ["rarely", "0.1 to 10, 3 values", "1", "0%", "10%", "10"],
    ]
    (warning,) = [line for line in text.splitlines() if line.startswith("**")]
    assert "often (75%)" in warning
    assert "rarely" not in warning
    assert "**" not in edge_report({"rarely": rarely})


def test_a_limit_is_not_an_edge():
    shares = Choices([1.0, 1.0, 0.5], (0.3, 0.5, 1.0), limits=(1.0,))
    assert shares.at_edges == 0.0
    text = edge_report({"share of queries": shares})
    assert cells_of(text)[2] == [
        "share of queries",
        "0.3 to 1, 3 values",
        "1",
        "0%",
        "no edge",
        "3",
    ]
    assert "**" not in text
    assert Choices([2.0], (2.0,)).at_edges == 0.0  # nothing to choose


def test_an_edge_beyond_which_nothing_changes_is_not_counted():
    grid = (0.1, 1.0, 10.0)
    flat, rising, falling = [0.5, 0.5 - 1e-5, 0.4], [0.3, 0.4, 0.5], [0.5, 0.4, 0.3]
    level = [0.4, 0.5, 0.5]
    chosen = Choices([0.1, 10.0, 0.1, 10.0], grid, curves=[flat, rising, falling, level])
    assert (chosen.share_at(min), chosen.share_at(max)) == (0.25, 0.25)
    assert "does as well on the validation data" in edge_report({"C": chosen})
    assert Choices([0.1, 10.0, 0.1, 10.0], grid).at_edges == 1.0


@pytest.mark.parametrize("values", [[3.0], []])
def test_choices_are_of_the_grid(values):
    with pytest.raises(ValueError, match=r"must be of the grid \[1.0, 2.0\]"):
        Choices(values, (1.0, 2.0))


def test_a_variant_is_named_by_its_parameters():
    text = variant_of(rg.LambdaMART("ndcg", normalise=False, split="mse", l2=0.0, truncation=None))
    for named in ("measure ndcg", "truncation None", "normalise False", "split mse", "l2 0.0"):
        assert named in text.split(", ")


def test_what_an_interrupt_ended_early_is_no_result(tmp_path):
    store = ResultStore(tmp_path / "results.jsonl", {"a": 1})
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Study("small", store).cells(tasks(ended_early))
    assert signal.getsignal(signal.SIGINT) is before
    kept = ResultStore(tmp_path / "results.jsonl", {"a": 1})
    assert [key for key in tasks(ended_early) if key in kept] == ["0 x 0", "0 x 1"]
    assert kept["0 x 1"] == "a model"
