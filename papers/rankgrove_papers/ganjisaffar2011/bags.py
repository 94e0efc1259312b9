"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): bags of LambdaMART on a LETOR collection.

The paper's collections are MQ2007, TD2004 and MSLR-WEB10K; the experiments run on MQ2008, or on the
user's collection, with the measures of the collection and folds as published. The models of a bag
are trained once: without overfitting they are cut at their best round, with overfitting they keep
trees after it (section 3.5.2). Table 4 has the paper's least-squares splits and Newton splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.folds import Fold
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove.validation import counted
from rankgrove_papers.ganjisaffar2011.lightgbm_bags import fit_lightgbm, has_lightgbm, lightgbm_bag
from rankgrove_papers.ganjisaffar2011.model_pool import (
    bag_cells,
    figure_4,
    n_bags,
    of_pool,
    pool_size,
)
from rankgrove_papers.ganjisaffar2011.settings import (
    BAG,
    BAG_OVER,
    DATA,
    DECIDES,
    FRACTION,
    LAMBDAS,
    LEAST_SQUARES,
    MEASURED,
    MEASURES,
    MSE,
    PLAIN,
    RANDOM,
    TITLES,
    VARIANT,
    Setting,
    base_ranker,
    fitted_bag,
    n_models,
    setting_of,
    the_collection,
)
from rankgrove_papers.ganjisaffar2011.table4 import (
    Cells,
    differences_table,
    systems_table,
    together,
    trees_line,
    values_of,
)
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import Experiment, Findings, Study, Task
from rankgrove_papers.tables import p_value

LIGHTGBM = ("LightGBM with randomisation", "LightGBM bagged")

# -- Table 4 and Figure 4 -------------------------------------------------------------------------


def table_4(study: Study) -> Findings:
    """Single models and bags, with and without overfitting, and LightGBM bagged the same way."""
    collection = the_collection(study)
    setting = setting_of(collection)
    numbers, seeds = collection.numbers(study.size(2, 5)), range(study.size(1, 3))
    newton = _all_systems(study, collection, numbers, seeds)
    pools = [study.cell(f"fold {k}, pool", of_pool, collection, k) for k in numbers]
    squares = _least_squares(study, collection, numbers) | bag_cells(pools)
    table_of_figure_4, curves = figure_4(study, setting, pools)
    note = f"; in brackets the paper's figures, of {setting.paper_of}" if setting.paper else ""
    text = [
        f"{collection.described(numbers)}, bags of {n_models(study, setting)} models on "
        f"{FRACTION:.0%} of the training queries; means over queries{note}. {_variants(seeds)} "
        f"{RANDOM}{MSE}: {n_bags(study)} seeds. Bags of least squares: {n_bags(study)} times "
        f"drawn from pools of {pool_size(study, setting)} models per fold (the paper: 20 seeds, "
        f"20 bags from {setting.pool:,} models).",
        systems_table(squares | newton, setting),
        differences_table(squares, f"{BAG_OVER}{MSE}"),
        differences_table(newton),
        trees_line(squares | newton),
        table_of_figure_4,
    ]
    return Findings("\n\n".join(text), {"ganjisaffar2011-figure4": curves})


def _variants(seeds: range) -> str:
    """Return a description of the algorithm of every row."""
    return (
        f"All rows: {LAMBDAS}, as in the paper. Rows of least squares: the paper's splits; its "
        "parameters were chosen with Newton splits. Other rows of ours: Newton splits, "
        f"{counted(len(seeds), 'seed')}. LightGBM: the same target, samples and parameters, its "
        f"own splits (Newton), {counted(len(seeds), 'seed')}."
    )


def _all_systems(study: Study, collection: Collection, numbers: range, seeds: range) -> Cells:
    tasks: dict[str, Task] = {}
    for k in numbers:
        tasks[f"fold {k}, plain"] = (_single, collection, k, 0, False)  # nothing random: one seed
        for seed in seeds:
            key = f"fold {k}, seed {seed}"
            tasks[f"{key}, randomised"] = (_single, collection, k, seed, True)
            tasks[f"{key}, bag"] = (_bag, collection, k, seed)
            if has_lightgbm():
                tasks[f"{key}, LightGBM"] = (_lightgbm, collection, k, seed)
    cells = study.cells(tasks)
    systems: Cells = {PLAIN: [[cells[f"fold {k}, plain"]] for k in numbers]}
    systems[RANDOM] = [[cells[f"fold {k}, seed {s}, randomised"] for s in seeds] for k in numbers]
    for name, part in ((BAG, "best"), (BAG_OVER, "over")):
        systems[name] = [[cells[f"fold {k}, seed {s}, bag"][part] for s in seeds] for k in numbers]
    if has_lightgbm():
        for name, part in zip(LIGHTGBM, ("single", "bag"), strict=True):
            systems[name] = [
                [cells[f"fold {k}, seed {s}, LightGBM"][part] for s in seeds] for k in numbers
            ]
    return systems


def _least_squares(study: Study, collection: Collection, numbers: range) -> Cells:
    """Return single models with the paper's splits: plain, and randomised with several seeds."""
    tasks: dict[str, Task] = {}
    for k in numbers:
        tasks[f"fold {k}, plain{MSE}"] = (_single, collection, k, 0, False, LEAST_SQUARES)
        for seed in range(n_bags(study)):
            key = f"fold {k}, seed {seed}, randomised{MSE}"
            tasks[key] = (_single, collection, k, seed, True, LEAST_SQUARES)
    cells = study.cells(tasks)
    return {
        f"{PLAIN}{MSE}": [[cells[f"fold {k}, plain{MSE}"]] for k in numbers],
        f"{RANDOM}{MSE}": [
            [cells[f"fold {k}, seed {s}, randomised{MSE}"] for s in range(n_bags(study))]
            for k in numbers
        ],
    }


def _single(
    study: Study,
    collection: Collection,
    k: int,
    seed: int,
    randomised: bool,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    setting, fold = setting_of(collection), collection.fold(k)
    return _single_on(study, setting, fold, seed, randomised, more)


def _single_on(
    study: Study,
    setting: Setting,
    fold: Fold,
    seed: int,
    randomised: bool,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train one LambdaMART, plain or randomised; `more` are parameters beyond the setting."""
    parameters = (setting.randomised if randomised else setting.plain) | dict(more or {})
    model = base_ranker(study, parameters, seed)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    return {"values": values_of(model, fold.test, setting), "trees": model.ensemble_.n_trees}


def _bag(study: Study, collection: Collection, k: int, seed: int) -> dict[str, Any]:
    return _bag_on(study, setting_of(collection), collection.fold(k), seed)


def _bag_on(study: Study, setting: Setting, fold: Fold, seed: int) -> dict[str, Any]:
    """Train a bag; return its values with the trees after the best rounds, and without them."""
    size = n_models(study, setting)
    over = fitted_bag(study, setting.randomised, size, fold.train, fold.valid, seed)
    best = [model.truncated(model.best_round_) for model in over.models_]
    result = {}
    for name, models in (("over", over.models_), ("best", best)):
        columns = np.array([model.predict(fold.test) for model in models])
        result[name] = {
            "values": values_of(together(columns, fold.test), fold.test, setting),
            "trees": sum(model.ensemble_.n_trees for model in models),
        }
    return result


def _lightgbm(study: Study, collection: Collection, k: int, seed: int) -> dict[str, Any]:
    setting, fold = setting_of(collection), collection.fold(k)
    assert fold.valid is not None
    args = (study, setting.randomised, DECIDES, fold.train, fold.valid, seed)
    single, bag = fit_lightgbm(*args), lightgbm_bag(*args, n_models(study, setting))
    columns = np.array([model.scores(fold.test, model.best) for model in bag])
    both = (
        ("single", single.scores(fold.test, single.best), single.best),
        ("bag", together(columns, fold.test), sum(model.best for model in bag)),
    )
    return {
        name: {"values": values_of(scores, fold.test, setting), "trees": trees}
        for name, scores, trees in both
    }


# -- Table 5: variance ----------------------------------------------------------------------------


def table_5(study: Study) -> Findings:
    """Train on random samples of the queries; report mean and variance of every measure."""
    collection = the_collection(study)
    n_samples = study.size(3, 10)
    cells = study.cells(
        {f"sample {sample}": (_of_a_sample, collection, sample) for sample in range(n_samples)}
    )
    systems = {
        name: [cell[name] for cell in cells.values()] for name in (PLAIN, RANDOM, BAG, BAG_OVER)
    }
    rows = []
    for name, of_samples in systems.items():
        row = [name]
        for measure in MEASURES:
            values = np.array([cell[measure] for cell in of_samples])
            row += [f"{exact_mean(values):.4f}", f"{1e6 * values.var(ddof=1):.1f}"]
        rows.append(row)
    header = [""]
    for title in TITLES:
        header += [title, "variance x 10^6"]
    reductions = []
    for measure in MEASURES:
        before, after = (
            np.var([cell[measure] for cell in systems[name]], ddof=1) for name in (RANDOM, BAG_OVER)
        )
        reductions.append(f"{measure} {100 * (after / before - 1):+.1f} %")
    text = [
        f"{collection.name}, fold 1: {n_samples} random samples of {FRACTION:.0%} of the training "
        f"queries; test figures, mean and variance over the samples. {VARIANT}",
        markdown(header, rows),
        f"Variance of {BAG_OVER} against {RANDOM}: {', '.join(reductions)} (paper, on MSLR-WEB10K: "
        "ndcg@1 -67.3 %, ndcg@3 -18.8 %, meanndcg -40.2 %, map -57.1 %).",
        _over_samples(systems),
    ]
    return Findings("\n\n".join(text), {})


def _over_samples(systems: dict[str, list[dict[str, float]]]) -> str:
    """Return a table of the bag minus each other system, with p-values over samples."""
    rows = []
    for name in (PLAIN, RANDOM, BAG):
        row = [name]
        for measure in MEASURES:
            ours, other = ([cell[measure] for cell in systems[key]] for key in (BAG_OVER, name))
            difference = exact_mean(np.array(ours)) - exact_mean(np.array(other))
            row.append(f"{difference:+.4f} ({p_value(ours, other)})")
        rows.append(row)
    title = f"{BAG_OVER} minus each, and p of the paired t-test over samples:"
    return f"{title}\n\n{markdown(['', *TITLES], rows)}"


def _of_a_sample(study: Study, collection: Collection, sample: int) -> dict[str, dict[str, float]]:
    setting, fold = setting_of(collection), collection.fold(1)
    seen = sampled_queries(fold.train.query_keys, FRACTION, 1000, sample)
    part = Fold(fold.train.select(seen), fold.valid, fold.test)
    bags = _bag_on(study, setting, part, sample)
    cells = {
        PLAIN: _single_on(study, setting, part, 0, False),
        RANDOM: _single_on(study, setting, part, sample, True),
        BAG: bags["best"],
        BAG_OVER: bags["over"],
    }
    return {
        name: {m: exact_mean(np.array(cell["values"][m])) for m in MEASURES}
        for name, cell in cells.items()
    }


EXPERIMENTS = (
    Experiment(
        "ganjisaffar2011-table4",
        "ganjisaffar2011",
        "Table 4 and Figure 4: bags",
        table_4,
        data=DATA,
        measured=MEASURED,
        takes="letor",
    ),
    Experiment(
        "ganjisaffar2011-table5",
        "ganjisaffar2011",
        "Table 5: variance",
        table_5,
        data=DATA,
        measured=MEASURED,
        takes="letor",
    ),
)
