"""Plots of click logs: examination by position, and the check of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.check import FLAT, NOISE, ClickCheck
from rankgrove.clicks.log import ClickLog
from rankgrove.reporting.click_logs import ExaminationCurve, examination_curves
from rankgrove.reporting.figure import new_figure, new_panels
from rankgrove.reporting.look import page_colours, styled
from rankgrove.validation import check_integer, counted, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = "os^Dxv*+"
_DASHES = ("-", "--", ":", "-.")


@styled
def examination(
    models: Any, log: ClickLog | None = None, *, samples: int = 100, ax: Axes | None = None
) -> Figure:
    """Plot how often positions are looked at, with 95 % intervals.

    Parameters
    ----------
    models : one of these, or several in a dict by name: the result of
        :func:`rankgrove.check_clicks`; a trained :class:`rankgrove.PositionBased`; a ranker that
        was trained with ``position_bias`` (of ``"additive"`` and ``"two_tower"`` the odds of a
        click, of ``"ratios"`` t+, of ``"affine"`` alpha); an array of one number per position, or
        the true parameters of simulated clicks
    log : the log that click models were trained on, for their intervals. None: without
    samples : the number of bootstrap samples for intervals of click models; 0: none
    ax : axes of Matplotlib to draw on; None: those of a new figure

    Returns
    -------
    a Matplotlib figure; a line per model and context, relative to the first position
    """
    owner = "examination"
    if log is not None and not isinstance(log, ClickLog):
        refuse("log", owner, "the ClickLog of the click models, or None", log)
    check_integer("samples", owner, samples, low=0)
    named = models if isinstance(models, Mapping) else {"": models}
    if not named:
        refuse("models", owner, "at least one model", models)
    curves = [
        curve
        for name, subject in named.items()
        for curve in examination_curves(subject, str(name), log, samples, owner)
    ]
    figure, [axes] = new_panels(owner, 1, ax)
    for k, curve in enumerate(curves):
        _draw(axes, curve, k)
    _label(axes)
    if len(curves) > 1 or curves[0].name:
        axes.legend(loc="best")
    return figure


def _draw(axes: Axes, curve: ExaminationCurve, k: int) -> None:
    axes.plot(
        curve.position,
        curve.value,
        _DASHES[k // len(_MARKS) % 4],
        color=f"C{k}",
        marker=_MARKS[k % len(_MARKS)] if curve.value.size <= 50 else "",
        markersize=4,
        linewidth=1.4,
        label=curve.name,
    )
    if curve.low is not None and curve.high is not None:
        axes.fill_between(
            curve.position, curve.low, curve.high, color=f"C{k}", alpha=0.18, linewidth=0
        )


def _label(axes: Axes) -> None:
    axes.set_ylim(bottom=0.0)
    low, high = axes.get_xlim()
    if high - low < 25:
        axes.set_xticks(np.arange(1, int(high) + 1))
    else:
        axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("position")
    axes.set_ylabel("examination, relative to the first position")


@styled
def click_check(check: ClickCheck) -> Figure:
    """Plot the check of a click log.

    Left: examination by position with 95 % intervals. Right: for every method the largest standard
    error that it can do with, as a share of the bias, and the log's; safe methods are coloured.

    Parameters
    ----------
    check : the result of :func:`rankgrove.check_clicks`

    Returns
    -------
    a Matplotlib figure
    """
    if not isinstance(check, ClickCheck):
        refuse("check", "click_check", "the result of rg.check_clicks", check)
    figure = new_figure("Plotting", 10.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    (curve,) = examination_curves(check, "", None, 0, "click_check")
    _draw(left, curve, 0)
    _label(left)
    left.set_title(f"{counted(check.n_sessions, 'session')}, {counted(check.n_clicks, 'click')}")
    colour = page_colours()
    methods = list(NOISE)[::-1]
    paints = [colour["c0"] if method in check.safe else colour["line"] for method in methods]
    right.barh(methods, [NOISE[method] for method in methods], color=paints, height=0.6)
    ratio = check.error / max(check.bias, FLAT)
    if np.isfinite(ratio):
        right.axvline(ratio, color=colour["c1"], linewidth=2, label=f"this log: {ratio:.2f}")
        right.legend(loc="best")
    right.grid(visible=False, axis="y")
    right.set_xlabel("standard error / bias, at most")
    right.set_title("Methods (coloured: safe)")
    figure.suptitle(f"Safe: {', '.join(check.safe)}")
    return figure
