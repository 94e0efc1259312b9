"""The settings of these experiments are the paper's: its numbers, with their sections."""

from __future__ import annotations

import inspect

import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.burges2010 import nets
from rankgrove_papers.study import Study
from rankgrove_papers.wu2010 import adaptation, artificial, label_shares, web
from rankgrove_papers.wu2010.systems import DEFAULTS, FIGURE_2, PAPER_LAMBDAMART, TABLE_1

FULL = Study("full", ResultStore(None, {}))
# Algorithm 1 and equations 2 to 5: every pair of a query, |delta NDCG| as it is, least-squares
# trees, Newton's step of a leaf as it is.
LAMBDAS = {
    "measure": "ndcg",
    "truncation": None,
    "beyond_cutoff": False,
    "normalise": False,
    "split": "mse",
    "l2": 0.0,
    "step": "newton",
    "query_fraction": 1.0,
    "row_fraction": 1.0,
    "feature_fraction": 1.0,
}
CLASSES = {"form": "classes", "split": "mse", "l2": 0.0}


def settings(system):
    """Return the parameters of a system as it is trained."""
    return system.ranker(**system.options).get_params()


@pytest.mark.parametrize(
    ("systems", "setting", "name", "shape"),
    [
        # section 5.2: "M = 1000 and v = 0.1 for all datasets, L = 10 for the artificial data, and
        # L = 15 for the Web-1 data"; McRank "L = 10, v = 0.05 and M = 1000 for all datasets"
        (artificial.SYSTEMS, TABLE_1, "LambdaMART", (10, 0.1)),
        (web.SYSTEMS, TABLE_1, "LambdaMART", (15, 0.1)),
        (artificial.SYSTEMS, TABLE_1, "McRank", (10, 0.05)),
        (web.SYSTEMS, TABLE_1, "McRank", (10, 0.05)),
        # section 5.4: "L = 20 and v = 0.15"
        (artificial.SYSTEMS, FIGURE_2, "LambdaMART", (20, 0.15)),
        (web.SYSTEMS, FIGURE_2, "LambdaMART", (20, 0.15)),
        (artificial.SYSTEMS, FIGURE_2, "McRank", (20, 0.15)),
        (web.SYSTEMS, FIGURE_2, "McRank", (20, 0.15)),
    ],
)
def test_trees_of_table_1_and_figure_2(systems, setting, name, shape):
    params = settings(systems[setting][name])
    assert (params["n_leaves"], params["learning_rate"]) == shape
    fixed = LAMBDAS if name == "LambdaMART" else CLASSES
    assert {key: params[key] for key in fixed} == fixed


def test_the_papers_lambdamart_is_the_librarys():
    paper = rg.LambdaMART("ndcg", **PAPER_LAMBDAMART).get_params()
    assert paper == rg.LambdaMART.papers().get_params()


@pytest.mark.parametrize("name", ["LambdaMART", "McRank"])
def test_our_defaults_differ_from_none_but_in_the_shape(name):
    params = settings(artificial.SYSTEMS[DEFAULTS][name])
    defaults = getattr(rg, name)().get_params()
    changed = {key: value for key, value in params.items() if value != defaults[key]}
    assert changed == {"n_leaves": 20, "learning_rate": 0.15}


def test_sizes_and_rounds(monkeypatch):
    # section 5.1: 10K/5K/10K queries; artificial data: 50 URLs per query, 50 features; Web-1: 367
    # features, 26 URLs per query on average; section 5.2: M = 1000
    calls, trained = [], []
    for module, maker in ((artificial, "make_artificial"), (web, "make_web")):
        monkeypatch.setattr(
            module, maker, lambda *args, **kw: calls.append((args, kw)) or len(calls)
        )
        monkeypatch.setattr(
            module,
            "tree_result",
            lambda system, parts, n_rounds, n_threads: trained.append(n_rounds),
        )
    artificial.trained(FULL, artificial.SYSTEMS[TABLE_1]["McRank"], "equal")
    assert calls == [
        ((n,), {"labels": "equal", "seed": k}) for k, n in enumerate((10_000, 5000, 10_000))
    ]
    sizes = inspect.signature(rg.make_artificial).parameters
    assert (sizes["n_docs"].default, sizes["n_features"].default) == (50, 50)
    calls.clear()
    web._generated.cache_clear()
    web._trees(FULL, web.SYSTEMS[TABLE_1]["McRank"], 1)
    web._generated.cache_clear()
    assert [args for args, _ in calls] == [(n, 26, 367) for n in (10_000, 5000, 10_000)]
    assert trained == [1000, 1000]
    assert label_shares._sizes(FULL)[::2] == (10_000, 1000)


def test_lambdarank():
    # section 5.2: "two layers ... and ten hidden nodes"; NDCG is what the lambdas are of
    assert nets.HIDDEN == (10,)
    for net in (nets.NETS[nets.OWN], nets.NETS[nets.BEGUN]):
        assert net.hidden == (10,)
        params = net.ranker(hidden=net.hidden, **net.options).get_params()
        fixed = {"measure": "ndcg", "truncation": None, "normalise": False}
        assert {key: params[key] for key in fixed} == fixed


@pytest.mark.parametrize(
    ("module", "rate", "leaves", "bounds"),
    [
        # section 5.6, Figure 3 (a): the full Newton step; alpha in [0.1, 100]
        (artificial, 1.0, None, (0.1, 100.0)),
        # Figure 3 (b): "shrinkage v = 0.1 and L = 15"; alpha in [0.1, 5]
        (web, 0.1, 15, (0.1, 5.0)),
    ],
)
def test_steps_of_figure_3(module, rate, leaves, bounds):
    exact = "paper's lambdas, optimal"
    baseline = rg.LambdaMART(**module.STEPS[module.BASELINES[exact]]).get_params()
    ours = rg.LambdaMART(**module.STEPS[exact]).get_params()
    for params in (baseline, ours):
        fixed = ("truncation", "normalise", "split", "l2")
        assert {key: params[key] for key in fixed} == {key: LAMBDAS[key] for key in fixed}
    assert (baseline["step"], baseline["learning_rate"]) == ("newton", rate)
    # "using the 5K validation queries to choose the optimal step size"; no shrinkage
    assert (ours["step"], ours["step_on"], ours["learning_rate"]) == ("optimal", "valid", 1.0)
    assert ours["step_bounds"] == bounds
    assert leaves is None or leaves == module.LEAVES
    # every exact step is compared with the same kind of baseline
    rates = {module.STEPS[name]["learning_rate"] for name in module.BASELINES.values()}
    assert rates == {rate}
    assert set(module.BASELINES) == {name for name in module.STEPS if "optimal" in name}


def test_adaptation():
    # section 5.5: "M = 500 trees, each with L = 20 leaves, and with a learning rate of v = 0.1",
    # "randomly selected 70% of training samples"
    model = adaptation._trees(FULL, 0, None).get_params()
    shape = {"n_trees": 500, "n_leaves": 20, "learning_rate": 0.1, "row_fraction": 0.7}
    assert {key: model[key] for key in shape} == shape
