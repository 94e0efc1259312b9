"""The layout of the BL-MART paper's Table 4: systems, their differences, their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.bagging.aggregate import aggregate
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import confidence_interval, evaluate
from rankgrove.experiments.ganjisaffar2011_setting import (
    BAG_OVER,
    MEASURES,
    MSE,
    TITLES,
    Setting,
)
from rankgrove.experiments.study import markdown, p_value, per_query
from rankgrove.measures.base import exact_mean

# A system's cells: fold by fold, every seed's
Cells = dict[str, list[list[dict[str, Any]]]]


def by_query(cells: list[list[dict[str, Any]]], measure: str) -> np.ndarray:
    """Return every test query's mean over the seeds."""
    means = [np.mean([cell["values"][measure] for cell in fold], axis=0) for fold in cells]
    return np.concatenate(means)


def systems_table(found: Cells, setting: Setting) -> str:
    """Return the means of all systems, the paper's in brackets, and the reach of the intervals."""
    rows = []
    for name, cells in found.items():
        row = [name]
        for measure in MEASURES:
            values = by_query(cells, measure)
            paper = setting.paper.get(name.removesuffix(MSE), {}).get(measure)
            beside = "" if paper is None else f" ({paper:.4f})"
            row.append(f"{exact_mean(values):.4f}{beside}")
        rows.append(row)
    reaches = []
    for measure, title in zip(MEASURES, TITLES, strict=True):
        low, high = confidence_interval(by_query(found[BAG_OVER], measure))
        reaches.append(f"{title} {(high - low) / 2:.4f}")
    reach = f"Half widths of the 95 % intervals over queries ({BAG_OVER}): {', '.join(reaches)}."
    return f"{markdown(['', *TITLES], rows)}\n\n{reach}"


def differences_table(found: Cells, bag: str = BAG_OVER, but: tuple[str, ...] = ()) -> str:
    """Return differences and paired t-tests, over queries, of a bag against the others."""
    rows = []
    for name, cells in found.items():
        if name in (bag, *but):
            continue
        row = [name]
        for measure in MEASURES:
            ours, other = (by_query(one, measure) for one in (found[bag], cells))
            p = p_value(ours.tolist(), other.tolist())
            row.append(f"{exact_mean(ours) - exact_mean(other):+.4f} ({p})")
        rows.append(row)
    title = f"{bag} less each, and p of the paired t-test over queries:"
    return f"{title}\n\n{markdown(['', *TITLES], rows)}"


def trees_line(found: Cells) -> str:
    """Say how many trees every system has."""
    sizes = [
        f"{name} {np.mean([cell['trees'] for fold in cells for cell in fold]):,.0f}"
        for name, cells in found.items()
    ]
    return f"Trees, mean (of a bag those of all its models): {', '.join(sizes)}."


def values_of(scorer: Any, data: QueryDataset, setting: Setting) -> dict[str, list[float]]:
    """Return every query's values of a ranker or of scores."""
    return per_query(evaluate(scorer, data, MEASURES, setting.convention))


def together(columns: np.ndarray, data: QueryDataset) -> np.ndarray:
    """Return the bag's scores, in the caller's order."""
    grouped = [data.grouped(scores) for scores in columns]
    return data.ungrouped(aggregate(grouped, data.query_ptr, "minmax", np.ones(len(columns))))
