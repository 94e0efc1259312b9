"""The systems that Wu, Burges, Svore and Gao compare: their settings, and rankgrove's defaults.

Table 1 and Figure 2 have different settings in the paper; every table names the one it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rankgrove import LambdaMART, LambdaRank, McRank, QueryDataset, RankNet, evaluate
from rankgrove_papers.tables import per_query

Parts = tuple[QueryDataset, QueryDataset, QueryDataset]  # training, validation, test
Net = RankNet | LambdaRank

MEASURES = ["ndcg@10", "ndcg@3", "ndcg@1"]
# The paper's own algorithms: for LambdaMART the parameters of ``LambdaMART.papers``, for McRank the
# same trees (least-squares splits, leaves without l2).
PAPER_LAMBDAMART: dict[str, Any] = {
    "surrogate": None,
    "truncation": None,
    "beyond_cutoff": False,
    "normalise": False,
    "split": "mse",
    "l2": 0.0,
}
PAPER_MCRANK = {"split": "mse", "l2": 0.0}
PAPER_NET: dict[str, Any] = {"measure": "ndcg", "truncation": None, "normalise": False}
HIDDEN = (10,)  # "two layers and ten hidden nodes"
RATES = (0.001, 0.003)  # learning rates of nets
# The paper's choice by validation data for Figure 2, for both systems (section 5.4).
LEAVES, RATE = 20, 0.15
SHAPE = {"n_leaves": LEAVES, "learning_rate": RATE}
# Names of the settings in tables.
TABLE_1 = "paper's own, as in Table 1"
FIGURE_2 = "paper's own, 20 leaves, rate .15 (Figure 2)"
DEFAULTS = "rankgrove's defaults, 20 leaves, rate .15"
NAMES = ("LambdaMART", "McRank")


class System(NamedTuple):
    """A ranker and its parameters, without the number of rounds."""

    ranker: type[LambdaMART | McRank]
    options: Mapping[str, Any]


def tree_systems(lambdamart_leaves: int) -> dict[str, dict[str, System]]:
    """Return the systems of every setting by name.

    Parameters
    ----------
    lambdamart_leaves : leaves of LambdaMART in Table 1: 10 on artificial data, 15 on Web-1
        (section 5.2)
    """
    # The paper trains for NDCG without a cutoff (equation 2 and the text after it).
    lambdamart = PAPER_LAMBDAMART | {"measure": "ndcg"}
    return {
        TABLE_1: {
            "LambdaMART": System(
                LambdaMART, lambdamart | {"n_leaves": lambdamart_leaves, "learning_rate": 0.1}
            ),
            "McRank": System(McRank, PAPER_MCRANK | {"n_leaves": 10, "learning_rate": 0.05}),
        },
        FIGURE_2: {
            "LambdaMART": System(LambdaMART, lambdamart | SHAPE),
            "McRank": System(McRank, PAPER_MCRANK | SHAPE),
        },
        DEFAULTS: {
            "LambdaMART": System(LambdaMART, {"measure": "ndcg@10"} | SHAPE),
            "McRank": System(McRank, {"measure": "ndcg@10"} | SHAPE),
        },
    }


def tree_result(
    system: System, parts: Parts, n_rounds: int, n_threads: int | None
) -> dict[str, Any]:
    """Train a system; return test values by query after its best round, and NDCG@10 by round.

    NDCG@10 of the validation queries chooses the best round, whatever the system maximises.
    """
    train, valid, test = parts
    ranker = system.ranker(n_trees=n_rounds, n_threads=n_threads, **system.options)
    ranker.fit(train, valid={"valid": valid, "test": test}, valid_measures="ndcg@10")
    return {
        "values": per_query(evaluate(ranker, test, MEASURES)),
        "curve": ranker.history_["test"]["ndcg@10"],
        "trees a round": ranker.ensemble_.n_columns,
        "best round": ranker.best_round_,
    }


def best_net(
    ranker: type[Net],
    train: QueryDataset,
    valid: QueryDataset,
    valid_measure: str,
    rates: tuple[float, ...] = RATES,
    start: Net | None = None,
    **options: Any,
) -> Net:
    """Train a net at several learning rates that fall to 0; return the best on validation data."""
    nets: list[tuple[float, Net]] = []
    for rate in rates:
        model = ranker(learning_rate=rate, schedule="linear", **options)
        model.fit(train, valid=valid, valid_measures=valid_measure, start=start)
        nets.append((max(model.history_["valid"][valid_measure]), model))
    return max(nets, key=lambda net: net[0])[1]
