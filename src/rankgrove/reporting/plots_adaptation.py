"""The plot of the changes by adaptation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.adapt.adaptation_report import AdaptationReport, Row
from rankgrove.errors import DataError
from rankgrove.reporting.changes import AdaptationData, adaptation_data
from rankgrove.reporting.figure import new_figure
from rankgrove.reporting.look import styled
from rankgrove.validation import check_integer, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def adaptation(model: Any, *, n_features: int = 15) -> Figure:
    """Plot the changes by adaptation: by tree on the left, by feature on the right.

    By tree: how much of its responses changed, and the share of branches that no target row
    reaches, as points and as running medians; points far above the medians (trees that had hardly
    any response before) are cut off. By feature, most changed first: how much the effect of its
    splits changed, with the effect before in the background, and how far their thresholds moved.

    Parameters
    ----------
    model : a trained :class:`rankgrove.Trada`, or its ``report_``
    n_features : features to show, the most changed ones

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("changes.png")`` writes it
    """
    report = model if isinstance(model, AdaptationReport) else getattr(model, "report_", None)
    if not isinstance(report, AdaptationReport):
        raise DataError(f"adaptation needs a trained Trada, or its report_. Got {model!r}.")
    check_integer("n_features", "adaptation", n_features, low=1)
    changes = adaptation_data("", report, n_features)
    features = changes["features"]
    figure = new_figure("Plotting", 11.0, max(4.5, 1.5 + 0.3 * len(features)))
    figure.suptitle(
        f"What adaptation changed: {counted(report.n_trees, 'tree')}, "
        f"{report.unreached_share:.1%} of the branches without a target row"
    )
    of_trees, of_features = figure.subplots(1, 2)
    _draw_trees(of_trees, changes)
    _draw_features(of_features, features)
    return figure


def _draw_trees(axes: Axes, changes: AdaptationData) -> None:
    top = 0.1
    lines = {
        "change of responses": (changes["change"], changes["change_median"]),
        "unreached branches": (changes["unreached"], changes["unreached_median"]),
    }
    for k, (name, (points, medians)) in enumerate(lines.items()):
        axes.plot(changes["tree"], points, ".", color=f"C{k}", alpha=0.25)
        axes.plot(changes["tree"], medians, color=f"C{k}", label=name)
        top = max([top, *medians])
    axes.set_ylim(0.0, 1.4 * top)
    axes.set_title("By tree")
    axes.set_xlabel("tree")
    axes.set_ylabel("share (points: one tree; lines: running median)")
    axes.legend(loc="upper right")


def _draw_features(axes: Axes, features: list[Row]) -> None:
    axes.set_title("By feature")
    if not features:
        return
    place = np.arange(len(features))[::-1]
    axes.barh(place, [row["effect"] for row in features], color="0.85", label="effect before")
    axes.barh(
        place, [row["effect_change"] for row in features], 0.4, color="C0", label="its change"
    )
    axes.set_yticks(place, [str(row["feature"]) for row in features])
    axes.set_xlabel("effect: difference of the two sides' responses, mean over splits")
    moved = [(row["movement"], at) for row, at in zip(features, place, strict=True) if row["moved"]]
    if moved:
        upper = axes.twiny()
        upper.plot(*zip(*moved, strict=True), "o", color="C3")
        upper.set_xlabel("movement of thresholds (dots), standard deviations", color="C3")
        upper.set_xlim(left=0.0)
    axes.legend(loc="lower right")
