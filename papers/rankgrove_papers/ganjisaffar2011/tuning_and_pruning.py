"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): tuning, overfitting and pruning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankgrove import evaluate, prune, tune
from rankgrove.bagging.sample import sampled_queries
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.search_space import PRESETS
from rankgrove.tuning.tables import markdown
from rankgrove.validation import counted
from rankgrove_papers.ganjisaffar2011.settings import (
    DATA,
    DECIDES,
    FRACTION,
    MEASURED,
    VARIANT,
    base_ranker,
    edges_of,
    fitted_bag,
    n_models,
    setting_of,
    the_collection,
)
from rankgrove_papers.grid_edges import edge_report
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import Curves, Experiment, Findings, Study
from rankgrove_papers.tables import p_value, per_query

# -- pruning --------------------------------------------------------------------------------------

HELD = ("ndcg@3", "map")
# model -> tolerance, margin, share of the trees that are always kept
PRUNINGS = {
    "bag": ((0.0, 0.0, 0.6), (0.0, 0.0, 0.1), (0.01, 1.0, 0.1), (0.0, 0.0, 0.0), (0.01, 1.0, 0.0)),
    "single": ((0.0, 0.0, 0.1), (0.01, 1.0, 0.1)),
}


def pruning(study: Study) -> Findings:
    """Prune bags and single models on the validation data; compare test results with before."""
    collection = the_collection(study)
    numbers = collection.numbers(study.size(2, 5))
    cells = study.cells(
        {f"fold {k}, {kind}": (_pruned, collection, k, kind) for kind in PRUNINGS for k in numbers}
    )
    rows = []
    for kind, ways in PRUNINGS.items():
        for i, (tolerance, margin, keep) in enumerate(ways):
            whole = [cells[f"fold {k}, {kind}"]["before"] for k in numbers]
            left = [cells[f"fold {k}, {kind}"]["after"][i] for k in numbers]
            removed = 1 - sum(cell["trees"] for cell in left) / sum(cell["trees"] for cell in whole)
            row = [kind, f"{tolerance:g}", f"{margin:g}", f"{keep:g}", f"{removed:.0%}"]
            for part in ("valid", "test"):
                for measure in HELD:
                    before, after = (
                        [v for cell in folds for v in cell[part][measure]]
                        for folds in (whole, left)
                    )
                    means = [exact_mean(np.array(values)) for values in (before, after)]
                    p = f" ({p_value(after, before)})" if part == "test" else ""
                    row.append(f"{means[0]:.4f} -> {means[1]:.4f}{p}")
            rows.append(row)
    header = ["model", "tolerance", "margin", "keep", "trees removed"]
    header += [f"{part} {m.upper()}" for part in ("valid", "test") for m in HELD]
    text = (
        f"{collection.described(numbers)}: pruned so that NDCG@3 and MAP of the validation data "
        "hold; means over queries, in brackets p of the paired t-test over test queries. The "
        f"paper names 40-80 % of the trees as removable. {VARIANT}\n\n{markdown(header, rows)}"
    )
    return Findings(text, {})


def _pruned(study: Study, collection: Collection, k: int, kind: str) -> dict[str, Any]:
    setting, (train, valid, test) = setting_of(collection), collection.fold(k)
    assert valid is not None
    if kind == "bag":
        model: Any = fitted_bag(
            study, setting.randomised, n_models(study, setting), train, valid, 0
        )
    else:
        model = base_ranker(study, setting.randomised)
        model.fit(train, valid=valid, valid_measures=DECIDES)

    def figures(ranker: Any, n_trees: int) -> dict[str, Any]:
        values = {
            part: per_query(evaluate(ranker, data, HELD, setting.convention))
            for part, data in (("valid", valid), ("test", test))
        }
        return {"trees": n_trees, **values}

    after, before = [], 0
    for tolerance, margin, keep in PRUNINGS[kind]:
        pruned = prune(
            model,
            valid,
            HELD,
            tolerance,
            margin=margin,
            keep=keep,
            convention=setting.convention,
            n_threads=study.n_threads,
        )
        before = pruned.n_trees[0]
        after.append(figures(pruned.ranker, pruned.n_trees[1]))
    return {"before": figures(model, before), "after": after}


# -- Figure 1 and Table 3: tuning -----------------------------------------------------------------


def tuning(study: Study) -> Findings:
    """Try random configurations of the paper's grid; report the best, and how far they overfit."""
    collection = the_collection(study)
    setting, numbers = setting_of(collection), collection.numbers(study.size(2, 5))
    path = study.store.path
    result = tune(
        base_ranker(study, {}),
        [collection.fold(k) for k in numbers],
        setting.grid,
        search="random",
        n_trials=study.size(8, 100),
        n_seeds=study.size(1, 3),
        measures=DECIDES,
        convention=setting.convention,
        store=None if path is None else path.with_name(f"{path.stem}-trials.jsonl"),
        cluster=study.cluster,
        n_threads=study.n_threads,
    )
    m, valid, test = result.best_of()
    top = int(np.argmax(test))
    nested = [value for _, value in result.nested()]
    of_folds = {"best of the fold": [parameters for parameters, _ in result.nested()]}
    text = [
        f"{collection.described(numbers)}: {len(result.trials)} configurations of the paper's "
        f"grid, {counted(study.size(1, 3), 'seed')}. {VARIANT} The best by validation NDCG@3 "
        "(Table 3's layout):",
        result.table(5),
        f"Expected test NDCG@3 of the best of m configurations (Figure 1): {test[0]:.4f} for one, "
        f"highest, {test[top]:.4f}, for {m[top]}, {test[-1]:.4f} for all {m[-1]}; on the "
        f"validation data {valid[0]:.4f}, {valid[top]:.4f} and {valid[-1]:.4f}. Chosen for every "
        f"fold by its own validation data: {exact_mean(np.array(nested)):.4f}.",
        edge_report(edges_of(of_folds, PRESETS[setting.grid])),
        "The grid is the paper's (Table 2).",
    ]
    lines = {"validation": (m, valid), "test": (m, test)}
    figure = Curves(
        lines, "number of configurations tried", "NDCG@3", "Expected best by validation data"
    )
    return Findings("\n\n".join(text), {"ganjisaffar2011-figure1": figure})


# -- Figure 2: a run of 2,000 trees ---------------------------------------------------------------


def figure_2(study: Study) -> Findings:
    """Train far beyond the best round; report training and validation values, tree by tree."""
    collection = the_collection(study)
    run = study.cell("fold 1", _long_run, collection)
    valid = np.array(run["valid"])
    best = int(valid.argmax())
    marks = [r for r in (1, 10, 50, 100, 200, 500, 1000, 2000) if r <= valid.size]
    rows = [
        [name, *(f"{values[r - 1]:.4f}" for r in marks), f"{max(values):.4f}"]
        for name, values in (("training", run["train"]), ("validation", run["valid"]))
    ]
    text = (
        f"{collection.name}, fold 1, {DECIDES.upper()} by number of trees (Figure 2). {VARIANT}"
        "\n\n"
        + markdown(["", *(str(r) for r in marks), "highest"], rows)
        + f"\n\nThe validation figure is highest, {valid[best]:.4f}, after {best + 1:,} trees; "
        f"after {valid.size:,} it is {valid[-1]:.4f}, {100 * (1 - valid[-1] / valid[best]):.1f} % "
        "less. In the paper it is highest after a few hundred trees, and falls little up to 2,000."
    )
    x = np.arange(1, valid.size + 1)
    lines = {"training": (x, np.array(run["train"])), "validation": (x, valid)}
    figure = Curves(lines, "trees", "NDCG@3", "NDCG@3 during boosting")
    return Findings(text, {"ganjisaffar2011-figure2": figure})


def _long_run(study: Study, collection: Collection) -> dict[str, list[float]]:
    setting, fold = setting_of(collection), collection.fold(1)
    model = base_ranker(study, setting.randomised).set_params(early_stopping=None)
    model.fit(fold.train, valid={"train": fold.train, "valid": fold.valid}, valid_measures=DECIDES)
    (train,), (valid,) = (list(model.history_[part].values()) for part in ("train", "valid"))
    return {"train": train, "valid": valid}


# -- Figure 3: how two models' scores are distributed ---------------------------------------------

BINS = 40


def figure_3(study: Study) -> Findings:
    """Train two models on different samples; show the distributions of their validation scores."""
    collection = the_collection(study)
    cell = study.cell("fold 1", _two_models, collection)
    edges = np.array(cell["edges"])
    rows, lines = [], {}
    for k, model in enumerate(cell["models"], 1):
        quantiles = [f"{value:.3f}" for value in model["quantiles"]]
        rows.append([f"model {k}", *quantiles, model["spread"]])
        lines[f"model {k}"] = ((edges[:-1] + edges[1:]) / 2, np.array(model["shares"]))
    first, second = (model["spread"] for model in cell["models"])
    text = (
        f"{collection.name}, fold 1: validation scores of two models of different random samples "
        "(Figure 3), and the mean over queries of the highest minus the lowest score. "
        f"{VARIANT}\n\n"
        + markdown(["", "least", "5 %", "50 %", "95 %", "largest", "reach in a query"], rows)
        + f"\n\nThe reaches differ by a factor of {max(first, second) / min(first, second):.2f}: "
        "an average of plain scores would count one model that much more than the other, which is "
        "why scores are scaled within queries (section 3.5.1)."
    )
    figure = Curves(lines, "score", "share of documents", "Scores of two models")
    return Findings(text, {"ganjisaffar2011-figure3": figure})


def _two_models(study: Study, collection: Collection) -> dict[str, Any]:
    setting, fold = setting_of(collection), collection.fold(1)
    assert fold.valid is not None
    columns = []
    for sample in range(2):
        seen = sampled_queries(fold.train.query_keys, FRACTION, 0, sample)
        model = base_ranker(study, setting.randomised, sample)
        model.fit(fold.train.select(seen), valid=fold.valid, valid_measures=DECIDES)
        columns.append(fold.valid.grouped(model.predict(fold.valid)))
    edges = np.linspace(min(map(np.min, columns)), max(map(np.max, columns)), BINS + 1)
    starts = fold.valid.query_ptr[:-1]
    models = []
    for scores in columns:
        reach = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        models.append(
            {
                "quantiles": np.quantile(scores, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist(),
                "spread": round(exact_mean(reach), 3),
                "shares": (np.histogram(scores, edges)[0] / scores.size).tolist(),
            }
        )
    return {"edges": edges.tolist(), "models": models}


def _experiment(
    name: str, shows: str, run: Callable[[Study], Findings], measured: str = MEASURED
) -> Experiment:
    full = f"ganjisaffar2011-{name}"
    return Experiment(full, "ganjisaffar2011", shows, run, DATA, measured, takes="letor")


EXPERIMENTS = (
    _experiment("pruning", "Section 5: pruned bags", pruning),
    _experiment("tuning", "Table 3 and Figure 1: tuning", tuning),
    _experiment(
        "figure2", "Figure 2: 2,000 trees, training and validation figures", figure_2, "papers"
    ),
    _experiment("figure3", "Figure 3: distributions of two models' scores", figure_3, ""),
)
