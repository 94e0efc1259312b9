"""BL-MART's Table 4 on several random splits of the queries into folds.

Plain LambdaMART has no randomness. The published folds give only five models of it, and no seeds
average out their luck; bags are averages of many models. To compare both fairly, the queries are
divided into new folds as often as other systems have seeds.

The parameters of plain LambdaMART are chosen in every fold, from as many configurations as in
``ganjisaffar2011-nested``. Bags have the paper's best shape for MQ2007, without tuning; only their
target is chosen, out of bag. The same holds for LightGBM.
"""

from __future__ import annotations

import itertools

import numpy as np

from rankgrove.tuning.search_space import PRESETS, Parameters, grid
from rankgrove.validation import counted
from rankgrove_papers.ganjisaffar2011.lightgbm_bags import has_lightgbm
from rankgrove_papers.ganjisaffar2011.nested import (
    OURS,
    PEER,
    TARGETS,
    THEIRS,
    TUNED,
    Chosen,
    Ways,
    beside,
    candidates,
    choose,
    n_candidates,
    n_tried,
    tables,
    target_name,
    tested,
    try_bag,
    try_lightgbm,
    try_single,
)
from rankgrove_papers.ganjisaffar2011.settings import (
    DATA,
    FRACTION,
    MEASURED,
    MEASURES,
    PLAIN,
    RANDOM,
    SETTINGS,
    edges_of,
    n_models,
    setting_of,
    the_collection,
)
from rankgrove_papers.ganjisaffar2011.table4 import Cells
from rankgrove_papers.grid_edges import edge_report
from rankgrove_papers.sources import Redrawn
from rankgrove_papers.study import Experiment, Findings, Study

SHAPE = SETTINGS["MQ2007"].randomised


def repeated(study: Study) -> Findings:
    """Divide the queries into folds several times; choose and test in every fold."""
    collection = the_collection(study)
    setting, numbers = setting_of(collection), range(1, study.size(2, 5) + 1)
    n_rows, n_queries = collection.sizes()
    draws = [Redrawn(collection, seed) for seed in range(1, study.size(1, 5) + 1)]
    ways = _ways(study, setting.grid)
    results: list[Cells] = []
    chosen: list[Chosen] = []
    for draw in draws:
        choices = choose(study, draw, numbers, ways)
        choices[RANDOM] = choices[TUNED]
        systems = tested(study, draw, choices, range(draw.seed, draw.seed + 1))
        results.append(_in_one_order(systems, draw, numbers))
        chosen.append(choices)
    text = [
        f"{collection.name}: {n_queries:,} queries, {n_rows:,} documents, split again into five "
        f"parts, {counted(len(draws), 'time')}, {len(numbers)} of 5 folds; bags of "
        f"{n_models(study, setting)} models on {FRACTION:.0%} of the training queries; means over "
        f"queries{beside(setting)}. Rounds by MAP of the validation data. {PLAIN}: in every fold "
        "the best of "
        f"{counted(n_candidates(study), 'configuration')} by MAP of the validation data; the "
        f"others: {_shape()}, the best of {counted(len(ways[TUNED][1]), 'target')} by MAP out of "
        f"bag, of bags of {n_tried(study)} models. {TARGETS}",
        *tables(_together(results), setting),
        _targets(chosen),
        _edges(chosen, setting.grid),
        "The grid is the paper's (Table 2).",
    ]
    return Findings("\n\n".join(text), {})


def _ways(study: Study, grid_name: str) -> Ways:
    ways: Ways = {
        PLAIN: (try_single, candidates(study, grid_name, OURS, plain=True)),
        TUNED: (try_bag, _of_all_targets(OURS)),
    }
    if has_lightgbm():
        ways[PEER] = (try_lightgbm, _of_all_targets(THEIRS))
    return ways


def _of_all_targets(targets: Parameters) -> list[Parameters]:
    return [{**SHAPE, **target} for target in grid(targets)]


def _shape() -> str:
    return ", ".join(f"{name}={value}" for name, value in SHAPE.items())


def _in_one_order(systems: Cells, draw: Redrawn, numbers: range) -> Cells:
    """Return the values of a draw with the test queries in the order that all draws share."""
    keys = np.concatenate([draw.fold(k).test.query_keys for k in numbers])
    order = np.argsort(keys)
    ordered: Cells = {}
    for name, folds in systems.items():
        cells = [fold[0] for fold in folds]
        joined = {m: np.concatenate([cell["values"][m] for cell in cells]) for m in MEASURES}
        assert all(values.size == keys.size for values in joined.values())
        trees = float(np.mean([cell["trees"] for cell in cells]))
        cell = {"values": {m: joined[m][order].tolist() for m in MEASURES}, "trees": trees}
        ordered[name] = [[cell]]
    return ordered


def _together(draws: list[Cells]) -> Cells:
    """Return all draws as if they were seeds."""
    return {name: [[systems[name][0][0] for systems in draws]] for name in draws[0]}


def _edges(chosen: list[Chosen], grid_name: str) -> str:
    """Return a report on how often plain LambdaMART chose the edges of its grid.

    The other systems have a fixed shape.
    """
    plain = [parameters for choices in chosen for parameters in choices[PLAIN].values()]
    space = {k: v for k, v in PRESETS[grid_name].items() if not k.endswith("_fraction")}
    return edge_report(edges_of({PLAIN: plain}, space))


def _targets(chosen: list[Chosen]) -> str:
    """Return a sentence on how often every target was chosen."""
    lines = []
    for name in (PLAIN, TUNED, PEER):
        of_name = [list(choices[name].values()) for choices in chosen if name in choices]
        counts: dict[str, int] = {}
        for parameters in itertools.chain(*of_name):
            target = target_name(parameters)
            counts[target] = counts.get(target, 0) + 1
        if counts:
            most = sorted(counts.items(), key=lambda item: -item[1])
            lines.append(f"{name}: {', '.join(f'{target} {n}' for target, n in most)}")
    return f"How often a target was chosen. {'; '.join(lines)}."


EXPERIMENTS = (
    Experiment(
        "ganjisaffar2011-repeated",
        "ganjisaffar2011",
        "Table 4 on redrawn folds, several times",
        repeated,
        data=DATA.replace("folds as published", "redrawn folds"),
        measured=MEASURED,
        takes="letor",
    ),
)
