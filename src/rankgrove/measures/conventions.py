"""Named conventions, which make figures comparable with those of papers and other programs.

A convention has values for parameters of measures; a measure uses those for the parameters it has.
Entries with a dot are for one measure only.
"""

from __future__ import annotations

from typing import Any

from rankgrove.validation import check_choice

# papers    LambdaMART papers: gain 2^l - 1, without queries whose labels are all equal
# letor     LETOR 3.0/4.0's script: no discount for rank 2, NDCG@k 0 for a query of fewer than k
# mslr      LETOR's script as changed for MSLR-WEB: relevant from label 2 on
# trec      trec_eval: the grade is the gain; rows must be in trec_eval's tie order
# yahoo     Yahoo! learning to rank challenge: five grades, NDCG 0.5 where nothing is relevant
# lightgbm  LightGBM and XGBoost: NDCG and MAP 1 where nothing is relevant, ties in input order
# sklearn   scikit-learn: the grade is the gain, ties averaged; average_precision_score and
#           label_ranking_average_precision_score put tied documents at their group's last rank
# ranklib   RankLib: everything 0 where nothing is relevant, ties in input order, P@k over at most
#           as many documents as there are, ERR on five grades
CONVENTIONS: dict[str, dict[str, Any]] = {
    "papers": {
        "gain": "exp2",
        "discount": "log2",
        "empty": "drop-equal",
        "short": "keep",
        "relevant": 1.0,
        "max_grade": None,
        "denominator": "all",
        "p.denominator": "cutoff",
        "ties": "expected",
        "kendall.ties": "together",
        "spearman.ties": "together",
        "judged.empty": 0.0,
        "p": 0.8,
        "pfound.gain": "identity",
        "decay": 0.85,
    },
    "letor": {"discount": "letor", "empty": 0.0, "short": "zero", "ties": "stable"},
    "mslr": {
        "discount": "letor",
        "empty": 0.0,
        "short": "zero",
        "ties": "stable",
        "relevant": 2.0,
        "max_grade": 4.0,
    },
    "trec": {"gain": "identity", "empty": 0.0, "ties": "stable"},
    "yahoo": {"empty": 0.0, "ndcg.empty": 0.5, "meanndcg.empty": 0.5, "max_grade": 4.0},
    "lightgbm": {
        "empty": 0.0,
        "ndcg.empty": 1.0,
        "meanndcg.empty": 1.0,
        "map.empty": 1.0,
        "denominator": "cutoff",
        "ties": "stable",
    },
    "sklearn": {"gain": "identity", "empty": 0.0, "map.ties": "together"},
    "ranklib": {"empty": 0.0, "ties": "stable", "p.denominator": "documents", "max_grade": 4.0},
}

# These have no value for a query without a pair of unequal labels.
_ALWAYS_DROPPED = ("auc", "pairs", "kendall", "spearman")


def convention_parameters(convention: str, measure_name: str, names: set[str]) -> dict[str, Any]:
    """Return the values that `convention` has for the parameters `names` of a measure."""
    check_choice("convention", "measure", convention, CONVENTIONS)
    settings = CONVENTIONS["papers"] | CONVENTIONS[convention]
    values = {name: value for name, value in settings.items() if name in names}
    of_measure = {
        key.partition(".")[2]: value
        for key, value in settings.items()
        if key.startswith(measure_name + ".")
    }
    values |= {name: value for name, value in of_measure.items() if name in names}
    if measure_name in _ALWAYS_DROPPED and values["empty"] != "drop-equal":
        values["empty"] = "drop"
    return values
