"""Plots of trained models: learning, features, queries won and lost, scores, sizes, measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.compare import Comparison
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.rankers.given import valid_datasets
from rankgrove.reporting.differences import differences
from rankgrove.reporting.distribution import score_distribution as distribution_of
from rankgrove.reporting.figure import log_x, new_figure, new_panels
from rankgrove.reporting.importance import feature_importance
from rankgrove.reporting.learning import learning_curves
from rankgrove.reporting.look import page_colours, styled
from rankgrove.reporting.sizes import scoring_time, size_curve
from rankgrove.reporting.systems import Model, as_systems, named_models
from rankgrove.validation import check_integer, counted, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", "--", ":", "-.")
_MARKS = "os^Dxv_*"


@styled
def learning_curve(
    models: Any, measure: str | Measure | None = None, *, ax: Axes | None = None
) -> Figure:
    """Plot a measure on validation data during training, from the models' training history.

    Parameters
    ----------
    models : a trained model, or several in a dict by name or in a list
    measure : the measure to plot; None: the first of every model's history
    ax : axes of Matplotlib to draw on, if there is one panel; None: those of a new figure

    Returns
    -------
    a Matplotlib figure, with one panel each for trees, rounds of trees, epochs and values of C,
    where models have them; a ring marks the value that was kept. A bag has thin lines for its
    models and a line for their mean; a combination has one line per ranker
    """
    shown = []
    for name, model in named_models(models, "learning_curve").items():
        curves = learning_curves(name, getattr(model, "ranker", None) or model)
        wanted = str(measure) if measure is not None else curves[0].measure if curves else ""
        shown += [curve for curve in curves if curve.measure == wanted]
    if not shown:
        raise DataError(
            "learning_curve: there is no training history"
            + (f" of {str(measure)!r}" if measure is not None else "")
            + ". Train with valid=, and name the measure in valid_measures=."
        )
    units = list(dict.fromkeys(curve.unit for curve in shown))
    names = list(dict.fromkeys((curve.model, curve.member) for curve in shown))
    sets = list(dict.fromkeys(curve.data for curve in shown))
    width = max(8.0, 4.6 * len(units))
    figure, panels = new_panels("learning_curve", len(units), ax, width)
    for axes, unit in zip(panels, units, strict=True):
        of_unit = [curve for curve in shown if curve.unit == unit]
        for curve in of_unit:
            colour = f"C{names.index((curve.model, curve.member))}"
            dash = _DASHES[sets.index(curve.data) % 4]
            label = f"{curve.name}, {curve.data}" if len(sets) > 1 else curve.name
            axes.plot(curve.x, curve.y, dash, color=colour, label=label, linewidth=1.5)
            for row in [] if curve.of is None else curve.of:
                axes.plot(curve.x, row, dash, color=colour, linewidth=0.6, alpha=0.35)
            if curve.best is not None:
                k = int(np.argmin(np.abs(curve.x - curve.best)))
                axes.plot(curve.x[k], curve.y[k], "o", mfc="none", color=colour, markersize=9)
        if any(curve.best is not None for curve in of_unit):
            axes.plot([], [], "o", mfc="none", color="0.4", markersize=9, label="kept")
        if unit == "C":
            axes.set_xscale("log")
        axes.set_xlabel(unit)
        measures = dict.fromkeys(curve.measure for curve in shown if curve.unit == unit)
        axes.set_ylabel(f"mean {', '.join(measures)}")
        axes.legend(loc="best")
    return figure


@styled
def importance(
    models: Any,
    dataset: QueryDataset | None = None,
    measure: str | Measure = "ndcg@10",
    *,
    kind: str | None = None,
    n_features: int = 15,
    ax: Axes | None = None,
) -> Figure:
    """Plot the most important features, one panel per model.

    Parameters
    ----------
    models : a trained model, or several in a dict by name or in a list
    dataset : judged data, for feature names, and for the permutation importance of
        models without an importance of their own
    measure : the measure of permutation importance
    kind : ``"gain"``, ``"split"``, ``"weight"`` or ``"permutation"``; None: a model's own kind
    n_features : features to show
    ax : axes of Matplotlib to draw on, if there is one model; None: those of a new figure
    """
    owner = "importance"
    check_integer("n_features", owner, n_features, low=1)
    results = []
    for name, value in named_models(models, owner).items():
        model = getattr(value, "ranker", None) or value
        data = _names_of(model) if dataset is None else dataset
        result = feature_importance(name, model, data, measure, kind)
        if result is None:
            raise DataError(
                f"{owner}: {name!r} has no importance of its own: give data with labels and with "
                "at most 1,000 features."
            )
        results.append(result)
    rows = max(3, max(len(result.top(n_features)) for result in results))
    width, height = max(5.5, 4.0 * len(results)), 1.4 + 0.27 * rows
    figure, panels = new_panels(owner, len(results), ax, width, height)
    for k, (axes, result) in enumerate(zip(panels, results, strict=True)):
        top = result.top(n_features)
        place = np.arange(len(top))[::-1]
        axes.barh(place, result.values[top], color=f"C{k}", height=0.7)
        axes.set_yticks(place, [result.features[j] for j in top])
        axes.set_xlabel(result.label)
        axes.set_title(result.model, fontsize="medium")
        axes.locator_params(axis="x", nbins=4)
    return figure


def _names_of(model: Model) -> QueryDataset:
    """Return a one-row data set that only carries the names of a model's features."""
    n = getattr(model, "n_features_in_", None)
    if n is None:
        refuse("model", "importance", "trained", model)
    if not hasattr(model, "feature_importance") and not hasattr(model, "linear_"):
        raise DataError(
            f"importance: a {type(model).__name__} has none of its own: give dataset=, for "
            "permutation importance."
        )
    names = getattr(model, "feature_names_", None)
    return QueryDataset(np.zeros((1, n), np.float32), [0], [0], feature_names=names)


@styled
def wins_and_losses(
    comparison: Comparison,
    system: str | None = None,
    against: str | None = None,
    *,
    ax: Axes | None = None,
) -> Figure:
    """Plot the differences between two systems per query, the largest gain first.

    Parameters
    ----------
    comparison : the result of :func:`rankgrove.compare`
    system, against : the two systems; None: the second and the first
    ax : axes of Matplotlib to draw on; None: those of a new figure
    """
    if not isinstance(comparison, Comparison):
        refuse("comparison", "wins_and_losses", "the result of rg.compare", comparison)
    gains = differences(comparison, system, against)
    figure, [axes] = new_panels("wins_and_losses", 1, ax)
    x = np.arange(gains.values.size + 1)
    steps = np.append(gains.values, gains.values[-1])
    for name, part in (("good", steps.clip(0)), ("bad", steps.clip(None, 0))):
        axes.fill_between(x, part, step="post", color=page_colours()[name], linewidth=0)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.axhline(gains.values.mean(), color="0.2", linewidth=1.0, linestyle="--", label="mean")
    won, lost, tied = gains.counts
    axes.set_title(
        f"{gains.system} against {gains.against}: {counted(won, 'query', 'queries')} won, "
        f"{lost:,} lost, {tied:,} tied",
        fontsize="medium",
    )
    axes.set_xlim(0, gains.values.size)
    axes.set_xlabel("queries, largest gain first")
    axes.set_ylabel(f"difference of {gains.measure}")
    axes.legend(loc="upper right")
    return figure


@styled
def score_distribution(models: Any, dataset: QueryDataset, *, ax: Axes | None = None) -> Figure:
    """Plot the distribution of scores per label, one panel per model.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; scores are accepted too
    dataset : judged data
    ax : axes of Matplotlib to draw on, if there is one model; None: those of a new figure
    """
    systems = as_systems(models, dataset, "score_distribution")
    width = max(6.0, 4.2 * len(systems))
    figure, panels = new_panels("score_distribution", len(systems), ax, width, 4.2)
    for axes, system in zip(panels, systems, strict=True):
        histograms = distribution_of(system.name, system.scores, dataset.y)
        top = histograms.shares.max()
        middle = (histograms.edges[1:] + histograms.edges[:-1]) / 2
        for g in range(len(histograms.labels) - 1, -1, -1):
            high = g + 1.3 * histograms.shares[g] / top
            shade = 0.15 + 0.75 * g / max(1, len(histograms.labels) - 1)
            axes.fill_between(middle, g, high, step="mid", color=_shade(shade), zorder=-g)
            axes.step(middle, high, where="mid", color="0.25", linewidth=0.7, zorder=-g)
        axes.grid(visible=False)
        axes.set_yticks(range(len(histograms.labels)), histograms.labels)
        axes.set_ylabel("label")
        axes.set_xlabel("score")
        axes.set_title(system.name, fontsize="medium")
    return figure


def _shade(share: float) -> tuple[float, float, float]:
    """Return a colour between light grey and dark green."""
    light, dark = np.array([0.90, 0.91, 0.93]), np.array([0.02, 0.36, 0.31])
    red, green, blue = light + share * (dark - light)
    return float(red), float(green), float(blue)


@styled
def trees_against_quality(
    models: Any,
    dataset: QueryDataset,
    measure: str | Measure = "ndcg@10",
    *,
    valid: Any = None,
    convention: str = "papers",
) -> Figure:
    """Plot a measure against the number of trees and against scoring time.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; models of trees are cut to their
        first trees, others have one point
    dataset : judged data
    measure : the measure
    valid : further data, a QueryDataset or several in a dict
    convention : how measures are defined where their names do not say it

    Returns
    -------
    a Matplotlib figure with two panels; only the second if no model is made of trees
    """
    owner = "trees_against_quality"
    systems = as_systems(models, dataset, owner)
    scores = {system.name: system.scores for system in systems}
    ranked = {system.name: system.model for system in systems if system.model is not None}
    if not ranked:
        raise DataError(f"{owner} needs models that can score, not scores.")
    sets = {"data": dataset, **valid_datasets(valid, owner)}
    curves = {
        name: size_curve(name, model, sets, measure, convention) for name, model in ranked.items()
    }
    units = {name: curve.unit for name, curve in curves.items() if curve is not None}
    figure = new_figure("Plotting", 11.0 if units else 6.0, 4.5)
    *by_size, by_time = figure.subplots(1, 2 if units else 1, squeeze=False)[0]
    for k, (name, model) in enumerate(ranked.items()):
        colour, mark = f"C{k}", _MARKS[k % len(_MARKS)]
        curve = curves[name]
        if curve is not None:
            for dash, (data_name, values) in zip(_DASHES, curve.values.items(), strict=False):
                label = f"{name}, {data_name}" if len(sets) > 1 else name
                by_size[0].plot(
                    curve.sizes, values, dash, marker=mark, color=colour, label=label, markersize=4
                )
            by_time.plot(
                curve.micros, curve.values["data"], mark, color=colour, alpha=0.4, markersize=4
            )
        (value,) = evaluate(scores[name], dataset, measure, convention).mean.values()
        time = scoring_time(model, dataset)
        by_time.plot(time, value, mark, color=colour, markersize=9, label=name)
    for axes in (*by_size, by_time):
        log_x(axes)
        axes.set_xlabel("µs per document" if axes is by_time else _size_label(units))
        axes.set_ylabel(f"mean {measure}")
        axes.legend(loc="lower right")
    return figure


def _size_label(units: Mapping[str, str]) -> str:
    """Return the label of the size axis; some models count rounds of several trees."""
    rounds = [name for name, unit in units.items() if unit == "rounds"]
    if len(rounds) == len(units):
        return "rounds of trees"
    return f"trees (of {', '.join(rounds)}: rounds)" if rounds else "trees"


@styled
def comparison(
    models: Any,
    dataset: QueryDataset,
    measures: str | Measure | Iterable[str | Measure] = ("ndcg@10", "map"),
    *,
    convention: str = "papers",
    ax: Axes | None = None,
) -> Figure:
    """Plot the means of measures with their 95 % intervals, one panel per measure.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; scores are accepted too
    dataset : judged data
    measures : the measures to compute
    convention : how measures are defined where their names do not say it
    ax : axes of Matplotlib to draw on, if there is one measure; None: those of a new figure
    """
    systems = as_systems(models, dataset, "comparison")
    evaluations = [evaluate(system.scores, dataset, measures, convention) for system in systems]
    names = list(evaluations[0].mean)
    size = max(5.5, 3.4 * len(names)), 1.6 + 0.35 * len(systems)
    figure, panels = new_panels("comparison", len(names), ax, *size, sharey=True)
    place = np.arange(len(systems))[::-1]
    for axes, name in zip(panels, names, strict=True):
        for k, (y, result) in enumerate(zip(place.tolist(), evaluations, strict=True)):
            axes.plot(result.interval[name], [y, y], color=f"C{k}", linewidth=2.5)
            axes.plot(result.mean[name], y, _MARKS[k % len(_MARKS)], color=f"C{k}", markersize=7)
        axes.set_title(name, fontsize="medium")
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(place, [system.name for system in systems])
    panels[0].set_ylim(-0.6, len(systems) - 0.4)
    if ax is None:
        figure.supxlabel("mean, 95 % interval", fontsize="medium")
    else:
        ax.set_xlabel("mean, 95 % interval")
    return figure
