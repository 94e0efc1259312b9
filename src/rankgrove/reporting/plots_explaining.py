"""Plots of feature contributions (SHAP values) and of partial dependence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.explaining.explanation import ContributionTable, Explanation
from rankgrove.explaining.partial_dependence import PartialDependence
from rankgrove.reporting.figure import new_panels
from rankgrove.reporting.look import page_colours, styled
from rankgrove.validation import check_integer, counted, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UP, DOWN = page_colours()["good"], page_colours()["bad"]


@styled
def explanation(
    result: Explanation | ContributionTable,
    document: int | str | None = None,
    *,
    n_features: int = 12,
    ax: Axes | None = None,
) -> Figure:
    """Plot feature contributions (SHAP values), step by step from the base to the score.

    Parameters
    ----------
    result : the result of :func:`rankgrove.explain`; or one of its tables, ``.table(document)`` or
        ``.why(a, b)``
    document : the document of an Explanation to show; None: every feature's mean absolute
        contribution over all documents
    n_features : features to show, those with the largest contributions; the others are summed up
        in one step
    ax : axes of Matplotlib to draw on; None: those of a new figure

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("why.png")`` writes it
    """
    check_integer("n_features", "explanation", n_features, low=1)
    if isinstance(result, Explanation) and document is None:
        return _sizes(result, n_features, ax)
    if isinstance(result, Explanation) and document is not None:
        result = result.table(document)
    if not isinstance(result, ContributionTable):
        refuse("result", "explanation", "the result of rg.explain, or one of its tables", result)
    return _steps(result, n_features, ax)


def _steps(table: ContributionTable, n_features: int, ax: Axes | None) -> Figure:
    """Draw a waterfall: every bar begins where the one above ends."""
    used = np.flatnonzero(table.amounts)
    shown, rest = used[:n_features], used[n_features:]
    names, amounts = [], []
    for k in shown.tolist():
        values = " | ".join(_short(column[k]) for column in table.values.values())
        names.append(f"{table.features[k]} = {values}")
        amounts.append(float(table.amounts[k]))
    if rest.size:
        names.append(counted(rest.size, "other feature"))
        amounts.append(math.fsum(table.amounts[rest].tolist()))
    ends = table.base + np.cumsum([0.0, *amounts])
    place = np.arange(len(names))[::-1]
    height = 1.6 + 0.32 * max(3, len(names))
    figure, [axes] = new_panels("explanation", 1, ax, height=height)
    colours = [UP if amount > 0 else DOWN for amount in amounts]
    axes.barh(place, amounts, left=ends[:-1], color=colours, height=0.7)
    for y, amount, end in zip(place.tolist(), amounts, ends[1:].tolist(), strict=True):
        axes.plot([end, end], [y - 1.35, y + 0.35], color="0.6", linewidth=0.7)
        axes.annotate(
            f"{amount:+.3g}",
            (end, y),
            (4 if amount > 0 else -4, 0),
            textcoords="offset points",
            va="center",
            ha="left" if amount > 0 else "right",
            fontsize="small",
        )
    axes.axvline(table.base, color="0.4", linestyle=":", linewidth=1.0)
    axes.axvline(table.total, color="0.2", linewidth=1.0)
    axes.set_yticks(place, names)
    axes.set_ylim(-0.8, len(names) - 0.2)
    low, high = float(min(ends.min(), table.total)), float(max(ends.max(), table.total))
    room = 0.12 * (high - low) or 0.1  # for the numbers beside the bars
    axes.set_xlim(low - room, high + room)
    start = f"dotted: {table.base_name} {table.base:.4g}; " if table.base_name else ""
    axes.set_xlabel(f"{start}line: {table.total_name} {table.total:.4g}")
    axes.set_title(table.title, fontsize="medium")
    return figure


def _sizes(result: Explanation, n_features: int, ax: Axes | None) -> Figure:
    sizes = [(name, size) for name, size in result.importance().items() if size][:n_features]
    figure, [axes] = new_panels("explanation", 1, ax, height=1.6 + 0.3 * max(3, len(sizes)))
    place = np.arange(len(sizes))[::-1]
    axes.barh(place, [size for _, size in sizes], color="C0", height=0.7)
    axes.set_yticks(place, [name for name, _ in sizes])
    axes.set_xlabel("mean absolute contribution to the score")
    n_queries = np.unique(result.query_ids).size
    axes.set_title(
        f"{result.model}: {counted(len(result.documents), 'document')} of "
        f"{counted(n_queries, 'query', 'queries')}",
        fontsize="medium",
    )
    return figure


@styled
def partial_dependence(result: PartialDependence, *, ax: Axes | None = None) -> Figure:
    """Plot partial dependence: the mean score, and bands of half and of 90 % of the rows.

    A categorical feature has points, and bars instead of bands. With two features, the mean is
    shown as colours.

    Parameters
    ----------
    result : the result of :func:`rankgrove.partial_dependence`
    ax : axes of Matplotlib to draw on; None: those of a new figure

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("feature.png")`` writes it
    """
    if not isinstance(result, PartialDependence):
        refuse("result", "partial_dependence", "the result of rg.partial_dependence", result)
    figure, [axes] = new_panels("partial_dependence", 1, ax)
    if isinstance(result.grid, tuple):
        _colours(figure, axes, result)
    elif result.labels[0] is not None:
        _points(axes, result)
    else:
        _bands(axes, result.grid, result)
    axes.set_title(f"{result.model}, {counted(result.n_rows, 'row')}", fontsize="medium")
    return figure


def _bands(axes: Axes, grid: np.ndarray, result: PartialDependence) -> None:
    known = np.isfinite(grid)
    x = grid[known].astype(float)
    for low, high, alpha, name in ((0, 4, 0.15, "90 % of rows"), (1, 3, 0.3, "half of the rows")):
        a, b = result.quantiles[low][known], result.quantiles[high][known]
        axes.fill_between(x, a, b, color="C0", alpha=alpha, linewidth=0, label=name)
    axes.plot(x, result.mean[known], color="C0", marker=".", markersize=4, label="mean")
    if np.isnan(grid).any():
        missing = float(result.mean[np.isnan(grid)][0])
        axes.axhline(missing, color="0.4", linestyle=":", label="mean where missing")
    axes.set_xlabel(result.features[0])
    axes.set_ylabel("score")
    # beside the axes: the bands leave no corner free
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _points(axes: Axes, result: PartialDependence) -> None:
    """Draw a point per category, with the spread of the rows' scores."""
    x = np.arange(result.mean.size)
    for low, high, width, name in ((0, 4, 1.0, "90 % of rows"), (1, 3, 4.0, "half of the rows")):
        a, b = result.quantiles[low], result.quantiles[high]
        axes.vlines(x, a, b, color="C0", alpha=0.4, linewidth=width, label=name)
    axes.plot(x, result.mean, color="C0", marker="o", linestyle="", label="mean")
    _name_ticks(axes.xaxis, result.texts(0), 25)
    axes.tick_params(axis="x", rotation=90 if x.size > 6 else 0)
    axes.set_xlabel(result.features[0])
    axes.set_ylabel("score")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _name_ticks(axis: Any, texts: list[str], most: int) -> None:
    """Write the texts of some places: all of them, up to a number."""
    ticks = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), most)).round().astype(int))
    axis.set_ticks(ticks, [texts[k] for k in ticks.tolist()])


def _colours(figure: Figure, axes: Axes, result: PartialDependence) -> None:
    drawn = axes.imshow(result.mean.T, origin="lower", aspect="auto")
    figure.colorbar(drawn, ax=axes, label="mean score")
    for k, axis in enumerate((axes.xaxis, axes.yaxis)):
        names, values = result.labels[k], result.grid[k]
        texts = [_short(value) for value in values] if names is None else list(names)
        _name_ticks(axis, texts, 6)
        axis.set_label_text(result.features[k])


def _short(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "missing" if math.isnan(value) else f"{value:.3g}"
