"""BL-MART's pools of models: Figure 4, and bags drawn from a pool as the paper draws them.

A fold's pool is trained once: of 100 models here, of 1,000 on the paper's smaller collections and
50 on MSLR-WEB10K (section 4). For Figure 4 so many models are drawn from it, 100 times; for Table 4
bags of 45 (20 on MSLR-WEB10K), 20 times. The models are the paper's: trees by least squares on the
lambdas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.ganjisaffar2011_setting import (
    BAG,
    BAG_OVER,
    LEAST_SQUARES,
    MSE,
    Setting,
    fitted_bag,
    n_models,
    setting_of,
)
from rankgrove.experiments.ganjisaffar2011_table import Cells, together, values_of
from rankgrove.experiments.sources import Collection
from rankgrove.experiments.study import Curves, Study, markdown
from rankgrove.measures.base import exact_mean
from rankgrove.random import generator

PARTS = ("valid", "test")
SYSTEMS = {"best": BAG, "over": BAG_OVER}  # of a pool cut at the best rounds, and not
MOST_POOLED = 100  # models; bags drawn from so few share many of them
COUNTS = (1, 2, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150, 200, 300)  # the paper's end at 300


def pool_size(study: Study, setting: Setting) -> int:
    """Return the number of models of a pool: at full scale the paper's, but no more than 100."""
    return study.size(8, min(setting.pool, MOST_POOLED))


def n_draws(study: Study) -> int:
    """Return how often models are drawn for a point of Figure 4: 100 times in the paper."""
    return study.size(5, 100)


def n_bags(study: Study) -> int:
    """Return the number of bags of Table 4, each drawn from the pool: 20 in the paper."""
    return study.size(2, 20)


def counts(n_pool: int) -> list[int]:
    """Return the numbers of models that Figure 4 looks at."""
    return [n for n in COUNTS if n <= n_pool]


def of_pool(study: Study, collection: Collection, k: int) -> dict[str, Any]:
    """Train a fold's pool; return bags drawn from it, and Figure 4's values.

    Returns
    -------
    "best" and "over" (models cut at their best rounds, and with the trees that the tolerance of
    overfitting keeps) -> "bags": per bag the values and the number of trees; "map": part of the
    data -> MAP by number of models, mean over the draws
    """
    setting, fold = setting_of(collection), collection.fold(k)
    assert fold.valid is not None
    size = pool_size(study, setting)
    parameters = setting.randomised | LEAST_SQUARES
    over = fitted_bag(study, parameters, size, fold.train, fold.valid, 0).models_
    best = [model.truncated(model.best_round_) for model in over]
    data = dict(zip(PARTS, (fold.valid, fold.test), strict=True))
    result = {}
    for name, models in (("over", over), ("best", best)):
        # scaled within queries once: the mean of scaled scores is the bag's score
        scores = {
            part: np.array([together(model.predict(rows)[None], rows) for model in models])
            for part, rows in data.items()
        }
        trees = np.array([model.ensemble_.n_trees for model in models])
        result[name] = {
            "bags": _bags(study, setting, scores["test"], fold.test, trees),
            "map": {
                part: _growing(scores[part], rows, setting, n_draws(study))
                for part, rows in data.items()
            },
        }
    return result


def drawn(n_pool: int, n: int, i: int) -> np.ndarray:
    """Return which `n` models of a pool draw number `i` takes; the same for every fold."""
    return generator(i, "models of a pool", n).permutation(n_pool)[:n]


def _bags(
    study: Study, setting: Setting, scores: np.ndarray, test: QueryDataset, trees: np.ndarray
) -> list[dict[str, Any]]:
    size = min(n_models(study, setting), len(scores))
    bags = []
    for i in range(n_bags(study)):
        taken = drawn(len(scores), size, i)
        values = values_of(scores[taken].mean(axis=0), test, setting)
        bags.append({"values": values, "trees": int(trees[taken].sum())})
    return bags


def _growing(scores: np.ndarray, data: QueryDataset, setting: Setting, n_times: int) -> list[float]:
    """Return the mean MAP of bags of so many models, drawn from the pool (Figure 4)."""
    means = []
    for n in counts(len(scores)):
        values = [
            evaluate(
                scores[drawn(len(scores), n, i)].mean(axis=0), data, "map", setting.convention
            ).mean["map"]
            for i in range(n_times)
        ]
        means.append(exact_mean(np.array(values)))
    return means


def bag_cells(pools: list[dict[str, Any]]) -> Cells:
    """Return Table 4's cells of bags drawn from every fold's pool."""
    return {
        f"{name}{MSE}": [pool[part]["bags"] for pool in pools] for part, name in SYSTEMS.items()
    }


def figure_4(study: Study, setting: Setting, pools: list[dict[str, Any]]) -> tuple[str, Curves]:
    """Return Figure 4 as a table and as curves, means over the folds."""
    n_pool = pool_size(study, setting)
    numbers = counts(n_pool)
    rows, lines = [], {}
    for part in PARTS:
        for key, name in SYSTEMS.items():
            mean = np.mean([pool[key]["map"][part] for pool in pools], axis=0)
            rows.append([f"{name}, {part}", *(f"{value:.4f}" for value in mean)])
            lines[f"{name}, {part}"] = (np.array(numbers), mean)
    text = (
        f"MAP by number of models (Figure 4), mean of {n_draws(study)} draws from pools of "
        f"{n_pool} models, least-squares splits (the paper: 100 draws from {setting.pool:,}):"
    )
    table = markdown(["", *map(str, numbers)], rows)
    curves = Curves(lines, "number of models", "MAP", "Models in the bag against MAP", log_x=True)
    return f"{text}\n\n{table}", curves
