"""BL-MART's pools of models: Figure 4, and bags drawn from a pool as the paper draws them.

The pool of a fold is trained once. It has 100 models here; in the paper 1,000 on the smaller
collections and 50 on MSLR-WEB10K (section 4). For a point of Figure 4 models are drawn from it 100
times; for Table 4 bags of 45 models (20 on MSLR-WEB10K) are drawn 20 times. The models are the
paper's: least-squares trees on the lambdas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove import QueryDataset, evaluate
from rankgrove.measures.base import exact_mean
from rankgrove.random import generator
from rankgrove.tuning.tables import markdown
from rankgrove_papers.ganjisaffar2011.settings import (
    BAG,
    BAG_OVER,
    LEAST_SQUARES,
    MSE,
    Setting,
    fitted_bag,
    n_models,
    setting_of,
)
from rankgrove_papers.ganjisaffar2011.table4 import Cells, together, values_of
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import Curves, Study

PARTS = ("valid", "test")
SYSTEMS = {"best": BAG, "over": BAG_OVER}  # models cut at the best rounds, and models not cut
MOST_POOLED = 100  # maximum size of a pool; bags drawn from a small pool share many models
COUNTS = (1, 2, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150, 200, 300)  # the paper's figure ends at 300


def pool_size(study: Study, setting: Setting) -> int:
    """Return the number of models of a pool: at full scale the paper's, but at most 100."""
    return study.size(8, min(setting.pool, MOST_POOLED))


def n_draws(study: Study) -> int:
    """Return the number of draws for a point of Figure 4: 100 in the paper."""
    return study.size(5, 100)


def n_bags(study: Study) -> int:
    """Return the number of bags of Table 4, each drawn from the pool: 20 in the paper."""
    return study.size(2, 20)


def counts(n_pool: int) -> list[int]:
    """Return the numbers of models of Figure 4."""
    return [n for n in COUNTS if n <= n_pool]


def of_pool(study: Study, collection: Collection, k: int) -> dict[str, Any]:
    """Train the pool of a fold; return bags drawn from it, and the values of Figure 4.

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
        # scaled within queries once: the score of a bag is the mean of scaled scores
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
    """Return the `n` models of a pool that draw number `i` takes; the same for every fold."""
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
    """Return the mean MAP of bags drawn from the pool, by number of models (Figure 4)."""
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
    """Return the cells of Table 4 for bags drawn from the pools of all folds."""
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
