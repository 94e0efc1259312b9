"""Tree adaptation on judged collections: queries with short lists as source, long ones as target.

LETOR's collections are of one engine each, and their features are scaled within queries, so that
no two collections and no query-level feature make two domains. What sets their queries apart is
how many documents were judged: a short list has only what several systems put on top, a long one
goes far down, and what distinguishes relevant documents differs. The number is known before any
judgement, as a market is.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from rankgrove.data.concatenate import concatenate
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.chen2008 import FOLDS, LEAVES, RATE, samples
from rankgrove.experiments.data_folder import data_folder
from rankgrove.experiments.study import Experiment, Findings, Study, markdown, mean_cell, p_value
from rankgrove.rankers.adapting import adapt_with
from rankgrove.rankers.mart import MART

# Of every collection: the target queries that models see, a few and all of four folds.
COLLECTIONS: dict[str, tuple[int | None, ...]] = {"mq2008": (50, None), "ohsumed": (15, None)}
MEASURE = "ndcg@10"
OURS = "Trada, responses"
ADDED: dict[str, Any] = {"n_leaves": LEAVES, "learning_rate": RATE}
METHODS: dict[str, dict[str, Any]] = {
    OURS: {"beta": 10.0},
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
    for name, sizes in COLLECTIONS.items():
        folder = data_folder(name)
        parts = [read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
        source, target = short_and_long(concatenate(parts))
        rows: list[list[str]] = [[method] for method in METHODS]
        header = ["method"]
        for size in sizes:
            found = _all_methods(study, name, source, target, size)
            header += [f"{size or 'all'} queries", f"p against {OURS}"]
            for row in rows:
                values = found[row[0]]
                row += [mean_cell(values), "" if row[0] == OURS else p_value(found[OURS], values)]
        text.append(
            f"### {name.upper()}: {source.n_queries} source queries ({source.n_rows:,} documents), "
            f"{target.n_queries} target queries ({target.n_rows:,}), {FOLDS} folds of the target"
        )
        text.append(markdown(header, rows))
    text.append("NDCG@10 in percent, with the half width of the 95 % interval; p: paired t-test.")
    return Findings("\n\n".join(text), {})


def _all_methods(
    study: Study, name: str, source: QueryDataset, target: QueryDataset, size: int | None
) -> dict[str, list[float]]:
    """Return every method's values of all target queries, fold after fold."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for k, (train, test) in enumerate(samples(target, size or target.n_queries)):
        for method, options in METHODS.items():
            found[method] += study.cell(
                f"{name}, {size or 'all'} queries, {method}, fold {k + 1}",
                partial(_one, study, source, train, test, options),
            )
    return found


@lru_cache(maxsize=1)
def _base(n_trees: int, n_threads: int | None, source: QueryDataset) -> MART:
    """Return the base model of a source; made once a process."""
    return MART(n_trees=n_trees, n_leaves=LEAVES, learning_rate=RATE, n_threads=n_threads).fit(
        source
    )


def _one(
    study: Study,
    source: QueryDataset,
    train: QueryDataset,
    test: QueryDataset,
    options: dict[str, Any],
) -> list[float]:
    base = _base(study.size(100, 300), study.n_threads, source)
    settings = {"method": "trada", **options}
    method = settings.pop("method")
    if method == "combine":
        settings["source"] = source
    if method != "base":
        settings["n_threads"] = study.n_threads
    model = adapt_with(method, base, train, **settings)
    values = evaluate(model, test, MEASURE, "letor").per_query[MEASURE]
    return [float(value) for value in values]


EXPERIMENTS = (
    Experiment(
        "chen2008-letor",
        "chen2008",
        "tree adaptation on MQ2008 and OHSUMED, from short lists to long ones",
        letor,
    ),
)
