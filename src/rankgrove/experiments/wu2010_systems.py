"""The trees that Wu, Burges, Svore and Gao compare: their settings, and this toolkit's beside them.

Table 1 and Figure 2 have different settings in the paper; every table says which one it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.study import per_query
from rankgrove.rankers.trees.lambdamart import PAPERS, LambdaMART
from rankgrove.rankers.trees.mcrank import McRank

Parts = tuple[QueryDataset, QueryDataset, QueryDataset]  # to train, to validate, to test

MEASURES = ["ndcg@10", "ndcg@3", "ndcg@1"]
# McRank's trees are the paper's as LambdaMART's are (``LambdaMART.papers``): least-squares splits,
# leaves without l2.
PAPER_MCRANK = {"split": "mse", "l2": 0.0}
PAPER_NET: dict[str, Any] = {"measure": "ndcg", "truncation": None, "normalise": False}
# What the paper's validation chose for Figure 2, for both systems (section 5.4).
LEAVES, RATE = 20, 0.15
SHAPE = {"n_leaves": LEAVES, "learning_rate": RATE}
# How tables name the settings.
TABLE_1 = "paper's own, as in Table 1"
FIGURE_2 = "paper's own, 20 leaves, rate .15 (Figure 2)"
DEFAULTS = "rankgrove's defaults, 20 leaves, rate .15"
NAMES = ("LambdaMART", "McRank")


class System(NamedTuple):
    """A ranker and its parameters, number of rounds apart."""

    ranker: Any
    options: Mapping[str, Any]


def tree_systems(lambdamart_leaves: int) -> dict[str, dict[str, System]]:
    """Return the systems of every setting by name.

    Parameters
    ----------
    lambdamart_leaves : LambdaMART's in Table 1: 10 on artificial data, 15 on Web-1 (section 5.2)
    """
    # The paper trains for NDCG without a cutoff (equation 2 and the text after it).
    lambdamart = PAPERS | {"measure": "ndcg"}
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

    The best round is that of the validation queries' NDCG@10, whatever is trained for.
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
