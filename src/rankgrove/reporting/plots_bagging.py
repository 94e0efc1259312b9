"""Plots of tuning and of pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.operations.pruning import PrunedRanker
from rankgrove.rankers.base import Ranker
from rankgrove.reporting.figure import new_panels
from rankgrove.reporting.look import styled
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankgrove.tuning.tuning_result import Tuning


@styled
def tuning(result: Tuning, part: str = "test", *, ax: Axes | None = None) -> Figure:
    """Plot the expected value of the best of m trials (BL-MART paper, Figure 1).

    Parameters
    ----------
    result : the result of :func:`rankgrove.tune`
    part : the data to show in addition to the data that decides: ``"test"`` or ``"second"``
    ax : axes of Matplotlib to draw on; None: those of a new figure
    """
    if not hasattr(result, "best_of"):
        refuse("result", "tuning", "the result of rg.tune", result)
    m, deciding, other = result.best_of(part)
    by = "out of bag" if result.choose_by == "out_of_bag" else "validation"
    figure, [axes] = new_panels("tuning", 1, ax)
    axes.plot(m, deciding, label=by, linestyle="--")
    axes.plot(m, other, label=part)
    top = int(np.argmax(other))
    tried = counted(int(m[top]), "trial")
    axes.plot(m[top], other[top], "o", color="C1", label=f"highest after {tried}")
    axes.set_xlabel("number of trials")
    how = by if by == "out of bag" else "by validation data"
    axes.set_ylabel(f"expected mean {result.measure} of the best {how}")
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="best")
    return figure


@styled
def pruning(result: PrunedRanker | Ranker, *, ax: Axes | None = None) -> Figure:
    """Plot the measures against the number of trees left.

    Parameters
    ----------
    result : the result of :func:`rankgrove.prune`, or the pruned ranker, which keeps the history
    ax : axes of Matplotlib to draw on; None: those of a new figure
    """
    ranker = result.ranker if isinstance(result, PrunedRanker) else result
    record = getattr(ranker, "pruning_", None)
    if record is None:
        refuse("result", "pruning", "the result of rg.prune, or its ranker", result)
    figure, [axes] = new_panels("pruning", 1, ax)
    for k, (name, values) in enumerate(record["values"].items()):
        change = np.array(values) - values[0]
        axes.plot(record["trees"], change, label=f"{name} (from {values[0]:.4f})", color=f"C{k}")
    axes.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    axes.invert_xaxis()
    axes.set_xlabel("number of trees left")
    axes.set_ylabel("change of the mean, on the data of the pruning")
    axes.legend(loc="best")
    return figure
