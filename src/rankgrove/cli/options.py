"""Options that several commands share, written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10", "map", "mrr", "err")

_CONVENTION = (
    "What measures' names do not say: papers, letor, mslr, trec, yahoo, lightgbm or sklearn."
)
Convention = Annotated[str, typer.Option(help=_CONVENTION, show_default="papers")]
RunConvention = Annotated[
    str, typer.Option(help=_CONVENTION, show_default="papers; with --qrels, trec")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use.", show_default="all cores")
]
LabelColumn = Annotated[
    str, typer.Option("--label", help="Column of the labels, in CSV and parquet files.")
]
QidColumn = Annotated[
    str, typer.Option("--qid", help="Column of the query ids, in CSV and parquet files.")
]
DocidColumn = Annotated[
    str | None,
    typer.Option(
        "--docid",
        help="Column of the document ids, in CSV and parquet files.",
        show_default="docid, where there is one",
    ),
]
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Columns to use as features, as in A,B,C, in CSV and parquet files.",
        show_default="all without another role",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option("--weight", help="Column of the rows' weights, in CSV and parquet files."),
]
BaseScore = Annotated[
    str | None,
    typer.Option(
        "--base-score",
        help="Scores for a model to go on from: a column of a CSV or parquet file; for LETOR text "
        "a file with one score a line.",
    ),
]
Cache = Annotated[
    bool, typer.Option("--cache", help="Keep a binary copy of LETOR files for the next time.")
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        help="LETOR files count features from 0; their 0 is feature 1 here.",
    ),
]
Qrels = Annotated[
    Path | None, typer.Option(help="TREC judgements, to evaluate runs against as trec_eval does.")
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Also write everything to this JSON file.")
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="Picture to write (png, svg or pdf; needs matplotlib)."),
]
