"""Tree adaptation on judged collections: queries with short lists as source, long ones as target.

LETOR's collections are of one engine each, and their features are scaled within queries, so that
no two collections and no query-level feature make two domains. What sets their queries apart is
how many documents were judged: a short list has only what several systems put on top, a long one
goes far down, and what distinguishes relevant documents differs. The number is known before any
judgement, as a market is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rankgrove.data.concatenate import concatenate
from rankgrove.data.folds import k_fold
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.chen2008 import FOLDS, LEAVES, RATE
from rankgrove.experiments.data_folder import data_folder
from rankgrove.experiments.study import Experiment, Findings, Study, markdown, mean_cell, p_value
from rankgrove.rankers.adapting import adapt_with
from rankgrove.rankers.mart import MART

COLLECTIONS = ("mq2008", "ohsumed")
MEASURE = "ndcg@10"
ADDED: dict[str, Any] = {"n_leaves": LEAVES, "learning_rate": RATE}
METHODS: dict[str, dict[str, Any]] = {
    "Trada, responses": {"beta": 10.0},
    "Trada, splits": {"beta": 10.0, "tune": "splits"},
    "Trada, beta by cv": {"beta": "cv"},
    "Trada, responses + 30": {"beta": 10.0, "extra_trees": 30, **ADDED},
    "base": {"method": "base"},
    "small": {"method": "small"},
    "additive + 30": {"method": "additive", "extra_trees": 30, **ADDED},
    "combined, W=1": {"method": "combine", "weight": 1.0},
    "combined, W=10": {"method": "combine", "weight": 10.0},
    "LambdaSMART": {
        "method": "submodel",
        "n_trees": 30,
        "n_leaves": LEAVES,
        "submodel_weight": "optimal",
        "row_fraction": 0.7,
    },
}


def short_and_long(data: QueryDataset) -> tuple[QueryDataset, QueryDataset]:
    """Return the queries with at most the median number of documents, and the others."""
    length = np.diff(data.query_ptr)
    short = length <= np.median(length)
    return data.select(short), data.select(~short)


def letor(study: Study) -> Findings:
    """Adapt a model of queries with short lists to those with long ones."""
    text = []
    for name in COLLECTIONS:
        folder = data_folder(name)
        parts = [read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
        source, target = short_and_long(concatenate(parts))
        rows = []
        found = {
            method: [
                value
                for k in range(FOLDS)
                for value in study.cell(
                    f"{name}, {method}, fold {k + 1}",
                    partial(_one, study, source, target, k, options),
                )
            ]
            for method, options in METHODS.items()
        }
        ours = next(iter(found))
        for method, values in found.items():
            rows.append([method, mean_cell(values), p_value(found[ours], values)])
        rows[0][2] = ""
        text.append(
            f"### {name.upper()}: {source.n_queries} source queries ({source.n_rows:,} documents), "
            f"{target.n_queries} target queries ({target.n_rows:,}), {FOLDS} folds of the target"
        )
        text.append(markdown(["method", "NDCG@10", f"p against {ours}"], rows))
    text.append("Percent, with the half width of the 95 % interval; p: paired t-test.")
    return Findings("\n\n".join(text), {})


def _one(
    study: Study, source: QueryDataset, target: QueryDataset, k: int, options: dict[str, Any]
) -> list[float]:
    fold = list(k_fold(target, FOLDS, seed=0))[k]
    base = MART(
        n_trees=study.size(100, 300), n_leaves=LEAVES, learning_rate=RATE, n_threads=study.n_threads
    ).fit(source)
    settings = {"method": "trada", **options}
    method = settings.pop("method")
    if method == "combine":
        settings["source"] = source
    if method != "base":
        settings["n_threads"] = study.n_threads
    model = adapt_with(method, base, fold.train, **settings)
    values = evaluate(model, fold.test, MEASURE, "letor").per_query[MEASURE]
    return [float(value) for value in values]


EXPERIMENTS = (
    Experiment(
        "chen2008-letor",
        "chen2008",
        "tree adaptation on MQ2008 and OHSUMED, from short lists to long ones",
        letor,
    ),
)
