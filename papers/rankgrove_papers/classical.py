"""The rankers that the papers compare with, and all others of the toolkit, on LETOR's collections.

The folds are as published, the measures are LETOR's, and MAP on the validation part chooses the
number of rounds (or C). The systems are the rankers of ``rg.survey``, with the same settings. A
name with a comma is a variant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove import evaluate
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.survey_rankers import RANKERS as SYSTEMS
from rankgrove.tuning.tables import markdown
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.sources import Collection, published_figures
from rankgrove_papers.study import COLLECTIONS, Experiment, Findings, Study
from rankgrove_papers.tables import mean_and_reach, p_value, per_query, pooled, variant_of

MEASURES = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "meanndcg", "p@1", "map")
DECIDES = "map"
REFERENCE = "LambdaMART"
# our name of a system, without the variant -> its name in the published files of MQ2008
PUBLISHED = {
    "RankBoost": "RankBoost",
    "AdaRank-MAP": "AdaRank-MAP",
    "AdaRank-NDCG": "AdaRank-NDCG",
    "RankSVM": "RankSVM-Struct",
}

# measure -> one value per query
Values = dict[str, list[float]]
# our name of a system -> measure -> one value per fold
Published = dict[str, dict[str, list[float]]]


def run(study: Study) -> Findings:
    """Train every system on every fold of every collection; return the tables."""
    text = [
        "LETOR's measures, means over folds (half width of the 95 % interval over test queries); "
        f"rounds and C by {DECIDES.upper()} on the validation part. {REFERENCE}, also in BL-MART: "
        f"{variant_of(SYSTEMS[REFERENCE](study.size))}."
    ]
    for collection in study.data.collections("mq2008", "ohsumed"):
        numbers = collection.numbers(study.size(1, 5))
        cells = study.on_folds(collection, numbers, SYSTEMS, _one_fold)
        values = {name: [cell["values"] for cell in of_name] for name, of_name in cells.items()}
        published = _published(study) if collection.name == "MQ2008" else {}
        text += [
            f"### {collection.described(numbers)}",
            _systems(values, published),
            _tests(values),
            _variants(values),
            *_edges(study, cells),
        ]
        if published:
            text.append(_by_fold(values, published))
    return Findings("\n\n".join(text), {})


def _one_fold(study: Study, name: str, collection: Collection, k: int) -> dict[str, Any]:
    fold = collection.fold(k)
    model: Any = SYSTEMS[name](study.size).set_params(n_threads=study.n_threads)
    model.fit(fold.train, valid=fold.valid, valid_measures=DECIDES)
    values = per_query(evaluate(model, fold.test, MEASURES, "letor"))
    cell = {"values": values, "C": getattr(model, "C_", None)}
    return cell if cell["C"] is None else {**cell, "valid": model.history_["valid"][DECIDES]}


def _edges(study: Study, cells: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return a report on how often the systems that choose C chose an edge of the grid."""
    chosen = {
        f"{name}, C": Choices(
            [cell["C"] for cell in of_name],
            SYSTEMS[name](study.size).get_params()["C"],
            curves=[cell["valid"] for cell in of_name],
        )
        for name, of_name in cells.items()
        if of_name[0]["C"] is not None
    }
    return [edge_report(chosen)] if chosen else []


def _fold_means(cells: list[Values], measure: str) -> list[float]:
    return [exact_mean(np.array(cell[measure])) for cell in cells]


def _systems(systems: dict[str, list[Values]], published: Published) -> str:
    """Return a table of all systems, best MAP first, followed by the published ones."""
    rows = [
        [name, *(mean_and_reach([cell[m] for cell in cells]) for m in MEASURES)]
        for name, cells in systems.items()
    ]
    rows.sort(key=lambda row: row[-1], reverse=True)
    n_folds = len(next(iter(systems.values())))
    for name, figures in published.items():
        means = [exact_mean(np.array(figures[m][:n_folds])) for m in MEASURES]
        rows.append([f"{PUBLISHED[name]} (published)", *(f"{value:.4f}" for value in means)])
    return markdown(["", *(m.upper() for m in MEASURES)], rows)


def _tests(systems: dict[str, list[Values]]) -> str:
    """Return paired t-tests over all test queries, against the reference and the best system."""
    every = {name: pooled(cells) for name, cells in systems.items()}
    best = {m: max(every, key=lambda name: exact_mean(np.array(every[name][m]))) for m in MEASURES}
    chosen = ("ndcg@1", "ndcg@10", "map")
    rows = []
    for name, values in every.items():
        row = [name]
        for other in (dict.fromkeys(chosen, REFERENCE), best):
            for m in chosen:
                same = other[m] == name
                row.append("" if same else p_value(values[m], every[other[m]][m]))
        rows.append(row)
    header = ["", *(f"{REFERENCE}: {m.upper()}" for m in chosen)]
    header += [f"best ({best[m]}): {m.upper()}" for m in chosen]
    return f"p of the paired t-test over test queries, against:\n\n{markdown(header, rows)}"


def _variants(systems: dict[str, list[Values]]) -> str:
    """Return the differences of rankers with default settings and their variants."""
    shown = ("ndcg@1", "meanndcg", "map")
    rows = []
    for variant in systems:
        name = _without_variant(variant)
        if name == variant or name not in systems:
            continue
        defaults, other = pooled(systems[name]), pooled(systems[variant])
        row = [f"{name} minus {variant}"]
        for m in shown:
            change = exact_mean(np.array(defaults[m])) - exact_mean(np.array(other[m]))
            row += [f"{change:+.4f}", p_value(defaults[m], other[m])]
        rows.append(row)
    header = ["", *(text for m in shown for text in (m.upper(), "p"))]
    title = "Defaults minus variants, mean over test queries, p of the paired t-test:"
    return f"{title}\n\n{markdown(header, rows)}"


def _without_variant(name: str) -> str:
    return name.split(",")[0]


def _by_fold(systems: dict[str, list[Values]], published: Published) -> str:
    """Return MAP and NDCG@1 of every fold next to the published ones, and p of the difference."""
    rows = []
    for name, cells in systems.items():
        figures = published.get(_without_variant(name))
        if figures is None:
            continue
        for m in ("map", "ndcg@1"):
            ours = _fold_means(cells, m)
            theirs = figures[m][: len(ours)]
            change = exact_mean(np.array(ours)) - exact_mean(np.array(theirs))
            p = p_value(ours, theirs) if len(ours) > 1 else ""
            pairs = [f"{a:.4f} / {b:.4f}" for a, b in zip(ours, theirs, strict=True)]
            rows.append([f"{name}, {m.upper()}", *pairs, f"{change:+.4f}", p])
    n_folds = len(systems[REFERENCE])
    folds = [f"fold {k}" for k in range(1, n_folds + 1)]
    return markdown(["ours / published", *folds, "difference", "p over folds"], rows)


def _published(study: Study) -> Published:
    """Return the published figures of MQ2008 by our name, if the files exist."""
    files = {name: study.data.baseline(f"{file}.MQ2008.txt") for name, file in PUBLISHED.items()}
    return {name: published_figures(lines) for name, lines in files.items() if lines is not None}


EXPERIMENTS = (
    Experiment(
        "classical-letor",
        "classical",
        "RankBoost, AdaRank and all other rankers on LETOR's collections",
        run,
        data=COLLECTIONS,
        measured="letor",
        takes="letor",
    ),
)
