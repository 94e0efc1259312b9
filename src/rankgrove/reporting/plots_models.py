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
from rankgrove.reporting.systems import as_systems, named_models
from rankgrove.validation import check_integer, counted, refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DASHES = ("-", "--", ":", "-.")
_MARKS = "os^Dxv_*"


@styled
def learning_curve(models: Any, measure: str | Measure | None = None, *, ax: Any = None) -> Figure:
    """Plot a measure on validation data during training, as trained models have it on record.

    Parameters
    ----------
    models : a trained model, or several in a dict by name or in a list
    measure : the one to plot; None: the first on every model's record
    ax : axes of Matplotlib to draw on, where there is one panel; None: those of a new figure

    Returns
    -------
    a Matplotlib figure, with one panel for trees, for rounds of trees, for epochs and for values
    of C, where models have them; a ring marks what was kept. Of a bag all models' lines, thin, and
    their mean; of a combination its rankers' lines
    """
    found = []
    for name, model in named_models(models, "learning_curve").items():
        curves = learning_curves(name, getattr(model, "ranker", None) or model)
        wanted = str(measure) if measure is not None else curves[0].measure if curves else ""
        found += [one for one in curves if one.measure == wanted]
    if not found:
        raise DataError(
            "learning_curve: there is nothing on record"
            + (f" of {str(measure)!r}" if measure is not None else "")
            + ". Train with valid=, and name the measure in valid_measures=."
        )
    units = list(dict.fromkeys(one.unit for one in found))
    names = list(dict.fromkeys((one.model, one.member) for one in found))
    sets = list(dict.fromkeys(one.data for one in found))
    width = max(8.0, 4.6 * len(units))
    figure, panels = new_panels("learning_curve", len(units), ax, width)
    for axes, unit in zip(panels, units, strict=True):
        for one in (one for one in found if one.unit == unit):
            colour = f"C{names.index((one.model, one.member))}"
            dash = _DASHES[sets.index(one.data) % 4]
            label = f"{one.name}, {one.data}" if len(sets) > 1 else one.name
            axes.plot(one.x, one.y, dash, color=colour, label=label, linewidth=1.5)
            for row in [] if one.of is None else one.of:
                axes.plot(one.x, row, dash, color=colour, linewidth=0.6, alpha=0.35)
            if one.best is not None:
                k = int(np.argmin(np.abs(one.x - one.best)))
                axes.plot(one.x[k], one.y[k], "o", mfc="none", color=colour, markersize=9)
        if any(one.best is not None for one in found if one.unit == unit):
            axes.plot([], [], "o", mfc="none", color="0.4", markersize=9, label="kept")
        if unit == "C":
            axes.set_xscale("log")
        axes.set_xlabel(unit)
        own = dict.fromkeys(one.measure for one in found if one.unit == unit)
        axes.set_ylabel(f"mean {', '.join(own)}")
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
    ax: Any = None,
) -> Figure:
    """Plot the most important features, one panel a model.

    Parameters
    ----------
    models : a trained model, or several in a dict by name or in a list
    dataset : judged data, for models that have no importance of their own: of these it is how much
        the measure falls when the feature's values change places. It also has the features' names
    measure : which one that is
    kind : ``"gain"``, ``"split"``, ``"weight"`` or ``"permutation"``; None: a model's own
    n_features : features to show
    ax : axes of Matplotlib to draw on, where there is one model; None: those of a new figure
    """
    owner = "importance"
    check_integer("n_features", owner, n_features, low=1)
    found = []
    for name, given in named_models(models, owner).items():
        model = getattr(given, "ranker", None) or given
        data = _names_of(model) if dataset is None else dataset
        one = feature_importance(name, model, data, measure, kind)
        if one is None:
            raise DataError(
                f"{owner}: {name!r} has no importance of its own: give data with labels and with "
                "at most 1,000 features."
            )
        found.append(one)
    rows = max(3, max(len(one.top(n_features)) for one in found))
    width, height = max(5.5, 4.0 * len(found)), 1.4 + 0.27 * rows
    figure, panels = new_panels(owner, len(found), ax, width, height)
    for k, (axes, one) in enumerate(zip(panels, found, strict=True)):
        top = one.top(n_features)
        place = np.arange(len(top))[::-1]
        axes.barh(place, one.values[top], color=f"C{k}", height=0.7)
        axes.set_yticks(place, [one.features[j] for j in top])
        axes.set_xlabel(one.label)
        axes.set_title(one.model, fontsize="medium")
        axes.locator_params(axis="x", nbins=4)
    return figure


def _names_of(model: Any) -> QueryDataset:
    """Return data without rows that matter, of a model's features: it has their names."""
    n = getattr(model, "n_features_in_", None)
    if n is None:
        refuse("model", "importance", "trained", model)
    if not hasattr(model, "feature_importance") and not hasattr(model, "linear_"):
        raise DataError(
            f"importance: a {type(model).__name__} has none of its own: give dataset=, to see how "
            "much the measure falls when a feature's values change places."
        )
    names = getattr(model, "feature_names_", None)
    return QueryDataset(np.zeros((1, n), np.float32), [0], [0], feature_names=names)


@styled
def wins_and_losses(
    comparison: Comparison,
    system: str | None = None,
    against: str | None = None,
    *,
    ax: Any = None,
) -> Figure:
    """Plot the differences of two systems, query by query, the largest gain first.

    Parameters
    ----------
    comparison : what :func:`rankgrove.compare` returned
    system, against : which two; None: the second and the first
    ax : axes of Matplotlib to draw on; None: those of a new figure
    """
    if not isinstance(comparison, Comparison):
        refuse("comparison", "wins_and_losses", "what rg.compare returned", comparison)
    found = differences(comparison, system, against)
    figure, [axes] = new_panels("wins_and_losses", 1, ax)
    x = np.arange(found.values.size + 1)
    steps = np.append(found.values, found.values[-1])
    for name, part in (("good", steps.clip(0)), ("bad", steps.clip(None, 0))):
        axes.fill_between(x, part, step="post", color=page_colours()[name], linewidth=0)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.axhline(found.values.mean(), color="0.2", linewidth=1.0, linestyle="--", label="mean")
    won, lost, alike = found.counts
    axes.set_title(
        f"{found.system} against {found.against}: {counted(won, 'query', 'queries')} won, "
        f"{lost:,} lost, {alike:,} alike",
        fontsize="medium",
    )
    axes.set_xlim(0, found.values.size)
    axes.set_xlabel("queries, largest gain first")
    axes.set_ylabel(f"difference of {found.measure}")
    axes.legend(loc="upper right")
    return figure


@styled
def score_distribution(models: Any, dataset: QueryDataset, *, ax: Any = None) -> Figure:
    """Plot how the scores of documents with each label lie, one panel a model.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; scores are taken too
    dataset : judged data
    ax : axes of Matplotlib to draw on, where there is one model; None: those of a new figure
    """
    systems = as_systems(models, dataset, "score_distribution")
    width = max(6.0, 4.2 * len(systems))
    figure, panels = new_panels("score_distribution", len(systems), ax, width, 4.2)
    for axes, system in zip(panels, systems, strict=True):
        found = distribution_of(system.name, system.scores, dataset.y)
        top = found.shares.max()
        middle = (found.edges[1:] + found.edges[:-1]) / 2
        for g in range(len(found.labels) - 1, -1, -1):
            high = g + 1.3 * found.shares[g] / top
            shade = 0.15 + 0.75 * g / max(1, len(found.labels) - 1)
            axes.fill_between(middle, g, high, step="mid", color=_shade(shade), zorder=-g)
            axes.step(middle, high, where="mid", color="0.25", linewidth=0.7, zorder=-g)
        axes.grid(visible=False)
        axes.set_yticks(range(len(found.labels)), found.labels)
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
    """Plot what quality costs: the measure by number of trees, and against scoring time.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; models of trees are cut to their
        first trees, others have one point
    dataset : judged data
    measure : what to measure
    valid : further data, a QueryDataset or several in a dict
    convention : what the measure's name does not say

    Returns
    -------
    a Matplotlib figure, with two panels; without a model of trees the second alone
    """
    owner = "trees_against_quality"
    systems = [one for one in as_systems(models, dataset, owner) if one.model is not None]
    if not systems:
        raise DataError(f"{owner} needs models that can score, not scores.")
    sets = {"data": dataset, **valid_datasets(valid, owner)}
    curves = {
        one.name: size_curve(one.name, one.model, sets, measure, convention) for one in systems
    }
    units = {name: curve.unit for name, curve in curves.items() if curve is not None}
    figure = new_figure("Plotting", 11.0 if units else 6.0, 4.5)
    *by_size, by_time = figure.subplots(1, 2 if units else 1, squeeze=False)[0]
    for k, system in enumerate(systems):
        colour, mark = f"C{k}", _MARKS[k % len(_MARKS)]
        curve = curves[system.name]
        if curve is not None:
            for dash, (name, values) in zip(_DASHES, curve.values.items(), strict=False):
                label = f"{system.name}, {name}" if len(sets) > 1 else system.name
                by_size[0].plot(
                    curve.sizes, values, dash, marker=mark, color=colour, label=label, markersize=4
                )
            by_time.plot(
                curve.micros, curve.values["data"], mark, color=colour, alpha=0.4, markersize=4
            )
        whole = evaluate(system.scores, dataset, measure, convention)
        (value,) = whole.mean.values()
        time = scoring_time(system.model, dataset)
        by_time.plot(time, value, mark, color=colour, markersize=9, label=system.name)
    for axes in (*by_size, by_time):
        log_x(axes)
        axes.set_xlabel("µs a document" if axes is by_time else _size_label(units))
        axes.set_ylabel(f"mean {measure}")
        axes.legend(loc="lower right")
    return figure


def _size_label(units: Mapping[str, str]) -> str:
    """Return what models' sizes count, where some count rounds of several trees."""
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
    ax: Any = None,
) -> Figure:
    """Plot the means of measures with their 95 % intervals, one panel a measure.

    Parameters
    ----------
    models : a model, or several in a dict by name or in a list; scores are taken too
    dataset : judged data
    measures : what to measure
    convention : what the measures' names do not say
    ax : axes of Matplotlib to draw on, where there is one measure; None: those of a new figure
    """
    systems = as_systems(models, dataset, "comparison")
    found = [evaluate(one.scores, dataset, measures, convention) for one in systems]
    names = list(found[0].mean)
    size = max(5.5, 3.4 * len(names)), 1.6 + 0.35 * len(systems)
    figure, panels = new_panels("comparison", len(names), ax, *size, sharey=True)
    place = np.arange(len(systems))[::-1]
    for axes, name in zip(panels, names, strict=True):
        for k, (y, result) in enumerate(zip(place.tolist(), found, strict=True)):
            axes.plot(result.interval[name], [y, y], color=f"C{k}", linewidth=2.5)
            axes.plot(result.mean[name], y, _MARKS[k % len(_MARKS)], color=f"C{k}", markersize=7)
        axes.set_title(name, fontsize="medium")
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(place, [one.name for one in systems])
    panels[0].set_ylim(-0.6, len(systems) - 0.4)
    if ax is None:
        figure.supxlabel("mean, 95 % interval", fontsize="medium")
    else:
        ax.set_xlabel("mean, 95 % interval")
    return figure
