"""The plot of a linear model with thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.model.linear import Linear
from rankgrove.reporting.figure import new_figure
from rankgrove.reporting.look import styled
from rankgrove.validation import check_integer, counted, nearest, refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def base_function_weights(
    model: Any, features: str | int | Sequence[str | int] | None = None, *, n_columns: int = 3
) -> Figure:
    """Plot the learned step function of every base function (SVM-map paper, Figure 2).

    There is one panel per feature. The x axis is the feature's value; the y axis is the sum of the
    weights of the thresholds below it, which is the feature's term in the score. All panels share
    one y scale.

    Parameters
    ----------
    model : a trained SVM with ``thresholds=``
    features : one or several, by name or by 1-based number; None: those that move scores most,
        at most 12
    n_columns : panels side by side

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("weights.png")`` writes it
    """
    linear = getattr(model, "linear_", None)
    if not isinstance(linear, Linear) or not linear.has_thresholds:
        raise DataError(
            "base_function_weights needs a trained linear ranker with thresholds: train one with "
            f"thresholds=50. Got {model!r}."
        )
    check_integer("n_columns", "base_function_weights", n_columns, low=1)
    names = getattr(model, "feature_names_", None) or [
        f"f{j + 1}" for j in range(linear.n_features)
    ]
    shown = _chosen(linear, names, features)
    n_columns = min(n_columns, len(shown))
    n_rows = math.ceil(len(shown) / n_columns)
    figure = new_figure("Plotting", 3.2 * n_columns, 2.4 * n_rows)
    panels = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    by_feature = linear.by_feature()
    for axes, j in zip(panels.flat, shown, strict=False):
        thresholds, weights = by_feature[j]
        reach = (thresholds[-1] - thresholds[0]) / 20 or 1.0
        ends = np.concatenate([[thresholds[0] - reach], thresholds, [thresholds[-1] + reach]])
        steps = np.concatenate([[0.0], np.cumsum(weights)])
        axes.stairs(steps, ends, baseline=None, color="C0")
        axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axes.set_title(names[j], fontsize="medium")
    for axes in panels.flat[len(shown) :]:
        axes.remove()
    figure.supxlabel("value of the base function")
    figure.supylabel("added to the score")
    return figure


def _chosen(
    linear: Linear, names: Sequence[str], features: str | int | Sequence[str | int] | None
) -> list[int]:
    """Return the columns to show."""
    if features is None:
        influence = linear.influence()
        best = np.argsort(-influence, kind="stable")[:12]
        moving = [int(j) for j in best if influence[j] > 0]
        if not moving:
            raise DataError("The model has no weights but 0: there is nothing to plot.")
        return sorted(moving)
    chosen: list[int] = []
    listed = [features] if isinstance(features, str | int) else list(features)
    if not listed:
        refuse("features", "base_function_weights", "one feature or several, or None", features)
    for feature in listed:
        text = str(feature)
        if feature in names:
            chosen.append(list(names).index(str(feature)))
        elif text.isdecimal() and 1 <= int(text) <= len(names):
            chosen.append(int(text) - 1)
        else:
            raise DataError(
                f"There is no feature {feature!r} among the model's "
                f"{counted(len(names), 'feature')}{nearest(feature, names)}."
            )
        if not linear.by_feature()[chosen[-1]][0].size:
            raise DataError(f"The feature {feature!r} was constant in training: it has no weights.")
    return chosen
