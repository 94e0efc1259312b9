"""Wu, Burges, Svore and Gao 2010: which label shares bring Table 1 closest to the paper's?

The paper does not publish the label shares of its artificial data. There are two searches. A model
of noisy scores infers the shares from the paper's NDCG@3, NDCG@1 and interval widths, independently
of the ranker. And the paper's systems are trained on data with several shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from rankgrove import make_artificial
from rankgrove.data.synthetic.artificial import PRESETS
from rankgrove.random import generator
from rankgrove.tuning.tables import markdown
from rankgrove_papers.study import ARTIFICIAL, Experiment, Findings, Study
from rankgrove_papers.wu2010.artificial import (
    LEVEL_HEADER,
    PAPER_TABLE_1,
    SYSTEMS,
    distance,
    level_row,
)
from rankgrove_papers.wu2010.systems import MEASURES, TABLE_1

# Table 1: half widths of the 95 % intervals over 10K test queries, of NDCG@10, @3 and @1.
PAPER_INTERVALS = {"LambdaMART": (0.16, 0.32, 0.56), "LambdaRank": (0.25, 0.41, 0.66)}
CUTOFFS, N_DOCS = (10, 3, 1), 50
HALF_WAY = tuple((np.array(PRESETS["skewed"]) + PRESETS["equal"]) / 2)


def _geometric(ratio: float) -> tuple[float, ...]:
    """Return five shares, each `ratio` times the one before it."""
    powers = ratio ** np.arange(5)
    return tuple(powers / powers.sum())


def _between(*edges: float) -> tuple[float, ...]:
    """Return the shares of labels if a normally distributed target is cut at some values."""
    return tuple(np.diff([0.0, *ndtr(edges), 1.0]))


CANDIDATES: dict[str, Sequence[float]] = {
    "fitted": PRESETS["fitted"],
    "skewed": PRESETS["skewed"],
    "equal": PRESETS["equal"],
    "half-way between skewed and equal": HALF_WAY,
    "geometric, ratio .5": _geometric(0.5),
    "cut at 0, .75, 1.5, 2.25 deviations": _between(0, 0.75, 1.5, 2.25),
    "cut at -.75, .25, 1.25, 2.25 deviations": _between(-0.75, 0.25, 1.25, 2.25),
}
# McRank takes five times as long.
WITH_MCRANK = ("fitted", "skewed")


def label_search(study: Study) -> Findings:
    """Which label shares bring LambdaMART and McRank closest to the paper's Table 1."""
    fit = study.cell("noise model", _noise_fit)
    trained = study.cells(
        {f"LambdaMART, {name}": (_trained, "LambdaMART", name) for name in CANDIDATES}
    )
    means = {name: {"LambdaMART": trained[f"LambdaMART, {name}"]} for name in CANDIDATES}
    both = study.cells({f"McRank, {name}": (_trained, "McRank", name) for name in WITH_MCRANK})
    for name in WITH_MCRANK:
        means[name]["McRank"] = both[f"McRank, {name}"]
    n_train, n_test, n_rounds = _sizes(study)
    text = [
        "A model of noisy scores: a score is the target plus Gaussian noise, with a size that "
        "gives the paper's NDCG@10. NDCG@3, NDCG@1 and the half widths of the 95 % intervals over "
        "10,000 queries then depend on the label shares alone; the paper prints them all. "
        "Distance: the root of the mean square of the differences in NDCG (percent) and of a tenth "
        "of the relative differences in half widths (percent).",
        _noise_table(study),
        "Shares of the labels 0 to 4 with the least distance (a simplex search from three starts): "
        f"{_shares(fit['shares'])}, at a distance of {fit['distance']:.2f}; the preset `fitted` is "
        "that of full scale, rounded. McRank's figures were not used.",
        f"The paper's own systems ({TABLE_1}) trained on {n_train:,} queries, {n_rounds:,} rounds, "
        f"NDCG@10/3/1 of {n_test:,} test queries in percent. Distance: the root of the mean "
        "square of the differences from the paper's figures, six of them where McRank was "
        "trained, else three.",
        _trained_table(means),
    ]
    return Findings("\n\n".join(text), {})


def _shares(shares: Sequence[float]) -> str:
    return " / ".join(f"{share:.3f}".replace("0.", ".", 1) for share in shares)


# -- noisy scores -----------------------------------------------------------------------------

NOISES = np.linspace(0.35, 1.5, 16)
# Starting points of the search: edges of the labels, in standard deviations of the target.
STARTS = ((0.05, 1.04, 1.7, 2.33), (-0.75, 0.25, 1.25, 2.25), (0.0, 0.2, 1.5, 2.5))


class NoisyScores:
    """Queries whose documents have normally distributed targets, ranked by targets with noise.

    Parameters
    ----------
    n_queries : number of queries, of 50 documents each
    """

    def __init__(self, n_queries: int) -> None:
        draw = generator(0, "wu2010-labels")
        targets = draw.standard_normal((n_queries, N_DOCS))
        noise = draw.standard_normal((n_queries, N_DOCS))
        self._ends = targets.min(axis=1), targets.max(axis=1)
        self._ideal = -np.sort(-targets, axis=1)[:, : CUTOFFS[0]]
        orders = [np.argsort(-(targets + size * noise), axis=1)[:, : CUTOFFS[0]] for size in NOISES]
        self._ranked = [np.take_along_axis(targets, order, axis=1) for order in orders]

    def by_noise(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return NDCG@10, @3, @1 in percent and half widths: a row each, a column per noise."""
        lowest, highest = (np.searchsorted(edges, end, side="right") for end in self._ends)
        kept = lowest != highest  # queries of one label only are left out, as in the paper
        ideal = _discounted(edges, self._ideal[kept])
        means, widths = [], []
        for ranked in self._ranked:
            gains = _discounted(edges, ranked[kept])
            ndcg = [gains[:, :k].sum(axis=1) / ideal[:, :k].sum(axis=1) for k in CUTOFFS]
            means.append([100 * values.mean() for values in ndcg])
            widths.append([1.96 * values.std() for values in ndcg])  # of 10,000 queries, percent
        return np.array(means).T, np.array(widths).T

    def figures(self, shares: Sequence[float]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return NDCG and half widths of every system at the noise that gives its NDCG@10."""
        means, widths = self.by_noise(ndtri(np.cumsum(shares)[:-1]))
        order = np.argsort(means[0])
        at = {
            name: np.interp(PAPER_TABLE_1[name][0], means[0][order], NOISES[order])
            for name in PAPER_INTERVALS
        }
        return {
            name: (_at_noise(noise, means), _at_noise(noise, widths)) for name, noise in at.items()
        }


def _at_noise(noise: float, rows: np.ndarray) -> np.ndarray:
    return np.array([np.interp(noise, NOISES, row) for row in rows])


def _discounted(edges: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return gains 2^label - 1 divided by the discounts of their ranks.

    The label of a target is the number of edges that it reaches.
    """
    gains = sum(2.0**k * (targets >= edge) for k, edge in enumerate(edges))
    return np.asarray(gains / np.log2(2 + np.arange(CUTOFFS[0])))


def noise_distance(scores: NoisyScores, shares: Sequence[float]) -> float:
    """Return how far the noise model with the given shares is from the paper's figures."""
    apart = []
    for name, (mean, width) in scores.figures(shares).items():
        apart += list(mean[1:] - PAPER_TABLE_1[name][1:])
        apart += list(10 * (width / PAPER_INTERVALS[name] - 1))
    return float(np.sqrt(np.mean(np.square(apart))))


def _noise_fit(study: Study) -> dict[str, Any]:
    """Search for the shares with the smallest distance."""
    scores = NoisyScores(study.size(500, 3000))

    def shares_of(x: np.ndarray) -> list[float]:
        edges = x[0] + np.cumsum([0.0, *np.exp(x[1:])])
        return [float(share) for share in _between(*edges)]

    def far(x: np.ndarray) -> float:
        return noise_distance(scores, shares_of(x))

    ends = []
    for edges in STARTS:
        start = np.concatenate([edges[:1], np.log(np.diff(edges))])
        options: Any = {"maxiter": study.size(30, 150), "xatol": 0.01, "fatol": 0.005}
        ends.append(minimize(far, start, method="Nelder-Mead", options=options))
    best = min(ends, key=lambda end: end.fun)
    return {"shares": shares_of(best.x), "distance": float(best.fun)}


def _noise_table(study: Study) -> str:
    scores = NoisyScores(study.size(500, 3000))
    paper = ["the paper's", ""]
    for name, widths in PAPER_INTERVALS.items():
        paper += ["/".join(f"{v:.1f}" for v in PAPER_TABLE_1[name][1:]), _widths(widths)]
    rows = [[*paper, ""]]
    for label, shares in CANDIDATES.items():
        row = [label, _shares(shares)]
        for mean, width in scores.figures(shares).values():
            row += ["/".join(f"{value:.1f}" for value in mean[1:]), _widths(width)]
        rows.append([*row, f"{noise_distance(scores, shares):.2f}"])
    header = [f"{name}, {part}" for name in PAPER_INTERVALS for part in ("NDCG@3/1", "half widths")]
    return markdown(["labels", "shares of 0 to 4", *header, "distance"], rows)


def _widths(widths: Sequence[float] | np.ndarray) -> str:
    return "/".join(f"{width:.2f}".replace("0.", ".", 1) for width in widths)


# -- trained systems --------------------------------------------------------------------------


def _sizes(study: Study) -> tuple[int, int, int]:
    return study.size(1000, 10_000), study.size(500, 2500), study.size(60, 1000)


def _trained(study: Study, system: str, candidate: str) -> list[float]:
    """Train one of the paper's systems; return NDCG@10, @3 and @1 of test queries in percent."""
    n_train, n_test, n_rounds = _sizes(study)
    shares = CANDIDATES[candidate]
    train, test = (
        make_artificial(n, labels=shares, seed=seed) for n, seed in ((n_train, 0), (n_test, 2))
    )
    ranker, options = SYSTEMS[TABLE_1][system]
    model = ranker(n_trees=n_rounds, n_threads=study.n_threads, **options)
    model.fit(train, valid={"test": test}, valid_measures=MEASURES)
    return [100 * model.history_["test"][measure][-1] for measure in MEASURES]


def _trained_table(means: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    rows = [level_row("the paper's (shares unknown)", PAPER_TABLE_1)]
    for name in sorted(means, key=lambda name: distance(means[name])):
        if "McRank" in means[name]:
            rows.append(level_row(name, means[name]))
        else:
            level = "/".join(f"{value:.1f}" for value in means[name]["LambdaMART"])
            rows.append([name, level, "", "", f"{distance(means[name]):.2f}"])
    return markdown(LEVEL_HEADER, rows)


EXPERIMENTS = (
    Experiment(
        "wu2010-labels",
        "wu2010",
        "Table 1: the label shares of the artificial data, fitted to the paper's figures",
        label_search,
        data=ARTIFICIAL,
    ),
)
