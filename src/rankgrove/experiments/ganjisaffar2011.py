"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): bags of LambdaMART on a LETOR collection.

The paper's collections are MQ2007, TD2004 and MSLR-WEB10K; the experiments run on MQ2008. As in the
paper, the parameters of single models and of a bag's models are the best by validation data of a
grid (Table 3; ``ganjisaffar2011-tuning``). LETOR's measures; folds as published. A bag's models are
trained once: without overfitting they are cut at their best round, with it they keep the trees
after it (section 3.5.2).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rankgrove.bagging.aggregate import aggregate
from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.folds import Fold, letor_folds
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.data_folder import data_folder
from rankgrove.experiments.study import (
    Curves,
    Experiment,
    Findings,
    Study,
    markdown,
    p_value,
    per_query,
)
from rankgrove.measures.base import exact_mean
from rankgrove.random import derive_seed, generator
from rankgrove.rankers.bagged import BaggedRanker
from rankgrove.rankers.lambdamart import LambdaMART

MEASURES = ["ndcg@1", "ndcg@3", "meanndcg", "map"]
DECIDES = "ndcg@3"  # on validation data, as in the paper
N_MODELS, TOLERANCE, FRACTION = 45, 0.02, 0.67
# The best by validation NDCG@3, mean of five folds, of 100 configurations of the paper's grid: of
# those that see all queries and features, and of all (docs/results.md).
TUNED_PLAIN: dict[str, Any] = {
    "n_leaves": 15,
    "min_leaf": 0.0012,
    "learning_rate": 0.05,
    "query_fraction": 1.0,
    "feature_fraction": 1.0,
}
TUNED: dict[str, Any] = {
    "n_leaves": 4,
    "min_leaf": 0.0012,
    "learning_rate": 0.1,
    "query_fraction": 0.3,
    "feature_fraction": 0.3,
}
# Table 4(b) of the paper, on MQ2007: for the order of the systems, not for the level.
PAPER = {
    "LambdaMART": (0.4147, 0.4119, 0.5011, 0.4660),
    "LambdaMART with randomisation": (0.4137, 0.4157, 0.5035, 0.4684),
    "BL-MART without overfitting": (0.4197, 0.4217, 0.5079, 0.4726),
    "BL-MART with overfitting": (0.4200, 0.4224, 0.5093, 0.4731),
}
PLAIN, RANDOM, BAG, BAG_OVER = PAPER
LIGHTGBM, LIGHTGBM_BAG = "LightGBM with randomisation", "LightGBM bagged"
COUNTS = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 45)
N_DRAWS = 20  # random choices of so many models from the bag, for Figure 4


def mq2008_folds(study: Study) -> list[Fold]:
    """Return the folds of MQ2008: all five, or two of them at small scale."""
    folder = data_folder("mq2008")
    parts = [read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
    return list(letor_folds(parts))[: study.size(2, 5)]


def base_ranker(study: Study, seed: int, randomised: bool = True) -> LambdaMART:
    """Return LambdaMART with the tuned parameters."""
    return LambdaMART(
        "ndcg@10",
        n_trees=study.size(200, 2000),
        early_stopping=study.size(40, 250),
        random_state=seed,
        n_threads=study.n_threads,
        **(TUNED if randomised else TUNED_PLAIN),
    )


def _values(scorer: Any, data: QueryDataset) -> dict[str, list[float]]:
    return per_query(evaluate(scorer, data, MEASURES, "letor"))


# -- Table 4 and Figure 4 -------------------------------------------------------------------------


def table_4(study: Study) -> Findings:
    """Single models and bags, with and without overfitting, and LightGBM bagged the same way."""
    n_seeds = study.size(1, 3)
    found: dict[str, list[dict[str, Any]]] = {}
    for k, fold in enumerate(mq2008_folds(study), 1):
        plain = study.cell(f"fold {k}, plain", partial(_single, study, fold, 0, False))
        found.setdefault(PLAIN, []).extend([plain] * n_seeds)
        for seed in range(n_seeds):
            key = f"fold {k}, seed {seed}"
            one = study.cell(f"{key}, randomised", partial(_single, study, fold, seed, True))
            found.setdefault(RANDOM, []).append(one)
            bags = study.cell(f"{key}, bag", partial(_bag, study, fold, seed))
            found.setdefault(BAG, []).append(bags["best"])
            found.setdefault(BAG_OVER, []).append(bags["over"])
            if _has_lightgbm():
                peer = study.cell(f"{key}, LightGBM", partial(_lightgbm, study, fold, seed))
                found.setdefault(LIGHTGBM, []).append(peer["single"])
                found.setdefault(LIGHTGBM_BAG, []).append(peer["bag"])
    text = [
        f"MQ2008, {len(mq2008_folds(study))} folds, {n_seeds} seeds, bags of "
        f"{study.size(9, N_MODELS)} models on {FRACTION:.0%} of the training queries; LETOR's "
        "measures, means over queries; in brackets the paper's figures, of MQ2007.",
        _systems(found),
        _tests(found),
        _trees(found),
    ]
    return Findings("\n\n".join(text), {"ganjisaffar2011-figure4": _figure_4(found)})


def _by_query(cells: list[dict[str, Any]], measure: str, n_seeds: int) -> np.ndarray:
    """Return every test query's mean over the seeds."""
    folds = [cells[i : i + n_seeds] for i in range(0, len(cells), n_seeds)]
    means = [np.mean([cell["values"][measure] for cell in fold], axis=0) for fold in folds]
    return np.concatenate(means)


def _systems(found: dict[str, list[dict[str, Any]]]) -> str:
    rows = []
    n_seeds = _n_seeds(found)
    for name, cells in found.items():
        row = [name]
        for i, measure in enumerate(MEASURES):
            mean = exact_mean(_by_query(cells, measure, n_seeds))
            paper = f" ({PAPER[name][i]:.4f})" if name in PAPER else ""
            row.append(f"{mean:.4f}{paper}")
        rows.append(row)
    return markdown(["", "NDCG@1", "NDCG@3", "Mean NDCG", "MAP"], rows)


def _n_seeds(found: dict[str, list[dict[str, Any]]]) -> int:
    """Return the number of seeds: a plain model's cell is the same for all of a fold."""
    plain = found[PLAIN]
    n = 1
    while n < len(plain) and plain[n] is plain[0]:
        n += 1
    return n


def _tests(found: dict[str, list[dict[str, Any]]]) -> str:
    """Return the paired t-tests, over queries, of the bag with overfitting against the others."""
    n_seeds = _n_seeds(found)
    rows = []
    for name, cells in found.items():
        if name == BAG_OVER:
            continue
        row = [name]
        for measure in MEASURES:
            ours = _by_query(found[BAG_OVER], measure, n_seeds)
            row.append(p_value(ours.tolist(), _by_query(cells, measure, n_seeds).tolist()))
        rows.append(row)
    title = f"p of the paired t-test over queries, {BAG_OVER} against each:"
    return f"{title}\n\n{markdown(['', 'NDCG@1', 'NDCG@3', 'Mean NDCG', 'MAP'], rows)}"


def _trees(found: dict[str, list[dict[str, Any]]]) -> str:
    sizes = [
        f"{name} {np.mean([cell['trees'] for cell in cells]):,.0f}" for name, cells in found.items()
    ]
    return f"Trees of a model, mean: {', '.join(sizes)}."


def _single(study: Study, fold: Fold, seed: int, randomised: bool) -> dict[str, Any]:
    model = base_ranker(study, seed, randomised)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    return {"values": _values(model, fold.test), "trees": model.ensemble_.n_trees}


def _bag(study: Study, fold: Fold, seed: int) -> dict[str, Any]:
    """Train a bag; return its figures with the trees after the best rounds, and without them."""
    over = fitted_bag(study, fold.train, fold.valid, seed)
    best = [model.truncated(model.best_round_) for model in over.models_]
    result = {}
    for name, models in (("over", over.models_), ("best", best)):
        curves, values = {}, {}
        for part, data in (("valid", fold.valid), ("test", fold.test)):
            assert data is not None
            columns = np.array([model.predict(data) for model in models])
            curves[part] = _growing(columns, data, seed)
            if part == "test":
                values = _values(_together(columns, data), data)
        trees = sum(model.ensemble_.n_trees for model in models)
        result[name] = {"values": values, "trees": trees, "map": curves}
    return result


def fitted_bag(
    study: Study, train: QueryDataset, valid: QueryDataset | None, seed: int
) -> BaggedRanker:
    """Train a bag that tolerates overfitting."""
    bag = BaggedRanker(
        base_ranker(study, 0),
        study.size(9, N_MODELS),
        FRACTION,
        overfitting_tolerance=TOLERANCE,
        random_state=seed,
        n_threads=study.n_threads,
    )
    return bag.fit(train, valid=valid, valid_measures=DECIDES)


def _together(columns: np.ndarray, data: QueryDataset) -> np.ndarray:
    """Return the bag's scores, in the caller's order."""
    grouped = [data.grouped(scores) for scores in columns]
    return data.ungrouped(aggregate(grouped, data.query_ptr, "minmax", np.ones(len(columns))))


def _growing(columns: np.ndarray, data: QueryDataset, seed: int) -> list[float]:
    """Return the mean MAP of so many models of the bag, drawn at random (Figure 4)."""
    means = []
    for n in (count for count in COUNTS if count <= len(columns)):
        rng = generator(seed, "figure 4", n)
        n_draws = 1 if n == len(columns) else N_DRAWS
        drawn = [
            evaluate(
                _together(columns[rng.permutation(len(columns))[:n]], data), data, "map", "letor"
            ).mean["map"]
            for _ in range(n_draws)
        ]
        means.append(exact_mean(np.array(drawn)))
    return means


def _figure_4(found: dict[str, list[dict[str, Any]]]) -> Curves:
    lines = {}
    for name in (BAG, BAG_OVER):
        for part in ("valid", "test"):
            mean = np.mean([cell["map"][part] for cell in found[name]], axis=0)
            lines[f"{name}, {part}"] = (np.array(COUNTS[: mean.size]), mean)
    return Curves(lines, "number of models", "MAP (LETOR)", "Models in the bag against MAP")


# -- LightGBM, bagged the same way ----------------------------------------------------------------


def _has_lightgbm() -> bool:
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


def _lightgbm(study: Study, fold: Fold, seed: int) -> dict[str, Any]:
    """Train LightGBM with the same parameters, once on all queries and as a bag on the samples."""
    train, valid, test = fold.train, fold.valid, fold.test
    assert valid is not None
    single, trees = _lightgbm_scores(study, train, valid, test, seed)
    columns, total = [], 0
    for model in range(study.size(9, N_MODELS)):
        seen = sampled_queries(train.query_keys, FRACTION, seed, model)
        own = derive_seed(seed, "bagged model", model) % (1 << 31)
        scores, n = _lightgbm_scores(study, train.select(seen), valid, test, own)
        columns.append(scores)
        total += n
    bag = _together(np.array(columns), test)
    return {
        "single": {"values": _values(single, test), "trees": trees},
        "bag": {"values": _values(bag, test), "trees": total},
    }


def _lightgbm_scores(
    study: Study, train: QueryDataset, valid: QueryDataset, test: QueryDataset, seed: int
) -> tuple[np.ndarray, int]:
    import lightgbm as lgb

    base = base_ranker(study, seed)
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [3],
        "num_leaves": base.n_leaves,
        "min_data_in_leaf": max(1, round(base.min_leaf * train.n_rows)),
        "min_sum_hessian_in_leaf": 0.0,
        "learning_rate": base.learning_rate,
        "bagging_fraction": base.query_fraction,
        "bagging_freq": 1,
        "bagging_by_query": True,
        "feature_fraction_bynode": base.feature_fraction,
        "lambdarank_truncation_level": 15,
        "seed": seed,
        "deterministic": True,
        "num_threads": study.n_threads or 0,
        "verbose": -1,
    }
    sets = [_lightgbm_data(lgb, data) for data in (train, valid)]
    model = lgb.train(
        parameters,
        sets[0],
        base.n_trees,
        valid_sets=[sets[1]],
        callbacks=[lgb.early_stopping(base.early_stopping or 1, verbose=False)],
    )
    scores = np.asarray(model.predict(test.X, num_threads=study.n_threads or 0))
    return scores, model.best_iteration


def _lightgbm_data(lgb: Any, data: QueryDataset) -> Any:
    order = np.arange(data.n_rows) if data.order is None else data.order
    return lgb.Dataset(data.X[order], data.y[order], group=np.diff(data.query_ptr))


# -- Table 5: variance ----------------------------------------------------------------------------


def table_5(study: Study) -> Findings:
    """Train on random samples of the queries; mean and variance of every measure."""
    fold = mq2008_folds(study)[0]
    n_samples = study.size(3, 10)
    found: dict[str, list[dict[str, float]]] = {}
    for sample in range(n_samples):
        cell = study.cell(f"sample {sample}", partial(_of_a_sample, study, fold, sample))
        for name, means in cell.items():
            found.setdefault(name, []).append(means)
    rows = []
    for name, cells in found.items():
        row = [name]
        for measure in MEASURES:
            values = np.array([cell[measure] for cell in cells])
            row += [f"{exact_mean(values):.4f}", f"{1e6 * values.var(ddof=1):.1f}"]
        rows.append(row)
    header = [""]
    for name in ("NDCG@1", "NDCG@3", "Mean NDCG", "MAP"):
        header += [name, "variance x 10^6"]
    reductions = []
    for measure in MEASURES:
        before, after = (
            np.var([cell[measure] for cell in found[name]], ddof=1) for name in (RANDOM, BAG_OVER)
        )
        reductions.append(f"{measure} {100 * (after / before - 1):+.1f} %")
    text = [
        f"MQ2008, fold 1: {n_samples} random samples of {FRACTION:.0%} of the training queries; "
        "test figures, mean and variance over the samples.",
        markdown(header, rows),
        f"Variance of {BAG_OVER} against {RANDOM}: {', '.join(reductions)} (paper, on MSLR-WEB10K: "
        "ndcg@1 -67.3 %, ndcg@3 -18.8 %, meanndcg -40.2 %, map -57.1 %).",
    ]
    return Findings("\n\n".join(text), {})


def _of_a_sample(study: Study, fold: Fold, sample: int) -> dict[str, dict[str, float]]:
    seen = sampled_queries(fold.train.query_keys, FRACTION, 1000, sample)
    part = Fold(fold.train.select(seen), fold.valid, fold.test)
    cells = {
        PLAIN: _single(study, part, 0, False),
        RANDOM: _single(study, part, sample, True),
    }
    bags = _bag(study, part, sample)
    cells |= {BAG: bags["best"], BAG_OVER: bags["over"]}
    return {
        name: {m: exact_mean(np.array(cell["values"][m])) for m in MEASURES}
        for name, cell in cells.items()
    }


EXPERIMENTS = (
    Experiment("ganjisaffar2011-table4", "ganjisaffar2011", "Table 4 and Figure 4: bags", table_4),
    Experiment("ganjisaffar2011-table5", "ganjisaffar2011", "Table 5: variance", table_5),
)
