"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): bags of LambdaMART on a LETOR collection.

The paper's collections are MQ2007, TD2004 and MSLR-WEB10K; the experiments run on MQ2008, or on
what the user has. The collection's own measures; folds as published. A bag's models are trained
once: without overfitting they are cut at their best round, with it they keep the trees after it
(section 3.5.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.folds import Fold
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.ganjisaffar2011_peer import fit_lightgbm, has_lightgbm, lightgbm_bag
from rankgrove.experiments.ganjisaffar2011_setting import (
    BAG,
    BAG_OVER,
    DATA,
    DECIDES,
    FRACTION,
    MEASURED,
    MEASURES,
    PLAIN,
    RANDOM,
    TITLES,
    Setting,
    base_ranker,
    fitted_bag,
    n_models,
    setting_of,
    the_collection,
)
from rankgrove.experiments.ganjisaffar2011_table import (
    Cells,
    differences_table,
    systems_table,
    together,
    trees_line,
    values_of,
)
from rankgrove.experiments.sources import Collection
from rankgrove.experiments.study import (
    Curves,
    Experiment,
    Findings,
    Study,
    Task,
    markdown,
    p_value,
)
from rankgrove.measures.base import exact_mean
from rankgrove.random import generator
from rankgrove.validation import counted

COUNTS = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 45)
LIGHTGBM = ("LightGBM with randomisation", "LightGBM bagged")
N_DRAWS = 20  # random choices of so many models from the bag, for Figure 4

# -- Table 4 and Figure 4 -------------------------------------------------------------------------


def table_4(study: Study) -> Findings:
    """Single models and bags, with and without overfitting, and LightGBM bagged the same way."""
    collection = the_collection(study)
    setting = setting_of(collection)
    numbers, seeds = collection.numbers(study.size(2, 5)), range(study.size(1, 3))
    found = _all_systems(study, collection, numbers, seeds)
    beside = f"; in brackets the paper's figures, of {setting.paper_of}" if setting.paper else ""
    text = [
        f"{collection.described(numbers)}, {counted(len(seeds), 'seed')}, bags of "
        f"{n_models(study, setting)} models on {FRACTION:.0%} of the training queries; "
        f"means over queries{beside}.",
        systems_table(found, setting),
        differences_table(found),
        trees_line(found),
    ]
    return Findings("\n\n".join(text), {"ganjisaffar2011-figure4": _figure_4(found)})


def _all_systems(study: Study, collection: Collection, numbers: range, seeds: range) -> Cells:
    tasks: dict[str, Task] = {}
    for k in numbers:
        tasks[f"fold {k}, plain"] = (_single, collection, k, 0, False)  # no draws, so no seeds
        for seed in seeds:
            key = f"fold {k}, seed {seed}"
            tasks[f"{key}, randomised"] = (_single, collection, k, seed, True)
            tasks[f"{key}, bag"] = (_bag, collection, k, seed)
            if has_lightgbm():
                tasks[f"{key}, LightGBM"] = (_lightgbm, collection, k, seed)
    cells = study.cells(tasks)
    found: Cells = {PLAIN: [[cells[f"fold {k}, plain"]] for k in numbers]}
    found[RANDOM] = [[cells[f"fold {k}, seed {s}, randomised"] for s in seeds] for k in numbers]
    for name, part in ((BAG, "best"), (BAG_OVER, "over")):
        found[name] = [[cells[f"fold {k}, seed {s}, bag"][part] for s in seeds] for k in numbers]
    if has_lightgbm():
        for name, part in zip(LIGHTGBM, ("single", "bag"), strict=True):
            found[name] = [
                [cells[f"fold {k}, seed {s}, LightGBM"][part] for s in seeds] for k in numbers
            ]
    return found


def _single(
    study: Study, collection: Collection, k: int, seed: int, randomised: bool
) -> dict[str, Any]:
    return _single_on(study, setting_of(collection), collection.fold(k), seed, randomised)


def _single_on(
    study: Study, setting: Setting, fold: Fold, seed: int, randomised: bool
) -> dict[str, Any]:
    """Train one LambdaMART, plain or randomised."""
    model = base_ranker(study, setting.randomised if randomised else setting.plain, seed)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    return {"values": values_of(model, fold.test, setting), "trees": model.ensemble_.n_trees}


def _bag(study: Study, collection: Collection, k: int, seed: int) -> dict[str, Any]:
    return _bag_on(study, setting_of(collection), collection.fold(k), seed)


def _bag_on(study: Study, setting: Setting, fold: Fold, seed: int) -> dict[str, Any]:
    """Train a bag; return its figures with the trees after the best rounds, and without them."""
    size = n_models(study, setting)
    over = fitted_bag(study, setting.randomised, size, fold.train, fold.valid, seed)
    best = [model.truncated(model.best_round_) for model in over.models_]
    result = {}
    for name, models in (("over", over.models_), ("best", best)):
        curves, values = {}, {}
        for part, data in (("valid", fold.valid), ("test", fold.test)):
            assert data is not None
            columns = np.array([model.predict(data) for model in models])
            curves[part] = _growing(columns, data, setting, seed)
            if part == "test":
                values = values_of(together(columns, data), data, setting)
        trees = sum(model.ensemble_.n_trees for model in models)
        result[name] = {
            "values": values,
            "trees": trees,
            "models": len(models),
            "map": curves,
        }
    return result


def _lightgbm(study: Study, collection: Collection, k: int, seed: int) -> dict[str, Any]:
    setting, fold = setting_of(collection), collection.fold(k)
    assert fold.valid is not None
    given = (study, setting.randomised, DECIDES, fold.train, fold.valid, seed)
    single, bag = fit_lightgbm(*given), lightgbm_bag(*given, n_models(study, setting))
    columns = np.array([model.scores(fold.test, model.best) for model in bag])
    both = (
        ("single", single.scores(fold.test, single.best), single.best),
        ("bag", together(columns, fold.test), sum(model.best for model in bag)),
    )
    return {
        name: {"values": values_of(scores, fold.test, setting), "trees": trees}
        for name, scores, trees in both
    }


def _counts(n_models: int) -> list[int]:
    """Return the numbers of models that Figure 4 looks at, up to all."""
    return [n for n in COUNTS if n < n_models] + [n_models]


def _growing(columns: np.ndarray, data: QueryDataset, setting: Setting, seed: int) -> list[float]:
    """Return the mean MAP of so many models of the bag, drawn at random (Figure 4)."""
    means = []
    for n in _counts(len(columns)):
        rng = generator(seed, "figure 4", n)
        n_draws = 1 if n == len(columns) else N_DRAWS
        drawn = []
        for _ in range(n_draws):
            scores = together(columns[rng.permutation(len(columns))[:n]], data)
            drawn.append(evaluate(scores, data, "map", setting.convention).mean["map"])
        means.append(exact_mean(np.array(drawn)))
    return means


def _figure_4(found: Cells) -> Curves:
    lines = {}
    for name in (BAG, BAG_OVER):
        for part in ("valid", "test"):
            curves = [cell["map"][part] for fold in found[name] for cell in fold]
            mean = np.mean(curves, axis=0)
            lines[f"{name}, {part}"] = (np.array(_counts(found[name][0][0]["models"])), mean)
    return Curves(lines, "number of models", "MAP", "Models in the bag against MAP")


# -- Table 5: variance ----------------------------------------------------------------------------


def table_5(study: Study) -> Findings:
    """Train on random samples of the queries; mean and variance of every measure."""
    collection = the_collection(study)
    n_samples = study.size(3, 10)
    cells = study.cells(
        {f"sample {sample}": (_of_a_sample, collection, sample) for sample in range(n_samples)}
    )
    found = {
        name: [cell[name] for cell in cells.values()] for name in (PLAIN, RANDOM, BAG, BAG_OVER)
    }
    rows = []
    for name, of_samples in found.items():
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
            np.var([cell[measure] for cell in found[name]], ddof=1) for name in (RANDOM, BAG_OVER)
        )
        reductions.append(f"{measure} {100 * (after / before - 1):+.1f} %")
    text = [
        f"{collection.name}, fold 1: {n_samples} random samples of {FRACTION:.0%} of the training "
        "queries; test figures, mean and variance over the samples.",
        markdown(header, rows),
        f"Variance of {BAG_OVER} against {RANDOM}: {', '.join(reductions)} (paper, on MSLR-WEB10K: "
        "ndcg@1 -67.3 %, ndcg@3 -18.8 %, meanndcg -40.2 %, map -57.1 %).",
        _over_samples(found),
    ]
    return Findings("\n\n".join(text), {})


def _over_samples(found: dict[str, list[dict[str, float]]]) -> str:
    """Say how far the bag is ahead of the others, and whether over all samples."""
    rows = []
    for name in (PLAIN, RANDOM, BAG):
        row = [name]
        for measure in MEASURES:
            ours, other = ([cell[measure] for cell in found[one]] for one in (BAG_OVER, name))
            difference = exact_mean(np.array(ours)) - exact_mean(np.array(other))
            row.append(f"{difference:+.4f} ({p_value(ours, other)})")
        rows.append(row)
    title = f"{BAG_OVER} less each, and p of the paired t-test over samples:"
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
