"""Draw the pictures of the pages of explanation: ``python -m tools.explanations [NAME...]``.

Every function draws one picture from what it computes, on generated data with fixed seeds. The page
that shows a picture says what was computed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import rankgrove as rg
from rankgrove.reporting.figure import new_panels, save_figure
from rankgrove.reporting.look import styled
from tools.pages import ROOT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = ROOT / "docs" / "assets" / "explanation"
CONVENTIONS = ("papers", "letor", "mslr", "trec", "yahoo", "lightgbm", "sklearn", "ranklib")


@styled
def measures() -> Figure:
    """NDCG@10 of one model on the same queries by all conventions."""
    train, test = (rg.make_web(300, n_docs=12, n_features=20, seed=seed) for seed in (1, 2))
    few = rg.QueryDataset(test.X, np.maximum(np.asarray(test.y) - 2, 0), qid=test.qid)
    model = rg.LambdaMART(n_trees=50, n_leaves=7).fit(train)
    names = [f"ndcg@10[{name}]" for name in CONVENTIONS]
    values = [next(iter(rg.evaluate(model, few, name).mean.values())) for name in names]
    figure, [axes] = new_panels("measures", 1, None, 8.0, 3.6)
    order = np.argsort(values)
    bars = axes.barh([CONVENTIONS[i] for i in order], [values[i] for i in order], color="C0")
    axes.bar_label(bars, fmt="%.3f", padding=4)
    axes.set_title("One model, the same 300 queries: NDCG@10 by convention")
    axes.set_xlim(0, 1)
    axes.grid(axis="y", visible=False)
    return figure


@styled
def lambdas() -> Figure:
    """NDCG as a function of one document's score, and the lambda of that document."""
    labels = np.array([3, 0, 1, 0, 2])
    query = rg.QueryDataset(labels[:, None], labels, qid=[1] * labels.size)
    others = np.array([0.5, 1.2, 2.0, 3.1])  # scores of all documents but the first
    grid = np.linspace(-1, 5, 601)
    discounts = 1 / np.log2(2 + np.arange(labels.size))
    gains = 2.0**labels - 1
    ideal = float(np.sort(gains)[::-1] @ discounts)
    value, force = np.empty(grid.size), np.empty(grid.size)
    smooth = np.empty(grid.size)
    noise = np.random.default_rng(0).gumbel(size=(4000, labels.size))
    for i, score in enumerate(grid):
        scores = np.concatenate([[score], others])
        value[i] = rg.evaluate(scores, query, "ndcg").mean["ndcg"]
        rank = np.argsort(np.argsort(-scores))
        change = abs((gains[0] - gains) * (discounts[rank[0]] - discounts[rank])) / ideal
        better = np.sign(gains[0] - gains)
        force[i] = np.sum(better * change / (1 + np.exp(better * (score - scores))))
        noisy = np.argsort(-(scores + noise), axis=1)
        smooth[i] = np.mean(gains[noisy] @ discounts) / ideal
    figure, panels = new_panels("lambdas", 2, None, 9.0, 3.6)
    panels[0].plot(grid, value, color="C0", label="NDCG")
    panels[0].plot(grid, smooth, color="C1", label="mean NDCG with noisy scores")
    panels[0].set_title("The measure has steps")
    panels[0].set_ylabel("NDCG of the query")
    panels[0].legend()
    panels[1].plot(grid, force, color="C0")
    panels[1].set_title("The lambda points upwards everywhere")
    panels[1].set_ylabel("lambda of the document")
    panels[1].set_ylim(bottom=0)
    for axes in panels:
        axes.set_xlabel("score of the best document")
        for score in others:
            axes.axvline(score, color="0.6", linewidth=0.8, linestyle=":")
    return figure


@styled
def combination() -> Figure:
    """NDCG@10 of two rankers' combination as a function of the weight."""
    train, vali = (rg.make_artificial(200, seed=seed) for seed in (1, 2))
    first, second = (
        rg.PreparedRanker(rg.LambdaMART(n_trees=50), half).fit(train)
        for half in (range(1, 26), range(26, 51))
    )
    names = ("a: first half of the features", "b: second half")
    best = rg.optimal_combination(first, second, vali, "ndcg@10", names=names)
    figure = rg.plot.combination_curve(best)
    figure.axes[0].set_title("The measure at every weight of two rankers")
    return figure


@styled
def bags() -> Figure:
    """NDCG@10 of bags of 1 to 25 models, and of their members alone."""
    train, test = rg.make_web(150, n_docs=20, seed=1), rg.make_web(400, n_docs=20, seed=2)
    members = [
        rg.LambdaMART(n_trees=60, random_state=k, query_fraction=0.5, row_fraction=0.5).fit(train)
        for k in range(25)
    ]
    scores = np.array([member.predict(test) for member in members])
    sizes = np.arange(1, len(members) + 1)

    def value(scores: np.ndarray) -> float:
        return float(rg.evaluate(scores, test, "ndcg@10").mean["ndcg@10"])

    figure, [axes] = new_panels("bags", 1, None, 8.0, 3.6)
    bag = [value(scores[:n].mean(axis=0)) for n in sizes]
    axes.plot(sizes, [value(one) for one in scores], "o", color="C1", label="single models")
    axes.plot(sizes, bag, color="C0", label="mean of the first n models")
    axes.set_title("A bag is better than its members")
    axes.set_xlabel("model, or number of models")
    axes.set_ylabel("NDCG@10 of 400 test queries")
    axes.legend()
    return figure


@styled
def adaptation() -> Figure:
    """NDCG@10 on a new market by the number of its judged queries."""
    shift = {"feature_shift": 0.1, "relevance_shift": 0.3}
    big, small = rg.make_domains(500, 400, **shift, seed=1)
    _, test = rg.make_domains(1, 400, **shift, seed=3)
    options = {"n_leaves": 15, "row_fraction": 0.7}
    background = rg.LambdaMART(n_trees=100, n_leaves=15).fit(big)
    counts = [10, 20, 50, 100, 200, 400]
    alone, added = [], []
    for n in counts:
        part = small.select(np.arange(n))
        for base, values in ((None, alone), (background, added)):
            model = rg.LambdaMART(n_trees=50, submodel=base, **options).fit(part)
            values.append(rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"])
    figure, [axes] = new_panels("adaptation", 1, None, 8.0, 3.6)
    level = rg.evaluate(background, test, "ndcg@10").mean["ndcg@10"]
    axes.axhline(level, color="0.45", linestyle="--", label="model of the large market")
    axes.plot(counts, added, "o-", color="C0", label="started from that model")
    axes.plot(counts, alone, "o-", color="C1", label="new market's queries alone")
    axes.set_xscale("log")
    axes.set_xticks(counts, [str(n) for n in counts])
    axes.minorticks_off()
    axes.set_title("A model of another market is a better start than nothing")
    axes.set_xlabel("judged queries of the new market")
    axes.set_ylabel("NDCG@10 of 400 test queries")
    axes.legend()
    return figure


@styled
def determinism() -> Figure:
    """Sums of the same gradients in 200 orders: in float32, and of whole numbers."""
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=20_000).astype(np.float32)
    whole = np.floor(gradients * 2.0**16 + rng.random(gradients.size)).astype(np.int64)
    floats, wholes = [], []
    for _ in range(200):
        order = rng.permutation(gradients.size)
        floats.append(float(np.add.accumulate(gradients[order])[-1]))
        wholes.append(float(whole[order].sum()) / 2.0**16)
    figure, panels = new_panels("determinism", 2, None, 9.0, 3.4, sharex=True)
    centre = np.mean(floats)
    bins = np.linspace(*(np.array([min(floats), max(floats)]) - centre), 30)
    width = bins[1] - bins[0]
    bins = np.concatenate([bins, [bins[-1] + width]])
    for axes, sums, name in zip(
        panels, (floats, wholes), ("floating-point numbers", "whole numbers"), strict=True
    ):
        distinct = len(set(sums))
        noun = "sum" if distinct == 1 else "different sums"
        axes.hist(np.array(sums) - (centre if name[0] == "f" else sums[0]), bins=bins, color="C0")
        axes.set_title(f"{name.capitalize()}: {distinct} {noun}")
        axes.set_xlabel("sum of 20,000 gradients, minus the mean sum")
        axes.set_ylabel("number of orders")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "measures": measures,
    "lambdas": lambdas,
    "combination": combination,
    "bags": bags,
    "adaptation": adaptation,
    "determinism": determinism,
}

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        save_figure(PICTURES[name](), FOLDER / f"{name}.png")
        print(f"docs/assets/explanation/{name}.png")
