"""Plots of calibrated rankers: what was predicted against what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.evaluation.reliability import Reliability
from rankgrove.reporting.figure import new_panels
from rankgrove.reporting.look import styled
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = "os^Dxv*+"


@styled
def reliability(tables: Any, *, ax: Axes | None = None) -> Figure:
    """Plot mean observations against mean predictions, with 95 % intervals.

    Points on the diagonal are calibrated: documents with an expected grade of 1.2 have a mean grade
    of 1.2.

    Parameters
    ----------
    tables : a :class:`rankgrove.Reliability`, a :class:`rankgrove.CalibratedRanker` (whose own
        table is drawn), or several in a dict by name
    ax : axes of Matplotlib to draw on; None: those of a new figure

    Returns
    -------
    a Matplotlib figure
    """
    named = tables if isinstance(tables, Mapping) else {"": tables}
    if not named:
        refuse("tables", "reliability", "at least one table", tables)
    figure, [axes] = new_panels("reliability", 1, ax)
    ends: list[float] = []
    for k, (name, subject) in enumerate(named.items()):
        table = getattr(subject, "reliability_", subject)
        if not isinstance(table, Reliability):
            rule = "a Reliability or a calibrated ranker, or several in a dict by name"
            refuse("tables", "reliability", rule, subject)
        error = np.stack([table.observed - table.low, table.high - table.observed])
        axes.errorbar(
            table.predicted,
            table.observed,
            error,
            color=f"C{k}",
            marker=_MARKS[k % len(_MARKS)],
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=f"{name}: calibration error {table.ece:.4f}".removeprefix(": "),
        )
        ends += [*table.predicted.tolist(), *table.observed.tolist()]
    diagonal = [min(ends), max(ends)]
    axes.plot(diagonal, diagonal, "--", color="0.5", linewidth=1, zorder=0)
    axes.set_xlabel("expected grade")
    axes.set_ylabel("mean grade of the judgements")
    axes.grid()
    axes.legend(loc="upper left")
    return figure
