"""Tree adaptation on judged collections: queries with short lists as source, long ones as target.

Each LETOR collection is of one search engine, and its features are scaled within queries. So
neither two collections nor a feature of queries give two domains. The queries differ in the number
of judged documents: a short list has only the top documents of several systems, a long list has
many more, and other features distinguish relevant documents. Like a market, the number is known
before any judgement.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rankgrove import MART, QueryDataset, adapt_with, evaluate
from rankgrove.tuning.tables import markdown
from rankgrove_papers.chen2008.generated_domains import (
    BETAS,
    BOOSTED,
    FOLDS,
    LEAVES,
    VARIANT,
    samples,
    with_all_rows_counted,
)
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import COLLECTIONS as LETOR
from rankgrove_papers.study import Experiment, Findings, Study
from rankgrove_papers.tables import mean_cell, p_value

# Numbers of target queries for training, by collection: a few, and all of four folds (None).
FEW_AND_ALL: tuple[int | None, ...] = (50, None)
COLLECTIONS = {"MQ2008": FEW_AND_ALL, "OHSUMED": (15, None)}
MEASURE = "ndcg@10"
OURS = "Trada, responses"
CV = "Trada, beta by cv"
METHODS: dict[str, dict[str, Any]] = {
    OURS: {"beta": 10.0},
    "Trada, splits": {"beta": 10.0, "tune": "splits"},
    CV: {"beta": "cv", "betas": BETAS},
    "Trada, responses + 30": {"beta": 10.0, "extra_trees": 30},
    "base": {"method": "base"},
    "small": {"method": "small"},
    "additive + 30": {"method": "additive", "extra_trees": 30},
    "combined, W=1": {"method": "combine", "weight": 1.0},
    "combined, W=10": {"method": "combine", "weight": 10.0},
    "LambdaSMART": {
        "method": "submodel",
        "n_trees": 30,
        "n_leaves": LEAVES,
        "submodel_weight": "optimal",
        "row_fraction": 0.7,
        "split": "newton",
        "truncation": 15,
        "normalise": True,
        "l2": 0.1,
    },
}
SMART = (
    "LambdaSMART: lambdas of NDCG@10, normalised, pairs with one of the top 15, Newton splits, l2 "
    "0.1, 70 % of the rows."
)


def short_and_long(data: QueryDataset) -> tuple[QueryDataset, QueryDataset]:
    """Return the queries with at most the median number of documents, and the other queries."""
    length = np.diff(data.query_ptr)
    short = length <= np.median(length)
    return data.select(short), data.select(~short)


def letor(study: Study) -> Findings:
    """Adapt a model of queries with short lists to those with long ones."""
    text = []
    for collection in study.data.collections(*(name.lower() for name in COLLECTIONS)):
        source, target = short_and_long(collection.whole())
        sizes = COLLECTIONS.get(collection.name, FEW_AND_ALL)
        rows: list[list[str]] = [[method] for method in METHODS]
        header = ["method"]
        betas = {}
        for size in sizes:
            cells = _all_methods(study, collection, target, size)
            ndcg = {
                method: [value for cell in of_method for value in cell["values"]]
                for method, of_method in cells.items()
            }
            chosen = [cell["beta"] for cell in cells[CV]]
            betas[f"{CV}, {size or 'all'} queries"] = Choices(chosen, METHODS[CV]["betas"])
            header += [f"{size or 'all'} queries", f"p against {OURS}"]
            for row in rows:
                values = ndcg[row[0]]
                row += [mean_cell(values), "" if row[0] == OURS else p_value(ndcg[OURS], values)]
        text.append(
            f"### {collection.name}: {source.n_queries} source queries ({source.n_rows:,} "
            f"documents), {target.n_queries} target queries ({target.n_rows:,}), {FOLDS} folds of "
            "the target"
        )
        text += [markdown(header, rows), edge_report(betas)]
    text.append(
        "NDCG@10 in percent, with the half width of the 95 % interval; p: paired t-test. "
        f"{VARIANT} {SMART}"
    )
    return Findings("\n\n".join(text), {})


def _all_methods(
    study: Study, collection: Collection, target: QueryDataset, size: int | None
) -> dict[str, list[dict[str, Any]]]:
    """Return the results of every method, fold by fold."""
    n = size or target.n_queries
    cells = study.cells(
        {
            f"{collection.name}, {size or 'all'} queries, {method}, fold {k + 1}": (
                _fold_result,
                collection,
                n,
                k,
                method,
            )
            for k in range(FOLDS)
            for method in METHODS
        }
    )
    results: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    for cell, method in zip(cells.values(), list(METHODS) * FOLDS, strict=True):
        results[method].append(cell)
    return results


@lru_cache(maxsize=1)
def _domains(
    collection: Collection, n_trees: int, n_threads: int | None
) -> tuple[QueryDataset, QueryDataset, MART]:
    """Return source, target and the model of the source; made once per process."""
    source, target = short_and_long(collection.whole())
    base = MART(n_trees=n_trees, n_threads=n_threads, **BOOSTED).fit(source)
    return source, target, with_all_rows_counted(base, source)


def _fold_result(
    study: Study, collection: Collection, size: int, k: int, method: str
) -> dict[str, Any]:
    """Adapt the base model to a sample of a fold; return NDCG of the test queries."""
    source, target, base = _domains(collection, study.size(100, 300), study.n_threads)
    train, test = list(samples(target, size))[k]
    settings = {"method": "trada", **METHODS[method]}
    way = settings.pop("method")
    if way == "combine":
        settings["source"] = source
    if way != "base":
        settings["n_threads"] = study.n_threads
    if way in ("trada", "additive"):
        settings = {**BOOSTED, **settings}
    model = adapt_with(way, base, train, **settings)
    values = evaluate(model, test, MEASURE, "letor").per_query[MEASURE]
    return {
        "values": [float(value) for value in values],
        "beta": getattr(model, "beta_", None),
    }


EXPERIMENTS = (
    Experiment(
        "chen2008-letor",
        "chen2008",
        "tree adaptation on LETOR's collections, from short lists to long ones",
        letor,
        data=LETOR,
        measured="letor",
        takes="letor",
    ),
)
