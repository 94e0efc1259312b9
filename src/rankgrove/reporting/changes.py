"""What was made of models: weights of a combination, adapted trees, trees taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove.adapt.report import AdaptationReport, Row
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.operations.combining import optimal_combination
from rankgrove.rankers.ensembles.combination import CombinedRanker
from rankgrove.rankers.nested import member_scores
from rankgrove.reporting.systems import System

ALPHA_COLUMNS = 400
N_FEATURES = 15


def alpha_curves(
    systems: Sequence[System],
    datasets: Mapping[str, QueryDataset],
    measure: str | Measure,
    convention: str,
    n_threads: int | None,
) -> list[dict[str, Any]]:
    """Return the measure as a function of the weight, of every combination of two rankers.

    The combination is (1 - alpha) a + alpha b, with the signs that the model's weights have: one
    with a negative weight is followed along (1 - alpha) a - alpha b.
    """
    made = []
    for one in systems:
        model = one.model
        if not isinstance(model, CombinedRanker) or len(model.rankers_) != 2:
            continue
        sizes = np.abs(model.weights_)
        if not sizes.any():
            continue
        signs = [-1.0 if weight < 0.0 else 1.0 for weight in model.weights_.tolist()]
        names = [type(member).__name__ for member in model.rankers_]
        curves = []
        for data_name, data in datasets.items():
            first, second = (
                sign * member_scores(member, data, n_threads)
                for sign, member in zip(signs, model.rankers_, strict=True)
            )
            found = optimal_combination(
                first, second, data, measure, convention=convention, n_threads=n_threads
            )
            left, least, largest = envelope(found.curve.alpha, found.curve.value, ALPHA_COLUMNS)
            curves.append(
                {
                    "data": data_name,
                    "alpha": [float(f"{v:.5g}") for v in left.tolist()],
                    "least": [round(v, 5) for v in least.tolist()],
                    "largest": [round(v, 5) for v in largest.tolist()],
                    "best": [found.alpha, found.value],
                    "ends": list(found.values),
                }
            )
        alpha = float(sizes[1] / sizes.sum())
        made.append(
            {
                "model": one.name,
                "formula": formula(signs, names),
                "alpha": alpha,
                "curves": curves,
            }
        )
    return made


def formula(signs: Sequence[float], names: Sequence[str]) -> str:
    """Return the combination as a text."""
    first, second = ("−" if sign < 0.0 else "+" for sign in signs)
    return f"{first.strip('+')}(1 − alpha) {names[0]} {second} alpha {names[1]}"


def adaptation_data(
    name: str, report: AdaptationReport, n_features: int = N_FEATURES
) -> dict[str, Any]:
    """Return what adaptation changed: by tree, as points and running medians, and by feature."""
    trees, features = report.by_tree(), report.by_feature()[:n_features]
    change = np.array([_share(row) for row in trees])
    unreached = np.array([float(row["unreached"]) for row in trees])
    return {
        "model": name,
        "n_trees": report.n_trees,
        "unreached_share": report.unreached_share,
        "tree": [row["tree"] for row in trees],
        "change": change.tolist(),
        "unreached": unreached.tolist(),
        "change_median": running_median(change).tolist(),
        "unreached_median": running_median(unreached).tolist(),
        "features": features,
    }


def pruning_data(one: System) -> dict[str, Any] | None:
    """Return the trees and the measures after every pass of pruning, where a model was pruned."""
    record = getattr(one.model, "pruning_", None)
    return None if record is None else {"model": one.name, **record}


def envelope(
    alpha: np.ndarray, value: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the steps of a curve in at most `columns` parts: lefts, least and largest values.

    One left more than there are parts is the right end, with the last values once more.
    """
    if value.size <= columns:
        steps = np.append(value, value[-1])
        return alpha, steps, steps
    edges = np.linspace(alpha[0], alpha[-1], columns + 1)
    # Every part reaches back to the stretch that it begins in.
    starts = np.clip(np.searchsorted(alpha, edges[:-1], side="right") - 1, 0, value.size - 1)
    ends = np.clip(np.searchsorted(alpha, edges[1:], side="left"), starts + 1, value.size)
    parts = [value[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    least = np.array([part.min() for part in parts])
    largest = np.array([part.max() for part in parts])
    return edges, np.append(least, least[-1]), np.append(largest, largest[-1])


def running_median(values: np.ndarray) -> np.ndarray:
    """Return the median of every value and its neighbours, a tenth of all of them."""
    reach = values.size // 20
    return np.array(
        [np.median(values[max(0, k - reach) : k + reach + 1]) for k in range(values.size)]
    )


def _share(row: Row) -> float:
    """Return how large the change of a tree's responses is beside what was there before."""
    before, change = float(row["response"]), float(row["response_change"])
    return change / before if before else 0.0
