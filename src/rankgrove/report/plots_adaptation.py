"""The plot of what adaptation changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.adapt.report import AdaptationReport
from rankgrove.errors import DataError
from rankgrove.report.figure import new_figure
from rankgrove.validation import check_integer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def adaptation(model: Any, *, n_features: int = 15) -> Figure:
    """Plot what adaptation changed: by tree to the left, by feature to the right.

    By tree: how much of its responses changed, and the share of branches that no target row
    reaches. By feature: how much the effect of its splits changed, and how far their thresholds
    moved.

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
    trees, features = report.by_tree(), report.by_feature()[:n_features]
    figure = new_figure("Plotting", 11.0, max(4.5, 0.3 * len(features)))
    of_trees, of_features = figure.subplots(1, 2)
    x = [row["tree"] for row in trees]
    of_trees.plot(x, [_share(row, "response") for row in trees], label="change of responses")
    of_trees.plot(x, [row["unreached"] for row in trees], label="unreached branches")
    of_trees.set_xlabel("tree")
    of_trees.set_ylabel("share")
    of_trees.set_ylim(bottom=0.0)
    of_trees.legend(loc="best")
    place = np.arange(len(features))[::-1]
    bars = [_share(row, "effect") for row in features]
    of_features.barh(place, bars, color="C0")
    of_features.set_yticks(place, [str(row["feature"]) for row in features])
    of_features.set_xlabel("change of its splits' effect (bars), as a share")
    if any(row["moved"] for row in features):
        upper = of_features.twiny()
        upper.plot([row["movement"] for row in features], place, "o", color="C3")
        upper.set_xlabel("movement of thresholds (dots), standard deviations", color="C3")
        upper.set_xlim(left=0.0)
    return figure


def _share(row: Any, name: str) -> float:
    """Return how large a change is beside what was there before."""
    return float(row[f"{name}_change"] / row[name]) if row[name] else 0.0
