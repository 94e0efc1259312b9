"""The plot of a net's test of local optimality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.nets.local_optimum import LocalOptimum
from rankgrove.reporting.figure import new_figure
from rankgrove.reporting.look import styled
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def local_optimum(result: LocalOptimum) -> Figure:
    """Plot a test of local optimality (overview paper, section 4.2).

    Left: how much the measure changed along random directions, for every step size; values to the
    right of 0 are ascent directions. Right: the measure along every coordinate through the learned
    weights, and the mean of these curves.

    Parameters
    ----------
    result : the result of :func:`rankgrove.check_local_optimum`

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("optimum.png")`` writes it
    """
    if not isinstance(result, LocalOptimum):
        refuse("result", "local_optimum", "the result of rg.check_local_optimum", result)
    with_curves = bool(result.curves.size)
    figure = new_figure("Plotting", 10.0 if with_curves else 5.5, 4.2)
    panels = figure.subplots(1, 2 if with_curves else 1, squeeze=False)[0]
    _directions(panels[0], result)
    if with_curves:
        _coordinates(panels[1], result)
    verdict = str(result).splitlines()[0].partition(";")[0].partition(" (")[0]
    figure.suptitle(verdict, fontsize="medium")
    return figure


def _directions(axes: Axes, result: LocalOptimum) -> None:
    changes = result.values - result.value
    low, high = min(float(changes.min()), 0.0), max(float(changes.max()), 0.0)
    edges = np.linspace(low, high if high > low else low + 1e-12, 41)
    for k, step in enumerate(result.steps):
        label = f"step {step:g}: {100 * float(result.fractions[k]):.1f} % rise"
        axes.hist(changes[:, k], edges.tolist(), alpha=0.6, label=label)
    axes.axvline(0.0, color="0.3", linewidth=1.0)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(f"change of the mean {result.measure}")
    axes.set_ylabel(f"of {result.n_directions:,} directions")
    axes.legend(loc="best")


def _coordinates(axes: Axes, result: LocalOptimum) -> None:
    changes = result.curves - result.value
    axes.plot(result.offsets, changes.T, color="C0", alpha=0.15, linewidth=0.8)
    axes.plot(result.offsets, changes.mean(axis=0), color="C3", linewidth=2.0, label="mean")
    axes.axhline(0.0, color="0.3", linewidth=1.0)
    axes.set_xlabel("change of one weight")
    axes.set_ylabel(f"change of the mean {result.measure}")
    axes.legend(loc="best", title=f"{result.coordinates.size:,} weights")
