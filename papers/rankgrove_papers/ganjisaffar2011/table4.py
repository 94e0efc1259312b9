"""The layout of the BL-MART paper's Table 4: systems, their differences, their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove import QueryDataset, evaluate
from rankgrove.bagging.aggregate import aggregate
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove_papers.ganjisaffar2011.settings import BAG_OVER, MEASURES, MSE, TITLES, Setting
from rankgrove_papers.tables import p_value, per_query

# system -> one list per fold -> one cell per seed
Cells = dict[str, list[list[dict[str, Any]]]]


def by_query(cells: list[list[dict[str, Any]]], measure: str) -> np.ndarray:
    """Return the mean of every test query over the seeds."""
    means = [np.mean([cell["values"][measure] for cell in fold], axis=0) for fold in cells]
    return np.concatenate(means)


def systems_table(systems: Cells, setting: Setting) -> str:
    """Return the means of all systems, the paper's in brackets, and widths of the intervals."""
    rows = []
    for name, cells in systems.items():
        row = [name]
        for measure in MEASURES:
            values = by_query(cells, measure)
            paper = setting.paper.get(name.removesuffix(MSE), {}).get(measure)
            in_brackets = "" if paper is None else f" ({paper:.4f})"
            row.append(f"{exact_mean(values):.4f}{in_brackets}")
        rows.append(row)
    reaches = []
    for measure, title in zip(MEASURES, TITLES, strict=True):
        low, high = confidence_interval(by_query(systems[BAG_OVER], measure))
        reaches.append(f"{title} {(high - low) / 2:.4f}")
    reach = f"Half widths of the 95 % intervals over queries ({BAG_OVER}): {', '.join(reaches)}."
    return f"{markdown(['', *TITLES], rows)}\n\n{reach}"


def differences_table(systems: Cells, bag: str = BAG_OVER, but: tuple[str, ...] = ()) -> str:
    """Return differences and paired t-tests over queries of a bag and other systems.

    `but` are systems to leave out.
    """
    rows = []
    for name, cells in systems.items():
        if name in (bag, *but):
            continue
        row = [name]
        for measure in MEASURES:
            ours, other = by_query(systems[bag], measure), by_query(cells, measure)
            p = p_value(ours.tolist(), other.tolist())
            row.append(f"{exact_mean(ours) - exact_mean(other):+.4f} ({p})")
        rows.append(row)
    title = f"{bag} minus each, and p of the paired t-test over queries:"
    return f"{title}\n\n{markdown(['', *TITLES], rows)}"


def trees_line(systems: Cells) -> str:
    """Return a sentence with the mean number of trees of every system."""
    sizes = [
        f"{name} {np.mean([cell['trees'] for fold in cells for cell in fold]):,.0f}"
        for name, cells in systems.items()
    ]
    return f"Trees, mean (of a bag those of all its models): {', '.join(sizes)}."


def values_of(scorer: Any, data: QueryDataset, setting: Setting) -> dict[str, list[float]]:
    """Return the values by query of a ranker or of scores."""
    return per_query(evaluate(scorer, data, MEASURES, setting.convention))


def together(columns: np.ndarray, data: QueryDataset) -> np.ndarray:
    """Return the scores of a bag in the caller's order, from one row of scores per model."""
    grouped = [data.grouped(scores) for scores in columns]
    return data.ungrouped(aggregate(grouped, data.query_ptr, "minmax", np.ones(len(columns))))
