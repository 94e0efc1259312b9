"""Options that several commands share, written once."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankgrove.errors import DataWarning

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset


class Absent(StrEnum):
    """What a feature is that a row does not mention."""

    zero = "zero"
    missing = "missing"


DEFAULT_MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10", "map", "mrr", "err")

_CONVENTION = (
    "What measures' names do not say: papers, letor, mslr, trec, yahoo, lightgbm, sklearn or "
    "ranklib."
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
_FEATURES = "Columns to use as features, as in A,B,C, in CSV and parquet files."
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        "--features",
        help=_FEATURES,
        show_default="all without another role",
    ),
]
ChosenFeatures = Annotated[
    str | None,
    typer.Option(
        "--features",
        help=_FEATURES + " Or a file with the number or name of one feature a line, for data of "
        "any form: the model chooses them wherever it scores.",
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
AbsentFeatures = Annotated[
    Absent | None,
    typer.Option(
        "--absent",
        help="What a feature is that a row of LETOR text does not mention.",
        show_default="as in the model's training data, else zero",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse LETOR text that has more or fewer features than the model; otherwise further "
        "ones are left out, those that it lacks are absent, and a line says so.",
    ),
]
Qrels = Annotated[
    Path | None, typer.Option(help="TREC judgements, to evaluate runs against as trec_eval does.")
]
_SYSTEM = (
    "SOURCE or NAME=SOURCE. SOURCE is the file of a model, feature:N (number or name; documents "
    "where it is missing come last), or a file with one score a line{}. What a file holds shows in "
    "its content; model:FILE and scores:FILE say it."
)
Systems = Annotated[
    list[str] | None,
    typer.Option("--system", "-s", help=_SYSTEM.format(", or with --qrels a TREC run")),
]
ScoredSystems = Annotated[list[str] | None, typer.Option("--system", "-s", help=_SYSTEM.format(""))]
MissingQueries = Annotated[
    str,
    typer.Option(
        help="Judged queries that a run lacks: zero (they count 0, as trec_eval -c) or drop."
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", "--json", help="Also write everything to this JSON file."),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="Picture to write (png, svg or pdf; needs matplotlib)."),
]


class Normalisation(StrEnum):
    """How features are normalised within a query."""

    sum = "sum"
    linear = "linear"
    zscore = "zscore"


Sample = Annotated[
    float | None,
    typer.Option(help="Share of the queries that a model of a bag sees.", show_default="0.67"),
]
Combine = Annotated[
    str | None,
    typer.Option(
        help="How a bag's scores are made one: minmax, borda or mean.", show_default="minmax"
    ),
]


@dataclass(frozen=True)
class Reading:
    """How data files are read: the options of every command that reads some."""

    label: LabelColumn = "label"
    qid: QidColumn = "qid"
    docid: DocidColumn = None
    features: FeatureColumns = None
    weight: WeightColumn = None
    base_score: BaseScore = None
    cache: Cache = False
    zero_based: ZeroBased = False
    absent: AbsentFeatures = None
    strict: Strict = False

    def load(self, paths: Sequence[Path], **known: Any) -> QueryDataset:
        """Read a data set; `known` comes before the options, and may say what they cannot."""
        from rankgrove.cli.inputs import load_dataset

        return load_dataset(paths, **(asdict(self) | known))

    def load_like(self, first: QueryDataset, paths: Sequence[Path], **known: Any) -> QueryDataset:
        """Read data that goes with a first data set: as wide, absent features meaning the same."""
        from rankgrove.data.file_kinds import is_table

        known["absent"] = None if is_table(paths) else first.absent
        return self.load(paths, n_features=first.n_features, **known)


_SOME = ("weight", "base_score", "strict")


def reads_data(
    *also: str, chooses_features: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its parameter `reading`, the options that make a `Reading`.

    Options of `_SOME` mean nothing to many commands, which take them only where `also` says.
    With `chooses_features`, ``--features`` may also be a file.
    """
    hints = get_type_hints(Reading, include_extras=True)
    if chooses_features:
        hints["features"] = ChosenFeatures
    taken = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
        for one in fields(Reading)
        if one.name not in _SOME or one.name in also
    ]

    def expanded(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            reading = Reading(**{one.name: given.pop(one.name) for one in taken})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # said in lines, when data was read
                command(reading=reading, **given)

        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for one in own.parameters.values():
            parameters += taken if one.name == "reading" else [one]
        # Typer makes its options of the signature.
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return expanded
