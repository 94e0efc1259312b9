"""Chen, Lu, Wong, Sun, Heck and Tseng 2008 (Trada): tree adaptation on generated domains.

The paper's domains are not published. ``make_domains`` generates the source and the target. Grades
are 0, 1, 3, 7 and 10, in training and in the measure: DCG@10 with the natural logarithm. Every
figure is a mean over the queries of five folds of the target; models see a sample of the queries of
the other four folds. As in the paper (section 3.3) every tree is grown on a random sample of the
rows. The paper does not say how large it is; here it is half of the rows, as in Friedman (1999).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rankgrove import (
    MART,
    QueryDataset,
    adapt_with,
    evaluate,
    k_fold,
    make_domains,
    statistics_from_data,
)
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.measures.base import exact_mean
from rankgrove.measures.ndcg import DCG
from rankgrove.random import generator
from rankgrove.tuning.tables import markdown
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.study import Curves, Experiment, Findings, Study, Task
from rankgrove_papers.tables import p_value

GRADES = np.array([0.0, 1.0, 3.0, 7.0, 10.0])
MEASURE = DCG(cutoff=10, gain="identity", discount="ln")
MEAN = "Mean DCG@10 (half width of the 95 % interval)"
FOLDS = 5
LEAVES, RATE, EXTRA = 12, 0.05, 30  # section 5.3 and 5.5.3
ROWS = 0.5  # share of the rows of every tree: of base, small, combined, additive and extra trees
BETAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
BETA = 10.0
BOOSTED: dict[str, Any] = {
    "n_leaves": LEAVES,
    "learning_rate": RATE,
    "row_fraction": ROWS,
    "split": "mse",
    "l2": 0.0,
}
VARIANT = (
    f"Boosted regression trees on squared error: least-squares splits, l2 0, {LEAVES} leaves, rate "
    f"{RATE:g}, every tree on a random {ROWS:.0%} of the rows (the paper samples rows and does not "
    "say how many). A node's n0 are all rows of the source that reach it."
)
# Which parts of the trees are tuned, in the notation of Table 2.
SETTINGS: dict[str, dict[str, Any]] = {
    "R": {},
    "RA": {"level": "leaf"},
    "RT": {"trim": True},
    "SR": {"tune": "splits"},
    "SRA": {"tune": "splits", "level": "leaf"},
    "SRT": {"tune": "splits", "trim": True},
}


class Shift(NamedTuple):
    """How a target differs from its source.

    Attributes
    ----------
    feature, relevance, noise : as in ``make_domains``
    shared : leave out the features that only the target has
    """

    feature: float = 0.3
    relevance: float = 0.3
    noise: float = 1.0
    shared: bool = False


class Domain(NamedTuple):
    """The data of two domains, and the base model of the source."""

    source: QueryDataset
    target: QueryDataset
    base: MART


# -- data and models --------------------------------------------------------------------------


def sizes(study: Study) -> list[int]:
    """Return the numbers of target queries that models see: 200 to 1,000 in full."""
    step = study.size(100, 200)
    return [step * k for k in range(1, study.size(3, 5) + 1)]


def middle(study: Study) -> int:
    """Return the number of target queries in experiments with a single one: 600 in full."""
    return sizes(study)[study.size(1, 2)]


def domain(study: Study, shift: Shift | None = None) -> Domain:
    """Return a source, a target and a base model; made once per process."""
    n_target = sizes(study)[-1] * 13 // 10
    n_source, n_trees = study.size(1000, 6000), study.size(100, 300)
    return _domain(n_source, n_target, n_trees, shift or Shift(), study.n_threads)


@lru_cache(maxsize=1)
def _domain(
    n_source: int, n_target: int, n_trees: int, shift: Shift, n_threads: int | None
) -> Domain:
    source, target = (graded(data) for data in domain_data(n_source, n_target, shift))
    base = MART(measure=MEASURE, n_trees=n_trees, n_threads=n_threads, **BOOSTED).fit(source)
    return Domain(source, target, with_all_rows_counted(base, source))


def with_all_rows_counted(base: MART, source: QueryDataset) -> MART:
    """Return the base model with n0 counted over all rows of the source (section 4.2).

    The trained model counts only the rows that each tree was grown on. Its responses R0 stay.
    """
    counts = statistics_from_data(base, source, l2=base.l2, n_threads=base.n_threads).ensemble_
    recounted = copy.copy(base)
    recounted.ensemble_ = replace(
        base.ensemble_, node_count=counts.node_count, leaf_count=counts.leaf_count
    )
    return recounted


def domain_data(n_source: int, n_target: int, shift: Shift) -> tuple[QueryDataset, QueryDataset]:
    """Return a source and a target with labels 0 to 4."""
    source, target = make_domains(
        n_source,
        n_target,
        feature_shift=shift.feature,
        relevance_shift=shift.relevance,
        noise=shift.noise,
        seed=1,
    )
    return without_what_the_source_lacks(source, target) if shift.shared else (source, target)


def without_what_the_source_lacks(
    source: QueryDataset, target: QueryDataset
) -> tuple[QueryDataset, QueryDataset]:
    """Return both domains without the features that have no value in the source."""
    known = ~np.isnan(np.asarray(source.X)).all(axis=0)
    first, second = (QueryDataset(d.X[:, known], d.y, d.qid) for d in (source, target))
    return first, second


def graded(data: QueryDataset) -> QueryDataset:
    """Return the data with the paper's grades instead of the labels 0 to 4."""
    return QueryDataset(data.X, GRADES[data.y.astype(int)], data.qid)


def samples(target: QueryDataset, size: int) -> Iterator[tuple[QueryDataset, QueryDataset]]:
    """Yield a sample of the training queries and the test queries of every fold of the target."""
    for k, fold in enumerate(k_fold(target, FOLDS, seed=0)):
        drawn = generator(0, "chen2008", k).permutation(fold.train.n_queries)[:size]
        yield fold.train.select(np.sort(drawn)), fold.test


def tested(model: Any, test: QueryDataset) -> list[float]:
    """Return the DCG of every query."""
    (values,) = evaluate(model, test, MEASURE).per_query.values()
    return [float(value) for value in values]


def pooled_values(
    study: Study, name: str, size: int, shift: Shift | None = None, **settings: Any
) -> list[float]:
    """Return the DCG of all target queries under a method, fold by fold."""
    cells = study.cells(tasks(name, [size], shift, **settings))
    return [value for cell in cells.values() for value in cell["values"]]


def chosen_betas(
    study: Study, name: str, size: int, shift: Shift | None = None, **settings: Any
) -> list[float]:
    """Return the betas that cross-validation chose for a method, fold by fold."""
    cells = study.cells(tasks(name, [size], shift, **settings))
    return [cell["beta"] for cell in cells.values()]


def tasks(
    name: str, seen: Sequence[int], shift: Shift | None = None, **settings: Any
) -> dict[str, Task]:
    """Return the tasks of a method by key: one per number of queries and fold."""
    mark = "" if shift is None else f"{'/'.join(map(str, shift))} "
    return {
        f"{mark}{name}, {size} queries, fold {k + 1}": (_fold_result, shift, size, k, settings)
        for size in seen
        for k in range(FOLDS)
    }


def _fold_result(
    study: Study, shift: Shift | None, size: int, k: int, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Adapt the base model to a sample of a fold; return the DCG of the test queries."""
    source, target, base = domain(study, shift)
    train, test = list(samples(target, size))[k]
    options = {"method": "trada", **settings}
    method = options.pop("method")
    if method == "combine":
        options["source"] = source
    if method != "base":
        options["n_threads"] = study.n_threads
    if method in ("trada", "additive"):
        options = {"measure": MEASURE, **BOOSTED, **options}
    model = adapt_with(method, base, train, **options)
    return {"values": tested(model, test), "beta": getattr(model, "beta_", None)}


def curve(study: Study, name: str, **settings: Any) -> list[list[float]]:
    """Return the DCG of all target queries under a method, by number of training queries."""
    study.cells(tasks(name, sizes(study), **settings))  # together, so that a cluster runs them all
    return [pooled_values(study, name, size, **settings) for size in sizes(study)]


def mean(values: Sequence[float]) -> float:
    """Return the mean, rounded once."""
    return exact_mean(np.asarray(values, np.float64))


def mean_of(values: Sequence[float]) -> str:
    """Return the mean and the half width of its 95 % interval, as text."""
    low, high = confidence_interval(np.asarray(values, np.float64))
    return f"{mean(values):.3f} ({(high - low) / 2:.2f})"


def by_number(
    x: Sequence[int],
    lines: Mapping[str, Sequence[Sequence[float]]],
    x_label: str,
    title: str,
) -> tuple[str, Curves]:
    """Return a table of lines by number, and their plot; a point is a list of values by query."""
    rows = [[name, *map(mean_of, line)] for name, line in lines.items()]
    means = {name: (np.array(x), np.array([*map(mean, line)])) for name, line in lines.items()}
    return markdown(["DCG@10", *map(str, x)], rows), Curves(means, x_label, "DCG@10", title)


def by_size(
    study: Study, lines: Mapping[str, Sequence[Sequence[float]]], title: str
) -> tuple[str, Curves]:
    """Return a table of lines by number of target queries, and their plot."""
    return by_number(sizes(study), lines, "target queries", title)


# -- the figures ------------------------------------------------------------------------------


def figure_6(study: Study) -> Findings:
    """The weight of the target's rows, by the size of its data."""
    lines = {
        f"beta {beta:g}": curve(study, f"SR beta {beta:g}", tune="splits", beta=beta)
        for beta in BETAS
    }
    lines["base"] = curve(study, "base", method="base")
    table, plot = by_size(study, lines, "Splits and responses tuned")
    means = {beta: [mean(values) for values in lines[f"beta {beta:g}"]] for beta in BETAS}
    best = [BETAS[k] for k in np.argmax([means[beta] for beta in BETAS], axis=0)]
    title = f"{MEAN} by number of target queries, splits and responses tuned (Figure 6). {VARIANT}"
    edges = edge_report({"best beta of a size, by test data": Choices(best, BETAS)})
    return Findings(f"{title}\n\n{table}\n\n{edges}", {"chen2008-figure6": plot})


def figures_7_and_8(study: Study) -> Findings:
    """Layers or leaves, trimmed or not, splits tuned or not."""
    lines = {
        name: curve(study, f"{name} beta {BETA:g}", beta=BETA, **options)
        for name, options in SETTINGS.items()
    }
    table, _ = by_size(study, lines, "")
    size = sizes(study)[-1]
    values = {
        name: pooled_values(study, f"{name} beta {BETA:g}", size, beta=BETA, **options)
        for name, options in SETTINGS.items()
    }
    tests = [
        ["R", other, f"{mean(values['R']) - mean(values[other]):+.4f}", p]
        for other in list(SETTINGS)[1:]
        for p in [p_value(values["R"], values[other])]
    ]
    text = (
        f"{MEAN} by number of target queries, beta {BETA:g} (Figures 7 and 8). R: "
        f"responses by layer; A: by leaf; S: splits too; T: trimmed. {VARIANT}\n\n"
        f"{table}\n\nR against the others at {size} queries:\n\n"
        + markdown(["", "against", "difference", "p (t-test)"], tests)
    )
    pick = {
        "chen2008-figure7": ("R", "RA", "SR", "SRA"),
        "chen2008-figure8": ("R", "RT", "SR", "SRT"),
    }
    figures = {
        name: by_size(study, {k: lines[k] for k in kept}, "Ways of tuning")[1]
        for name, kept in pick.items()
    }
    return Findings(text, figures)


def figures_9_and_10(study: Study) -> Findings:
    """Extra trees on adapted models and on the base model itself."""
    ways: dict[str, dict[str, Any]] = {
        "base": {"method": "base"},
        "additive": {"method": "additive", "extra_trees": EXTRA},
        "R": {"beta": BETA},
        f"R + {EXTRA}": {"beta": BETA, "extra_trees": EXTRA},
        "SR": {"beta": BETA, "tune": "splits"},
        f"SR + {EXTRA}": {"beta": BETA, "tune": "splits", "extra_trees": EXTRA},
    }
    lines = {name: curve(study, _named(name), **options) for name, options in ways.items()}
    table, plot = by_size(study, lines, f"{EXTRA} extra trees")
    size = middle(study)
    more = [0, 10, 30, 50, 100]
    of_number: dict[str, dict[str, Any]] = {
        "additive": {"method": "additive"},
        "R": {"beta": BETA},
        "SR": {"beta": BETA, "tune": "splits"},
    }
    grown = {
        name: [
            pooled_values(study, f"{name} {n} extra", size, extra_trees=n, **options) for n in more
        ]
        for name, options in of_number.items()
    }
    by_trees, figure_10 = by_number(more, grown, "extra trees", f"{size} target queries")
    p = [
        p_value(
            pooled_values(study, f"R + {EXTRA}", n_queries, **ways[f"R + {EXTRA}"]),
            pooled_values(study, "additive", n_queries, **ways["additive"]),
        )
        for n_queries in sizes(study)
    ]
    text = (
        f"{MEAN} by number of target queries (Figure 9). {VARIANT}\n\n{table}\n\n"
        f"R + {EXTRA} against additive, p by size: {', '.join(p)}.\n\n"
        f"By number of extra trees, {size} queries (Figure 10):\n\n{by_trees}"
    )
    return Findings(text, {"chen2008-figure9": plot, "chen2008-figure10": figure_10})


def _named(name: str) -> str:
    """Return the key of a method; it is the same in all experiments that have the method."""
    return f"{name} beta {BETA:g}" if name in SETTINGS else name


DOMAINS = (
    "two generated domains (rg.make_domains), at full scale 6,000 source queries of 40 documents "
    "and 1,300 target queries"
)
GRADED = "papers, DCG with grades 10, 7, 3, 1, 0 and the natural logarithm (section 5.2)"

EXPERIMENTS = (
    Experiment(
        "chen2008-figure6",
        "chen2008",
        "Figure 6: beta and size of the data",
        figure_6,
        data=DOMAINS,
        measured=GRADED,
    ),
    Experiment(
        "chen2008-figures7-8",
        "chen2008",
        "Figures 7 and 8: ways of tuning",
        figures_7_and_8,
        data=DOMAINS,
        measured=GRADED,
    ),
    Experiment(
        "chen2008-figures9-10",
        "chen2008",
        "Figures 9 and 10: extra trees",
        figures_9_and_10,
        data=DOMAINS,
        measured=GRADED,
    ),
)
