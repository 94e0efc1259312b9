"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): tuning and pruning, on MQ2008."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rankgrove.data.folds import Fold
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.ganjisaffar2011 import DECIDES, base_ranker, fitted_bag, mq2008_folds
from rankgrove.experiments.study import Curves, Experiment, Findings, Study, markdown
from rankgrove.experiments.tune import tune
from rankgrove.measures.base import exact_mean
from rankgrove.rankers.pruning import prune

# -- pruning --------------------------------------------------------------------------------------


def pruning(study: Study) -> Findings:
    """Prune bags and single models on the validation data; test figures before and after."""
    rows = []
    settings = [("bag", t, m) for t, m in ((0.0, 0.0), (0.005, 0.0), (0.01, 1.0))]
    settings += [("single", 0.0, 0.0), ("single", 0.01, 1.0)]
    folds = mq2008_folds(study)
    for what, tolerance, margin in settings:
        cells = [
            study.cell(
                f"fold {k}, {what}, tolerance {tolerance}, margin {margin}",
                partial(_pruned, study, fold, what, tolerance, margin),
            )
            for k, fold in enumerate(folds, 1)
        ]
        gone = 1 - sum(cell["left"] for cell in cells) / sum(cell["trees"] for cell in cells)
        row = [what, f"{tolerance:g}", f"{margin:g}", f"{gone:.0%}"]
        for part in ("valid", "test"):
            for measure in ("ndcg@3", "map"):
                before, after = (
                    exact_mean(np.array([cell[part][when][measure] for cell in cells]))
                    for when in ("before", "after")
                )
                row.append(f"{before:.4f} -> {after:.4f}")
        rows.append(row)
    header = ["model", "tolerance", "margin", "trees gone"]
    header += [f"{part} {m}" for part in ("valid", "test") for m in ("NDCG@3", "MAP")]
    text = (
        f"MQ2008, {len(folds)} folds: pruned so that NDCG@3 and MAP of the validation data hold; "
        "means over folds, LETOR's measures. The paper names 40-80 % of the trees as removable.\n\n"
        f"{markdown(header, rows)}"
    )
    return Findings(text, {})


def _pruned(study: Study, fold: Fold, what: str, tolerance: float, margin: float) -> dict[str, Any]:
    assert fold.valid is not None
    if what == "bag":
        model: Any = fitted_bag(study, fold.train, fold.valid, 0)
    else:
        model = base_ranker(study, 0).fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    measures = ["ndcg@3", "map"]
    found = prune(
        model,
        fold.valid,
        measures,
        tolerance,
        margin=margin,
        convention="letor",
        n_threads=study.n_threads,
    )
    result: dict[str, Any] = {"trees": found.n_trees[0], "left": found.n_trees[1]}
    for part, data in (("valid", fold.valid), ("test", fold.test)):
        result[part] = {
            when: evaluate(one, data, measures, "letor").mean
            for when, one in (("before", model), ("after", found.ranker))
        }
    return result


# -- Figure 1 and Table 3: tuning -----------------------------------------------------------------


def tuning(study: Study) -> Findings:
    """Random configurations of the paper's grid: the best, and how far the choice overfits."""
    path = study.store.path
    found = tune(
        base_ranker(study, 0),
        mq2008_folds(study),
        "small",
        search="random",
        n_trials=study.size(8, 100),
        measures=DECIDES,
        convention="letor",
        store=None if path is None else path.with_name(f"{path.stem}-trials.jsonl"),
        n_threads=study.n_threads,
    )
    m, valid, test = found.best_of()
    top = int(np.argmax(test))
    nested = [value for _, value in found.nested()]
    text = [
        f"MQ2008, {len(found.trials)} of the 1,008 configurations, {found.n_folds} folds. The best "
        "by validation NDCG@3 (Table 3's layout):",
        found.table(5),
        f"Expected test NDCG@3 of the best of m configurations (Figure 1): {test[0]:.4f} for one, "
        f"highest, {test[top]:.4f}, for {m[top]}, {test[-1]:.4f} for all {m[-1]}; on the "
        f"validation data {valid[0]:.4f}, {valid[top]:.4f} and {valid[-1]:.4f}. Chosen for every "
        f"fold by its own validation data: {exact_mean(np.array(nested)):.4f}.",
    ]
    lines = {"validation": (m, valid), "test": (m, test)}
    figure = Curves(
        lines, "number of configurations tried", "NDCG@3", "Expected best by validation data"
    )
    return Findings("\n\n".join(text), {"ganjisaffar2011-figure1": figure})


EXPERIMENTS = (
    Experiment("ganjisaffar2011-pruning", "ganjisaffar2011", "Section 5: pruned bags", pruning),
    Experiment("ganjisaffar2011-tuning", "ganjisaffar2011", "Table 3 and Figure 1: tuning", tuning),
)
