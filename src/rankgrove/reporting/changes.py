"""How models were changed after training: combined, or adapted to another domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from rankgrove.adapt.adaptation_report import AdaptationReport, Row
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.operations.combining import optimal_combination
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.inner_rankers import member_scores
from rankgrove.reporting.systems import Model

ALPHA_COLUMNS = 400
N_FEATURES = 15


class AlphaCurve(TypedDict):
    """A combination's measure on one data set: least and largest values between alphas.

    ``best`` is the best weight with its value, ``ends`` are the values of the two rankers.
    """

    data: str
    alpha: list[float]
    least: list[float]
    largest: list[float]
    best: list[float]
    ends: list[float]


class AlphaCurves(TypedDict):
    """A combination of two rankers, its weight, and its measure at every weight."""

    model: str
    formula: str
    alpha: float
    curves: list[AlphaCurve]


class AdaptationData(TypedDict):
    """The changes by adaptation: one number per tree, and one row per feature."""

    model: str
    n_trees: int
    unreached_share: float
    tree: list[int]
    change: list[float]
    unreached: list[float]
    change_median: list[float]
    unreached_median: list[float]
    features: list[Row]


def alpha_curves(
    models: Mapping[str, Model],
    datasets: Mapping[str, QueryDataset],
    measure: str | Measure,
    convention: str,
    n_threads: int | None,
) -> list[AlphaCurves]:
    """Return the measure as a function of the weight, for every combination of two rankers.

    The combination is (1 - alpha) a + alpha b, with the signs of the model's weights: if the
    second weight is negative, it is (1 - alpha) a - alpha b.
    """
    combinations: list[AlphaCurves] = []
    for model_name, model in models.items():
        combined = model.combined() if isinstance(model, Ranker) else []
        weights = [weight for _, weight in combined if weight is not None]
        if len(weights) != 2 or not any(weights):
            continue
        sizes = np.abs(weights)
        signs = [-1.0 if weight < 0.0 else 1.0 for weight in weights]
        names = [type(member).__name__ for member, _ in combined]
        curves: list[AlphaCurve] = []
        for data_name, data in datasets.items():
            first, second = (
                sign * member_scores(member, data, n_threads)
                for sign, (member, _) in zip(signs, combined, strict=True)
            )
            best = optimal_combination(
                first, second, data, measure, convention=convention, n_threads=n_threads
            )
            left, least, largest = envelope(best.curve.alpha, best.curve.value, ALPHA_COLUMNS)
            curves.append(
                {
                    "data": data_name,
                    "alpha": [float(f"{v:.5g}") for v in left.tolist()],
                    "least": [round(v, 5) for v in least.tolist()],
                    "largest": [round(v, 5) for v in largest.tolist()],
                    "best": [best.alpha, best.value],
                    "ends": list(best.values),
                }
            )
        alpha = float(sizes[1] / sizes.sum())
        combinations.append(
            {
                "model": model_name,
                "formula": formula(signs, names),
                "alpha": alpha,
                "curves": curves,
            }
        )
    return combinations


def formula(signs: Sequence[float], names: Sequence[str]) -> str:
    """Return the combination's formula as text."""
    first, second = ("−" if sign < 0.0 else "+" for sign in signs)
    return f"{first.strip('+')}(1 − alpha) {names[0]} {second} alpha {names[1]}"


def adaptation_data(
    name: str, report: AdaptationReport, n_features: int = N_FEATURES
) -> AdaptationData:
    """Return the changes by adaptation: per tree (points, running medians) and per feature."""
    trees, features = report.by_tree(), report.by_feature()[:n_features]
    change = np.array([_share(row) for row in trees])
    unreached = np.array([float(row["unreached"]) for row in trees])
    return {
        "model": name,
        "n_trees": report.n_trees,
        "unreached_share": report.unreached_share,
        "tree": [int(row["tree"]) for row in trees],
        "change": change.tolist(),
        "unreached": unreached.tolist(),
        "change_median": running_median(change).tolist(),
        "unreached_median": running_median(unreached).tolist(),
        "features": features,
    }


def envelope(
    alpha: np.ndarray, value: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a step curve in at most `columns` parts: left edges, least and largest values.

    The arrays have one entry more than there are parts: the right edge, with the last values
    repeated.
    """
    if value.size <= columns:
        steps = np.append(value, value[-1])
        return alpha, steps, steps
    edges = np.linspace(alpha[0], alpha[-1], columns + 1)
    # A part includes the step that it begins in.
    starts = np.clip(np.searchsorted(alpha, edges[:-1], side="right") - 1, 0, value.size - 1)
    ends = np.clip(np.searchsorted(alpha, edges[1:], side="left"), starts + 1, value.size)
    parts = [value[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    least = np.array([part.min() for part in parts])
    largest = np.array([part.max() for part in parts])
    return edges, np.append(least, least[-1]), np.append(largest, largest[-1])


def running_median(values: np.ndarray) -> np.ndarray:
    """Return the running median; its window is a tenth of all values."""
    reach = values.size // 20
    return np.array(
        [np.median(values[max(0, k - reach) : k + reach + 1]) for k in range(values.size)]
    )


def _share(row: Row) -> float:
    """Return the change of a tree's responses, relative to the responses before."""
    before, change = float(row["response"]), float(row["response_change"])
    return change / before if before else 0.0
