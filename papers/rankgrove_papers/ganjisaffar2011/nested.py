"""BL-MART's Table 4 with all parameters chosen inside the fold, and bags tuned as bags.

The paper takes the parameters that are best by the validation data of all folds together. In
LETOR's folds every part is validation data of one fold, so these are all queries, including test
queries. Here the choices of a fold use only its own training and validation data, as in section
3.4. And the parameters of a bag are chosen for bags, which the paper leaves open (section 4.1): by
the out-of-bag training queries, so that no further data is needed. LightGBM gets the same
configurations, samples, rules and numbers of trials.

The target is chosen together with the shape of the trees: NDCG or MAP, with normalised lambdas or
not. LightGBM has no lambdas of MAP; it chooses between all pairs and its default cutoff instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from rankgrove import QueryDataset, evaluate
from rankgrove.bagging.out_of_bag import missed_part
from rankgrove.tuning.search_space import PRESETS, Parameters, drawn
from rankgrove.tuning.tables import markdown
from rankgrove.validation import counted
from rankgrove_papers.ganjisaffar2011.lightgbm_bags import (
    has_lightgbm,
    lightgbm_bag,
    lightgbm_out_of_bag,
)
from rankgrove_papers.ganjisaffar2011.settings import (
    BAG,
    BAG_OVER,
    DATA,
    FRACTION,
    MEASURED,
    PLAIN,
    RANDOM,
    VARIANT,
    Setting,
    base_ranker,
    edges_of,
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
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.sources import Collection, Redrawn
from rankgrove_papers.study import Experiment, Findings, Study, Task

Where = Collection | Redrawn
DECIDES = "map"  # the measure that chooses rounds and parameters
DRAW, CHOICE = 0, 1000  # seeds of the configurations, and of the models that are tried
OURS: Parameters = {"measure": ["ndcg", "map"], "normalise": [False, True]}
THEIRS: Parameters = {"truncation": [None, 30], "normalise": [False, True]}
TUNED, PEER = "BL-MART", "LightGBM bagged"
TARGETS = (
    f"{VARIANT} But the target is chosen with the rest: NDCG or MAP, both without a cutoff, "
    "normalised or not; for LightGBM NDCG of all pairs or of pairs with one of the top 30."
)
LIGHTGBM = ("LightGBM bagged without overfitting", "LightGBM bagged with overfitting")


def nested(study: Study) -> Findings:
    """Choose every system's parameters in every fold, then test the chosen systems."""
    collection = the_collection(study)
    setting = setting_of(collection)
    numbers, seeds = collection.numbers(study.size(2, 5)), range(study.size(1, 5))
    chosen = choose(study, collection, numbers, _ways(study, setting.grid))
    text = [
        f"{collection.described(numbers)}, {counted(len(seeds), 'seed')}, bags of "
        f"{n_models(study, setting)} models on {FRACTION:.0%} of the training queries; means over "
        f"queries{beside(setting)}. Rounds by MAP of the validation data. In every fold the best "
        "of "
        f"{counted(n_candidates(study), 'configuration')} by MAP: of single models on the "
        f"validation data, of bags of {n_tried(study)} models out of bag. {TARGETS}",
        *tables(tested(study, collection, chosen, seeds), setting),
        "The choices, fold by fold:",
        _choices(chosen),
        edge_report(_edges(chosen, setting.grid)),
        "The grid is the paper's (Table 2).",
    ]
    return Findings("\n\n".join(text), {})


def tables(systems: Cells, setting: Setting) -> list[str]:
    """Return the tables of the tested systems."""
    return [
        systems_table(systems, setting),
        differences_table(systems),
        differences_table(systems, BAG, but=(BAG_OVER,)),
        trees_line(systems),
    ]


def beside(setting: Setting) -> str:
    """Return a phrase about the figures in brackets; empty if there are none."""
    return f"; in brackets the paper's figures, of {setting.paper_of}" if setting.paper else ""


def n_candidates(study: Study) -> int:
    """Return the number of configurations of a system."""
    return study.size(2, 30)


def n_tried(study: Study) -> int:
    """Return the number of models of a bag while parameters are chosen."""
    return study.size(3, 15)


# -- choosing -------------------------------------------------------------------------------------

Chosen = dict[str, dict[int, Parameters]]
# system -> a function that rates a configuration, and the configurations
Ways = dict[str, tuple[Callable[..., float], list[Parameters]]]


def candidates(study: Study, grid: str, target: Parameters, plain: bool) -> list[Parameters]:
    """Return configurations drawn from the paper's grid and the targets.

    Both programs have the same number of targets, so that they get the same shapes.
    """
    space = {**PRESETS[grid], **target}
    if plain:
        space |= {"query_fraction": [1.0], "feature_fraction": [1.0]}
    return drawn(space, n_candidates(study), DRAW)


def _ways(study: Study, grid: str) -> Ways:
    ours = candidates(study, grid, OURS, plain=False)
    ways: Ways = {
        PLAIN: (try_single, candidates(study, grid, OURS, plain=True)),
        RANDOM: (try_single, ours),
        TUNED: (try_bag, ours),
    }
    if has_lightgbm():
        ways[PEER] = (try_lightgbm, candidates(study, grid, THEIRS, plain=False))
    return ways


def choose(study: Study, collection: Where, numbers: range, ways: Ways) -> Chosen:
    """Return the chosen configuration of every system in every fold."""
    tasks: dict[str, Task] = {
        f"{_place(collection, k)}, {name}, configuration {i}": (work, collection, k, candidate)
        for k in numbers
        for name, (work, tried) in ways.items()
        for i, candidate in enumerate(tried)
    }
    values = study.cells(tasks)

    def best(name: str, k: int) -> Parameters:
        tried = ways[name][1]
        place = _place(collection, k)
        worth = [values[f"{place}, {name}, configuration {i}"] for i in range(len(tried))]
        return tried[int(np.argmax(worth))]

    return {name: {k: best(name, k) for k in numbers} for name in ways}


def _place(collection: Where, k: int) -> str:
    draw = f"draw {collection.seed}, " if isinstance(collection, Redrawn) else ""
    return f"{draw}fold {k}"


def try_single(study: Study, collection: Where, k: int, parameters: Parameters) -> float:
    """Return the MAP of a single model on the validation data."""
    fold = collection.fold(k)
    model = base_ranker(study, parameters, CHOICE)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    return _mean(model, fold.valid, collection)


def try_bag(study: Study, collection: Where, k: int, parameters: Parameters) -> float:
    """Return the out-of-bag MAP of a bag."""
    fold = collection.fold(k)
    bag = fitted_bag(
        study, parameters, n_tried(study), fold.train, fold.valid, CHOICE, decides=DECIDES
    )
    return _out_of_bag(bag.out_of_bag_scores_, fold.train, collection)


def try_lightgbm(study: Study, collection: Where, k: int, parameters: Parameters) -> float:
    """Return the out-of-bag MAP of a bag of LightGBM models."""
    fold = collection.fold(k)
    assert fold.valid is not None
    models = lightgbm_bag(
        study, parameters, DECIDES, fold.train, fold.valid, CHOICE, n_tried(study)
    )
    return _out_of_bag(lightgbm_out_of_bag(models, fold.train, CHOICE), fold.train, collection)


def _out_of_bag(scores: np.ndarray | None, train: QueryDataset, collection: Where) -> float:
    assert scores is not None
    part = missed_part(scores, train)
    assert part is not None
    return _mean(*part, collection)


def _mean(scorer: Any, data: QueryDataset | None, collection: Where) -> float:
    assert data is not None
    return evaluate(scorer, data, DECIDES, setting_of(collection).convention).mean[DECIDES]


def _choices(chosen: Chosen) -> str:
    header = ["", "fold", "target", *PRESETS["small"]]
    rows = [
        [name, k, target_name(parameters), *(parameters[key] for key in PRESETS["small"])]
        for name, of_folds in chosen.items()
        for k, parameters in of_folds.items()
    ]
    return markdown(header, rows)


def _edges(chosen: Chosen, grid: str) -> dict[str, Choices]:
    """Return the choices of every system and parameter; plain models do not sample the data."""
    choices: dict[str, Choices] = {}
    for name, of_folds in chosen.items():
        space = dict(PRESETS[grid])
        if name == PLAIN:
            space = {key: v for key, v in space.items() if not key.endswith("_fraction")}
        choices |= edges_of({name: list(of_folds.values())}, space)
    return choices


def target_name(parameters: Mapping[str, Any]) -> str:
    """Return the name of the target."""
    if "measure" in parameters:
        name = {"ndcg": "NDCG", "map": "MAP"}[parameters["measure"]]
    else:
        name = "NDCG" if parameters["truncation"] is None else f"NDCG@{parameters['truncation']}"
    return f"{name}, normalised" if parameters["normalise"] else name


# -- testing --------------------------------------------------------------------------------------


def tested(study: Study, collection: Where, chosen: Chosen, seeds: range) -> Cells:
    """Return the test results of every system, by fold and seed."""
    works = {PLAIN: _single, RANDOM: _single, TUNED: _bag, PEER: _lightgbm}
    tasks: dict[str, Task] = {}
    keys: dict[str, list[list[str]]] = {name: [] for name in chosen}
    for k in chosen[PLAIN]:
        for name, of_folds in chosen.items():
            place = f"{_place(collection, k)}, {name}"
            seed_of = {f"{place}, seed {seed}": seed for seed in seeds}
            if name == PLAIN:
                seed_of = {place: 0}  # nothing in it is random
            keys[name].append(list(seed_of))
            for key, seed in seed_of.items():
                tasks[key] = (works[name], collection, k, of_folds[k], seed)
    cells = study.cells(tasks)

    def of(name: str, part: str | None = None) -> list[list[dict[str, Any]]]:
        folds = [[cells[key] for key in of_fold] for of_fold in keys[name]]
        return folds if part is None else [[cell[part] for cell in fold] for fold in folds]

    systems: Cells = {PLAIN: of(PLAIN), RANDOM: of(RANDOM)}
    for name, part in ((BAG, "best"), (BAG_OVER, "over")):
        systems[name] = of(TUNED, part)
    if PEER in chosen:
        for name, part in zip(LIGHTGBM, ("best", "over"), strict=True):
            systems[name] = of(PEER, part)
    return systems


def _single(
    study: Study, collection: Where, k: int, parameters: Parameters, seed: int
) -> dict[str, Any]:
    fold = collection.fold(k)
    model = base_ranker(study, parameters, seed)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    values = values_of(model, fold.test, setting_of(collection))
    return {"values": values, "trees": model.ensemble_.n_trees}


def _bag(
    study: Study, collection: Where, k: int, parameters: Parameters, seed: int
) -> dict[str, Any]:
    fold, size = collection.fold(k), n_models(study, setting_of(collection))
    over = fitted_bag(study, parameters, size, fold.train, fold.valid, seed, DECIDES).models_
    best = [model.truncated(model.best_round_) for model in over]
    return {
        name: _of_bag(
            [(model.predict, model.ensemble_.n_trees) for model in models], fold.test, collection
        )
        for name, models in (("best", best), ("over", over))
    }


def _lightgbm(
    study: Study, collection: Where, k: int, parameters: Parameters, seed: int
) -> dict[str, Any]:
    fold, size = collection.fold(k), n_models(study, setting_of(collection))
    assert fold.valid is not None
    models = lightgbm_bag(study, parameters, DECIDES, fold.train, fold.valid, seed, size)
    return {
        name: _of_bag(
            [
                (partial(model.scores, rounds=getattr(model, name)), getattr(model, name))
                for model in models
            ],
            fold.test,
            collection,
        )
        for name in ("best", "over")
    }


def _of_bag(
    models: list[tuple[Callable[[QueryDataset], np.ndarray], int]],
    test: QueryDataset,
    collection: Where,
) -> dict[str, Any]:
    """Return the results of a bag of models; each is a scoring function and a number of trees."""
    columns = np.array([scores(test) for scores, _ in models])
    values = values_of(together(columns, test), test, setting_of(collection))
    return {"values": values, "trees": sum(trees for _, trees in models)}


EXPERIMENTS = (
    Experiment(
        "ganjisaffar2011-nested",
        "ganjisaffar2011",
        "Table 4, all chosen inside the fold; bags tuned as bags",
        nested,
        data=DATA,
        measured=MEASURED,
        takes="letor",
    ),
)
