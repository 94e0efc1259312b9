"""Wu, Burges, Svore and Gao 2010: the experiments on artificial data.

The artificial data follows the paper's recipe. Its label shares are not published, so there are
three presets. The experiments on web data use the same tables and curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove import LambdaMART, QueryDataset, make_artificial
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove_papers.study import (
    ARTIFICIAL,
    NARROW,
    NARROW_TEXT,
    Curves,
    Experiment,
    Findings,
    Study,
    Task,
)
from rankgrove_papers.tables import first_round_at, mean_cell, p_value
from rankgrove_papers.wu2010.systems import (
    DEFAULTS,
    FIGURE_2,
    LEAVES,
    MEASURES,
    NAMES,
    PAPER_LAMBDAMART,
    TABLE_1,
    Parts,
    System,
    tree_result,
    tree_systems,
)

# Table 1: NDCG@10, @3, @1 on 10K test queries of the artificial data.
PAPER_TABLE_1 = {
    "LambdaMART": (87.9, 81.7, 79.6),
    "McRank": (83.7, 75.6, 72.2),
    "LambdaRank": (75.4, 67.8, 65.8),
}
SYSTEMS = tree_systems(lambdamart_leaves=10)
# Kinds of labels, and the settings they are run in; equal shares are far from the paper's.
LABELS: dict[str, tuple[str, ...]] = {
    "skewed": tuple(SYSTEMS),
    "fitted": tuple(SYSTEMS),
    "equal": (TABLE_1,),
}

ByQuery = Mapping[str, list[float]]  # measure -> its value of every query


# -- Table 1 and Figure 2 ---------------------------------------------------------------------


def table_1(study: Study) -> Findings:
    """LambdaMART and McRank on artificial data: NDCG, and trees against NDCG@10."""
    cells = study.cells(tree_tasks(LABELS))
    results = {
        labels: {
            setting: {name: cells[tree_key(labels, setting, name)] for name in NAMES}
            for setting in settings
        }
        for labels, settings in LABELS.items()
    }
    text, figures = [_settings_text()], {}
    for labels, of_setting in results.items():
        values = {
            setting: {name: result["values"] for name, result in systems.items()}
            for setting, systems in of_setting.items()
        }
        text += [
            f"Labels {labels}, test NDCG in percent (half width of the 95 % interval), after the "
            "best round of the validation data:",
            systems_table(values, {TABLE_1: paper_cells(PAPER_TABLE_1)}),
            "LambdaMART minus McRank (p: paired t-test over the test queries of one model each):",
            gaps_table(values, PAPER_TABLE_1),
            best_rounds(
                {s: {n: [r] for n, r in systems.items()} for s, systems in of_setting.items()}
            ),
            *(
                trees_needed(of_setting[setting], setting)
                for setting in of_setting
                if setting != TABLE_1
            ),
        ]
        if FIGURE_2 in of_setting:
            title = f"Accuracy against size ({labels} labels)"
            figures[f"wu2010-figure2-{labels}"] = accuracy_by_trees(of_setting, title)
    text += [
        "The paper's own settings of Table 1 on the three kinds of labels, and the paper's "
        "figures (NDCG@10/3/1; the distance is the root of the mean square of the six "
        "differences):",
        _by_labels({labels: of_setting[TABLE_1] for labels, of_setting in results.items()}),
    ]
    return Findings("\n\n".join(text), figures)


def _settings_text() -> str:
    return (
        f'"{TABLE_1}": NDCG without a cutoff, all pairs, lambdas not normalised, least-squares '
        "splits, no l2; LambdaMART 10 leaves and rate .1, McRank 10 leaves and rate .05, 1,000 "
        "rounds at full scale (section 5.2). Different from the paper: a leaf has at least 20 "
        "rows, a feature at most 255 bins, and the best round is that of the validation data's "
        'NDCG@10. "Figure 2": the same with the leaves and the rate '
        f'of section 5.4. "{DEFAULTS}": all other parameters as they are in rankgrove. Labels: '
        "skewed as web judgements are, shares that were fitted to the paper's Table 1 "
        "(`wu2010-labels`), and five of equal share, in the first setting alone; the paper's own "
        "are not published."
    )


def tree_key(labels: str, setting: str, name: str) -> str:
    """Return the key of one fit."""
    return f"{labels}, {setting}, {name}"


def tree_tasks(settings: Mapping[str, Sequence[str]]) -> dict[str, Task]:
    """Return fits by key: both systems in the settings of every kind of labels."""
    return {
        tree_key(labels, setting, name): (trained, SYSTEMS[setting][name], labels)
        for labels, of_labels in settings.items()
        for setting in of_labels
        for name in NAMES
    }


def trained(study: Study, system: System, labels: str) -> dict[str, Any]:
    """Train a system on artificial data; return its test values by query and its curve."""
    return tree_result(system, artificial(study, labels), study.size(100, 1000), study.n_threads)


def artificial(study: Study, labels: str) -> Parts:
    """Return training, validation and test queries; the scale sets their numbers."""
    sizes = (study.size(1000, 10_000), study.size(500, 5000), study.size(1000, 10_000))
    train, valid, test = (make_artificial(n, labels=labels, seed=k) for k, n in enumerate(sizes))
    return train, valid, test


def paper_cells(figures: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Return the paper's figures of every system as the text of one cell."""
    return {name: "/".join(f"{value:.1f}" for value in row) for name, row in figures.items()}


def systems_table(
    values: Mapping[str, Mapping[str, ByQuery]], paper: Mapping[str, Mapping[str, str]]
) -> str:
    """Return a table of NDCG with a row per setting and system, and the paper's figures."""
    rows = [
        [
            name,
            setting,
            *(mean_cell(by_query[measure]) for measure in MEASURES),
            paper.get(setting, {}).get(name, ""),
        ]
        for setting, systems in values.items()
        for name, by_query in systems.items()
    ]
    return markdown(["system", "setting", *MEASURES, "paper's NDCG@10/3/1"], rows)


def gaps_table(
    values: Mapping[str, Mapping[str, ByQuery]], paper: Mapping[str, Sequence[float]]
) -> str:
    """Return a table of LambdaMART minus McRank, by measure; the first row is the paper's."""
    rows: list[list[str]] = [["the paper's, Table 1"]]
    for ours, theirs in zip(*(paper[name] for name in NAMES), strict=True):
        rows[0] += [f"{ours - theirs:+.1f}", ""]
    for setting, systems in values.items():
        row = [setting]
        for measure in MEASURES:
            ours, theirs = (systems[name][measure] for name in NAMES)
            row += [f"{_gap(ours, theirs):+.2f}", p_value(ours, theirs)]
        rows.append(row)
    header = [cell for measure in MEASURES for cell in (measure, f"p, {measure}")]
    return markdown(["setting", *header], rows)


def _gap(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the difference of two means in percent."""
    return 100 * exact_mean(np.array(ours) - np.array(theirs))


def _by_labels(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return a table of NDCG and gaps in Table 1's setting, by kind of labels; paper's first."""
    rows = [level_row("the paper's (shares unknown)", PAPER_TABLE_1)]
    for labels, systems in results.items():
        means = {
            name: tuple(100 * exact_mean(np.array(result["values"][m])) for m in MEASURES)
            for name, result in systems.items()
        }
        rows.append(level_row(labels, means))
    return markdown(LEVEL_HEADER, rows)


LEVEL_HEADER = ("labels", *NAMES, "LambdaMART minus McRank", "distance")


def level_row(labels: str, means: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a row of NDCG, gaps and the distance from the paper's six figures."""
    first, second = (np.array(means[name]) for name in NAMES)
    return [
        labels,
        *("/".join(f"{value:.1f}" for value in row) for row in (first, second)),
        "/".join(f"{value:+.1f}" for value in first - second),
        f"{distance(means):.2f}",
    ]


def distance(means: Mapping[str, Sequence[float]]) -> float:
    """Return the root of the mean squared difference from the paper's Table 1, in percent."""
    differences = [np.array(means[name]) - PAPER_TABLE_1[name] for name in means]
    return float(np.sqrt(np.mean(np.square(differences))))


def best_rounds(results: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> str:
    """Return a sentence with the best round of each system of trees in every fold."""
    words = [
        f"{name}, {setting}: {', '.join(str(fold['best round']) for fold in folds)} of "
        f"{len(folds[0]['curve'])}"
        for setting, systems in results.items()
        for name, folds in systems.items()
    ]
    return f"Best rounds (McRank grows one tree per label in a round): {'; '.join(words)}."


def trees_needed(systems: Mapping[str, Mapping[str, Any]], setting: str) -> str:
    """Return a table of the trees that each system needs for some levels of NDCG@10."""
    top = max(systems["McRank"]["curve"])
    low = max(result["curve"][0] for result in systems.values())
    rows = []
    for level in levels(low, top, (1 / 2, 2 / 3, 5 / 6, 1)):
        trees = []
        for result in systems.values():
            rounds = first_round_at(result["curve"], level)
            trees.append("not reached" if rounds is None else rounds * result["trees a round"])
        rows.append([f"{100 * level:.1f}", *trees])
    return (
        f"Trees after which the test NDCG@10 first reaches a level (Figure 2), {setting}:\n\n"
        + markdown(["NDCG@10", *(f"{name}, trees" for name in systems)], rows)
    )


def levels(low: float, top: float, shares: Sequence[float]) -> list[float]:
    """Return the levels at some shares of the way from low to top, rounded down to 0.1 %."""
    return [float(np.floor(1000 * (low + share * (top - low))) / 1000) for share in shares]


def accuracy_by_trees(results: Mapping[str, Mapping[str, Mapping[str, Any]]], title: str) -> Curves:
    """Return Figure 2: the test NDCG@10 of systems against their number of trees."""
    short = {FIGURE_2: "paper's own", DEFAULTS: "rankgrove's defaults"}
    lines = {
        f"{name}, {short[setting]}": (
            (1 + np.arange(len(result["curve"]))) * result["trees a round"],
            np.asarray(result["curve"]),
        )
        for setting, systems in results.items()
        if setting in short
        for name, result in systems.items()
    }
    return Curves(lines, "trees", "test NDCG@10", title, log_x=True)


# -- Figures 3 and 4 --------------------------------------------------------------------------

# The step and the lambdas maximise NDCG@10. The rank weights of the lambdas continue below rank 10:
# apart from a factor per query they are those of NDCG without a cutoff, the paper's target.
PAPER = PAPER_LAMBDAMART | {"beyond_cutoff": True}
NEWTON = {"step": "newton"}
OPTIMAL = {"step": "optimal", "step_on": "valid", "learning_rate": 1.0}
OPTIMAL_NEWTON = {"step": "optimal-newton", "step_on": "valid", "learning_rate": 1.0}
STEPS: dict[str, dict[str, Any]] = {
    "Newton, rate 1": NEWTON | {"learning_rate": 1.0},
    "Newton, rate 0.1": NEWTON | {"learning_rate": 0.1},
    "optimal": OPTIMAL,
    "optimal, Newton leaves": OPTIMAL_NEWTON,
    "paper's lambdas, Newton, rate 1": NEWTON | PAPER | {"learning_rate": 1.0},
    "paper's lambdas, Newton, rate 0.1": NEWTON | PAPER | {"learning_rate": 0.1},
    "paper's lambdas, optimal": OPTIMAL | PAPER,
}


# The paper's baseline on artificial data is the full Newton step: "this data set does not require
# setting the shrinkage to a value less than one" (section 5.6).
BASELINES = {
    "optimal": "Newton, rate 1",
    "optimal, Newton leaves": "Newton, rate 1",
    "paper's lambdas, optimal": "paper's lambdas, Newton, rate 1",
}


def figure_3(study: Study) -> Findings:
    """The exact line search against the Newton step, and the weights it chooses (Figure 4)."""
    cells = study.cells({f"steps {name}": (_stepped, STEPS[name]) for name in STEPS})
    runs = {name: cells[f"steps {name}"] for name in STEPS}
    wanted = (0.55, 0.6, 0.65, 0.7, 0.75)
    text = (
        "Test NDCG@10 in percent by number of trees (Figure 3 a). The paper's baseline on this "
        "data is Newton's full step (rate 1), and its exact step converges faster. Trees of "
        f"{LEAVES} leaves (the paper: 10). Paper's lambdas: all pairs, not normalised, "
        "least-squares splits, no l2; of NDCG@10 with rank weights that continue below rank 10, "
        "which differ from those of NDCG without a cutoff by a factor per query.\n\n"
        f"{by_trees(runs)}\n\n{rounds_needed(runs, wanted)}\n\n"
        f"{against_baseline(runs, BASELINES, wanted)}"
    )
    figures = {
        "wu2010-figure3": by_round(runs, "test", "test NDCG@10", "Exact line search"),
        "wu2010-figure4": weights_by_round(runs),
    }
    return Findings(f"{text}\n\n{NARROW_TEXT}", figures)


def by_trees(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of NDCG@10 after some numbers of trees, with a row per kind of step."""
    n_rounds = min(len(run["test"]) for run in runs.values())
    marks = [r for r in (10, 25, 50, 100, 200, 300) if r <= n_rounds]
    rows = [
        [name, *(f"{100 * run['test'][r - 1]:.2f}" for r in marks), f"{100 * max(run['test']):.2f}"]
        for name, run in runs.items()
    ]
    return markdown(["step", *(f"{r} trees" for r in marks), "best"], rows)


def rounds_needed(runs: Mapping[str, Mapping[str, Any]], wanted: Sequence[float]) -> str:
    """Return a table of the trees that each kind of step needs for some levels of NDCG@10."""
    rows = []
    for name, run in runs.items():
        need = [first_round_at(run["test"], level) for level in wanted]
        rows.append([name, *("-" if n is None else n for n in need)])
    return "Trees after which the test NDCG@10 first reaches a level:\n\n" + markdown(
        ["step", *(f"{round(100 * level, 1):g}" for level in wanted)], rows
    )


def against_baseline(
    runs: Mapping[str, Mapping[str, Any]],
    baselines: Mapping[str, str],
    wanted: Sequence[float],
) -> str:
    """Return a table of the baseline's trees divided by those of the exact step, by level."""
    rows = []
    for exact, baseline in baselines.items():
        row = [exact, baseline]
        for level in wanted:
            needs = [first_round_at(runs[name]["test"], level) for name in (baseline, exact)]
            row.append(_ratio(*needs))
        best = [round(100 * max(runs[name]["test"]), 2) for name in (exact, baseline)]
        rows.append([*row, f"{best[0] - best[1]:+.2f}"])
    return (
        "Trees of the paper's baseline divided by those of the exact step, for the same levels; "
        "last, the exact step's best NDCG@10 minus the baseline's:\n\n"
        + markdown(
            ["exact step", "baseline", *(f"{round(100 * x, 1):g}" for x in wanted), "best"], rows
        )
    )


def _ratio(baseline: int | None, exact: int | None) -> str:
    """Return one number of trees divided by another, as text."""
    if exact is None:
        return "not reached"
    return "not reached by baseline" if baseline is None else f"{baseline / exact:.1f}"


def by_round(runs: Mapping[str, Mapping[str, Any]], of: str, label: str, title: str) -> Curves:
    """Return one value of every run (`of`) by round, as lines."""
    lines = {name: (1 + np.arange(len(run[of])), np.asarray(run[of])) for name, run in runs.items()}
    return Curves(lines, "boosting round", label, title)


def weights_by_round(runs: Mapping[str, Mapping[str, Any]]) -> Curves:
    """Return Figure 4: the weights of the exact steps."""
    exact = {name: run for name, run in runs.items() if "optimal" in name}
    return by_round(exact, "alpha", "weight of the tree", "Weights the exact line search chose")


def _stepped(study: Study, options: dict[str, Any]) -> dict[str, Any]:
    train, valid, test = artificial(study, "skewed")
    watched = {"valid": valid, "test": test}
    options = {"n_trees": study.size(60, 200), "n_leaves": LEAVES} | options
    return step_result(train, watched, study.n_threads, **options)


def step_result(
    train: QueryDataset, watched: dict[str, QueryDataset], n_threads: int | None, **options: Any
) -> dict[str, Any]:
    """Train with given options; return NDCG@10 of the watched data and tree weights, by round."""
    rounds: list[Any] = []
    LambdaMART("ndcg@10", n_threads=n_threads, **(NARROW | options)).fit(
        train, valid=watched, callbacks=[rounds.append]
    )
    last = rounds[-1]
    curves = {name: last.watch.history[name]["ndcg@10"] for name in watched}
    return curves | {"alpha": last.steps}


EXPERIMENTS = (
    Experiment(
        "wu2010-table1",
        "wu2010",
        "Table 1 and Figure 2: LambdaMART and McRank",
        table_1,
        data=ARTIFICIAL,
    ),
    Experiment(
        "wu2010-figure3",
        "wu2010",
        "Figures 3 and 4: exact line search",
        figure_3,
        data=ARTIFICIAL,
    ),
)
