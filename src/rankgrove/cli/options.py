"""Options that several commands share."""

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
    """The value of features that a row does not mention."""

    zero = "zero"
    missing = "missing"


DEFAULT_MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10", "map", "mrr", "err")

_CONVENTION = (
    "Whose definition of a measure to use where its name leaves details open: papers, letor, mslr, "
    "trec, yahoo, lightgbm, sklearn or ranklib."
)
Convention = Annotated[str, typer.Option(help=_CONVENTION, show_default="papers")]
RunConvention = Annotated[
    str, typer.Option(help=_CONVENTION, show_default="papers; with --qrels, trec")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")
]
READING = "Reading data"  # the title of these options in the help
LabelColumn = Annotated[
    str,
    typer.Option("--label", rich_help_panel=READING, help="Label column of CSV and parquet files."),
]
QidColumn = Annotated[
    str,
    typer.Option(
        "--qid", rich_help_panel=READING, help="Query id column of CSV and parquet files."
    ),
]
DocidColumn = Annotated[
    str | None,
    typer.Option(
        "--docid",
        rich_help_panel=READING,
        help="Document id column of CSV and parquet files.",
        show_default="docid, if there is one",
    ),
]
_FEATURES = "Columns to use as features, as in A,B,C, in CSV and parquet files."
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        "--features",
        rich_help_panel=READING,
        help=_FEATURES,
        show_default="those of the model; without a model, all columns not used otherwise",
    ),
]
AllFeatures = Annotated[
    str | None,
    typer.Option(
        "--features",
        rich_help_panel=READING,
        help=_FEATURES,
        show_default="all columns not used otherwise",
    ),
]
ChosenFeatures = Annotated[
    str | None,
    typer.Option(
        "--features",
        rich_help_panel=READING,
        help=_FEATURES + " Or a file with the number or name of one feature per line, for data of "
        "any format: the model then selects these features whenever it scores.",
        show_default="all columns not used otherwise",
    ),
]
_CATEGORICAL = (
    "Categorical features, by number or name, as in 3,7 or brand,shop. In LETOR text they are "
    "whole numbers from 0. Text columns of CSV and parquet files are categorical by themselves."
)
CategoricalFeatures = Annotated[
    str | None,
    typer.Option(
        "--categorical",
        rich_help_panel=READING,
        help=_CATEGORICAL,
        show_default="those of the model, and columns of text",
    ),
]
CategoricalHere = Annotated[
    str | None,
    typer.Option(
        "--categorical", rich_help_panel=READING, help=_CATEGORICAL, show_default="columns of text"
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight", rich_help_panel=READING, help="Row weight column of CSV and parquet files."
    ),
]
BaseScore = Annotated[
    str | None,
    typer.Option(
        "--base-score",
        rich_help_panel=READING,
        help="Scores of another ranker that the model starts from: a column of a CSV or parquet "
        "file; for LETOR text, a file with one score per line.",
    ),
]
Position = Annotated[
    str | None,
    typer.Option(
        "--position",
        rich_help_panel=READING,
        help="Where documents were shown, for rankers with position_bias: a column of a CSV or "
        "parquet file; for LETOR text, a file with one position per line, as clicks data writes "
        "it.",
        metavar="FILE|COLUMN",
    ),
]
PositionContext = Annotated[
    str | None,
    typer.Option(
        "--position-context",
        rich_help_panel=READING,
        help="Columns of a CSV or parquet file with what positions depend on, as in device,page. "
        "(A file of --position has contexts itself.)",
        metavar="A,B",
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache",
        rich_help_panel=READING,
        help="Keep a binary copy of LETOR files, for faster reading next time.",
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        rich_help_panel=READING,
        help="LETOR files number features from 0; their feature 0 is feature 1 here.",
    ),
]
_ABSENT = "Value of features that a row of LETOR text does not mention."
AbsentFeatures = Annotated[
    Absent | None,
    typer.Option(
        "--absent",
        rich_help_panel=READING,
        help=_ABSENT,
        show_default="as in the model's training data, else zero",
    ),
]
AbsentHere = Annotated[
    Absent | None,
    typer.Option("--absent", rich_help_panel=READING, help=_ABSENT, show_default="zero"),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        rich_help_panel=READING,
        help="Refuse LETOR text with more or fewer features than the model. By default, additional "
        "features are ignored, missing ones get the value of --absent, and a note says so.",
    ),
]
Qrels = Annotated[
    Path | None, typer.Option(help="TREC judgements (qrels), to evaluate runs as trec_eval does.")
]
_FILES = "a model file, a file with one score per line"
_FEATURE = "feature:N (number or name; documents where it is missing come last)"
_SYSTEM = (
    "SOURCE or NAME=SOURCE; repeat for several. SOURCE is {}. The kind of a file is detected from "
    "its content; model:FILE and scores:FILE set it."
)
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        "-s",
        help=_SYSTEM.format(f"{_FILES}, {_FEATURE}, or with --qrels a TREC run"),
    ),
]
ScoredSystems = Annotated[
    list[str] | None,
    typer.Option("--system", "-s", help=_SYSTEM.format(f"{_FILES}, or {_FEATURE}")),
]
Unjudged = Annotated[
    str,
    typer.Option(
        help="Documents of a run without a judgement: irrelevant, condensed (left out of the "
        "ranking) or bounds (also the worst and the best case over their grades)."
    ),
]
MissingQueries = Annotated[
    str,
    typer.Option(
        help="Judged queries that are not in a run: zero (they count as 0, as with trec_eval -c) "
        "or drop (they are left out)."
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


JudgedData = Annotated[
    list[Path] | None,
    typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
]


def default_convention(qrels: Path | None) -> str:
    """Return the default convention of evaluate and compare."""
    return "papers" if qrels is None else "trec"


class Normalisation(StrEnum):
    """How features are normalised within a query."""

    sum = "sum"
    linear = "linear"
    zscore = "zscore"
    percentile = "percentile"


class Transformation(StrEnum):
    """How single values of features are transformed."""

    log1p = "log1p"


class Encoding(StrEnum):
    """How categorical features become numbers."""

    auto = "auto"
    onehot = "onehot"
    target = "target"


Encode = Annotated[
    Encoding | None,
    typer.Option(
        help="Make numbers of categorical features, for rankers that cannot use them. onehot: one "
        "indicator per category; target: the mean label of the category (in training by other "
        "queries); auto: onehot up to 20 categories, target beyond.",
        show_default="no",
    ),
]

Transform = Annotated[
    Transformation | None,
    typer.Option(
        help="Transform every feature value before normalisation. log1p: the logarithm of 1 + "
        "abs(x) with the sign of x, for nets on counts and other values of very different sizes.",
        show_default="no",
    ),
]


Sample = Annotated[
    float | None,
    typer.Option(
        help="Share of the queries that each model of a bag is trained on.", show_default="0.67"
    ),
]
Combine = Annotated[
    str | None,
    typer.Option(
        help="How the scores of a bag's models are combined: minmax, borda or mean.",
        show_default="minmax",
    ),
]


@dataclass(frozen=True)
class Reading:
    """How data files are read: the options of all commands that read data."""

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
    categorical: CategoricalFeatures = None
    position: Position = None
    position_context: PositionContext = None

    def load(self, paths: Sequence[Path], **known: Any) -> QueryDataset:
        """Read a data set; `known` overrides the options, and may add other arguments."""
        from rankgrove.cli.inputs import load_dataset

        return load_dataset(paths, **(asdict(self) | known))

    def load_like(self, first: QueryDataset, paths: Sequence[Path], **known: Any) -> QueryDataset:
        """Read data like a first data set: as many features, absent and categorical ones."""
        from rankgrove.data.file_kinds import is_table

        known["absent"] = None if is_table(paths) else first.absent
        if first.categories:
            columns = [first.feature_names[j] for j in first.categories]
            known["categorical"] = columns if is_table(paths) else list(first.categorical)
        return self.load(paths, n_features=first.n_features, **known)


_OPTIONAL = ("weight", "base_score", "strict", "position", "position_context")


def reads_data(
    *also: str, chooses_features: bool = False, has_model: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter `reading` by the options that make up a `Reading`.

    The options in `_OPTIONAL` are added only if `also` lists them.
    With `chooses_features`, ``--features`` may also be a file. `has_model`: whether the command
    may read a trained model, which knows its features.
    """
    hints = get_type_hints(Reading, include_extras=True)
    if chooses_features:
        hints["features"] = ChosenFeatures
    elif not has_model:
        hints["features"] = AllFeatures
    if not has_model:
        hints["absent"] = AbsentHere
        hints["categorical"] = CategoricalHere
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(Reading)
        if field.name not in _OPTIONAL or field.name in also
    ]

    def expanded(command: Callable[..., None]) -> Callable[..., None]:
        def quiet(**values: Any) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # already said in notes when reading
                command(**values)

        return with_options(command, "reading", options, Reading, run=quiet)

    return expanded


def with_options(
    command: Callable[..., None],
    parameter: str,
    options: Sequence[inspect.Parameter],
    make: Callable[..., Any],
    run: Callable[..., None] | None = None,
) -> Callable[..., None]:
    """Return a command whose `parameter` is replaced by options, from which `make` makes it.

    `run` : what is called in place of the command
    """

    @wraps(command)
    def expanded(**values: Any) -> None:
        made = make(**{option.name: values.pop(option.name) for option in options})
        (run or command)(**{parameter: made}, **values)

    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for param in signature.parameters.values():
        parameters += options if param.name == parameter else [param]
    # Typer reads the options from the signature.
    expanded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return expanded
