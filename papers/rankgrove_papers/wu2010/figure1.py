"""Wu, Burges, Svore and Gao 2010, Figure 1: two rankers combined with every weight, on one query.

The combined score of a document is a line in the weight, and NDCG changes only where two lines
cross.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rankgrove import (
    LambdaMART,
    LambdaRank,
    OptimalCombination,
    QueryDataset,
    make_artificial,
    optimal_combination,
)
from rankgrove.sweep.sweep import combine_scores
from rankgrove.tuning.tables import markdown
from rankgrove_papers.study import (
    ARTIFICIAL,
    NARROW,
    NARROW_TEXT,
    Curves,
    Experiment,
    Findings,
    Study,
)

MEASURE = "ndcg@10"
N_DOCS = 6


def figure_1(study: Study) -> Findings:
    """Draw a query's scores as lines and its NDCG as steps, with a table of the crossings."""
    query = study.cell("query", _query)
    labels, scores = query["labels"], np.array(query["scores"])
    best = _combined(labels, scores)
    names = [f"{k + 1} (label {label:g})" for k, label in enumerate(labels)]
    text = [
        f"One of {query['of']} test queries of {N_DOCS} documents, the one that gains most from a "
        "combination of ranker R (LambdaMART) and ranker R' (LambdaRank), both trained on "
        "artificial data; their scores are scaled to 0 .. 1 within the query. With the weight "
        "alpha the score is (1 - alpha) times R's plus alpha times R''s (Equation 6). The sweep "
        "computes the value.",
        _intervals(labels, scores, best),
        f"{len(_crossings(scores))} crossings, of which {best.curve.value.size - 1} change NDCG; "
        f"NDCG@10 of R {best.values[0]:.4f}, of R' {best.values[1]:.4f}, of the best combination "
        f"{best.value:.4f}, at every alpha between {best.stretch[0]:.4f} and "
        f"{best.stretch[1]:.4f}.",
    ]
    ends = np.array([0.0, 1.0])
    lines = {f"document {name}": (ends, scores[:, k]) for k, name in enumerate(names)}
    steps = np.repeat(best.curve.alpha, 2)[1:-1], np.repeat(best.curve.value, 2)
    label = "alpha"
    figures = {
        "wu2010-figure1": Curves(lines, label, "score", "Scores from ranker R (0) to R' (1)"),
        "wu2010-figure1-ndcg": Curves(
            {"NDCG@10": steps}, label, "NDCG@10", "NDCG changes only at crossings"
        ),
    }
    return Findings("\n\n".join([*text, NARROW_TEXT]), figures)


def _query(study: Study) -> dict[str, Any]:
    """Train two rankers; return labels and both scores of the query that gains most."""
    train = make_artificial(study.size(200, 1000), labels="equal", seed=0)
    rankers = (
        LambdaMART(MEASURE, n_trees=study.size(30, 100), n_threads=study.n_threads, **NARROW),
        LambdaRank(MEASURE, n_epochs=study.size(10, 30), n_threads=study.n_threads),
    )
    test = make_artificial(study.size(100, 100), N_DOCS, labels="equal", seed=1)
    both = np.stack([ranker.fit(train).predict(test) for ranker in rankers])
    queries: list[tuple[float, list[float], np.ndarray]] = []  # gain, labels, scores
    for rows in map(slice, test.query_ptr[:-1], test.query_ptr[1:]):
        labels = test.y[rows].tolist()
        if len(set(labels)) == 1:  # all orders are equally good
            continue
        low = both[:, rows].min(axis=1, keepdims=True)
        reach = np.ptp(both[:, rows], axis=1, keepdims=True)
        scores = (both[:, rows] - low) / np.maximum(reach, 1e-300)
        best = _combined(labels, scores)
        queries.append((best.value - max(best.values), labels, scores))
    _, labels, scores = max(queries, key=lambda query: query[0])
    return {"labels": labels, "scores": scores.tolist(), "of": test.n_queries}


def _combined(labels: list[float], scores: np.ndarray) -> OptimalCombination:
    data = QueryDataset(None, labels, qid=[1] * len(labels))
    return optimal_combination(scores[0], scores[1], data, MEASURE, names=("R", "R'"))


def _crossings(scores: np.ndarray) -> list[tuple[float, int, int]]:
    """Return the crossings of two documents' lines between 0 and 1, in order: alpha, i, j."""
    apart = {
        (i, j): (scores[:, i] - scores[:, j]).tolist()
        for i, j in combinations(range(scores.shape[1]), 2)
    }
    return sorted((a / (a - b), i, j) for (i, j), (a, b) in apart.items() if a * b < 0)


def _intervals(labels: list[float], scores: np.ndarray, best: OptimalCombination) -> str:
    """Return a table of the intervals between crossings: ranking, NDCG, next crossing."""
    crossings = _crossings(scores)
    edges = [0.0, *sorted({alpha for alpha, _, _ in crossings}), 1.0]
    rows = []
    for left, right in pairwise(edges):
        middle = 0.5 * (left + right)
        order = np.argsort(-combine_scores(scores[0], scores[1], middle, "convex"), kind="stable")
        k = int(np.searchsorted(best.curve.alpha, middle, side="right")) - 1
        pairs = [f"{i + 1} and {j + 1}" for alpha, i, j in crossings if alpha == right]
        rows.append(
            [
                f"{left:.4f} to {right:.4f}",
                " ".join(str(d + 1) for d in order),
                " ".join(f"{labels[d]:g}" for d in order),
                f"{best.curve.value[k]:.4f}",
                ", ".join(pairs),
            ]
        )
    return markdown(["alpha", "documents, best first", "labels", "NDCG@10", "cross then"], rows)


EXPERIMENTS = (
    Experiment(
        "wu2010-figure1",
        "wu2010",
        "Figure 1: scores as lines that cross, NDCG in steps",
        figure_1,
        data=ARTIFICIAL,
    ),
)
