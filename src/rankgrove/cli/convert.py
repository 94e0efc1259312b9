"""``rankgrove convert``: models in the formats of other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import ParameterError
from rankgrove.formats.endings import FORMAT_OF
from rankgrove.formats.targets import TARGETS

_BY_ENDING = [
    ending if name == ending[1:] else f"{ending} {name}" for ending, name in FORMAT_OF.items()
]


class To(StrEnum):
    """Formats that can be written."""

    lightgbm = "lightgbm"
    xgboost = "xgboost"
    ranklib = "ranklib"
    solr = "solr"
    elasticsearch = "elasticsearch"
    opensearch = "opensearch"
    elasticsearch_native = "elasticsearch-native"
    vespa = "vespa"
    onnx = "onnx"
    python = "python"
    c = "c"
    rankgrove = "rankgrove"


class Missing(StrEnum):
    """What becomes of missing values in another program."""

    refuse = "refuse"
    zero = "zero"
    keep = "keep"


class Combine(StrEnum):
    """How a bag is written."""

    mean = "mean"


def convert(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="Model file: rankgrove's, LightGBM's (text, dumped JSON), XGBoost's (JSON, UBJ, "
            "dumped JSON), RankLib's, QuickRank's, Solr's.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="File to write.", show_default=False)
    ] = None,
    out_option: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write, instead of OUT.")
    ] = None,
    to: Annotated[
        To | None,
        typer.Option(
            help="Format to write.",
            show_default=f"by the ending: {', '.join(_BY_ENDING)}",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="File with the names of all features, one per line; for a JSON dump of XGBoost, "
            "in the order of its training data's columns.",
            show_default="the model's own, or f1, f2, ...",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in the search engine.", show_default="the name of OUT"
        ),
    ] = None,
    shift: Annotated[
        bool | None,
        typer.Option(
            "--shift/--no-shift",
            help="Add a constant so that no score is negative.",
            show_default="shift for elasticsearch and opensearch",
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="Where the model sends missing values is kept, and refused if the program cannot "
            "do that (refuse); or splits are added where the program needs them (keep); or missing "
            "values count as 0, whatever the model learned (zero)."
        ),
    ] = Missing.refuse,
    combine: Annotated[
        Combine | None,
        typer.Option(
            help="For a bag that scales scores within every query: write the plain mean of its "
            "models, which is a different ranking.",
            show_default="as the bag combines them",
        ),
    ] = None,
    base_score: Annotated[
        float | None,
        typer.Option(
            help="XGBoost's base_score, which a JSON dump does not contain.",
            show_default="0",
        ),
    ] = None,
    expand_categories: Annotated[
        bool,
        typer.Option(
            "--expand-categories",
            help="Replace every categorical feature by one feature per category (1 or 0), for "
            "programs that cannot hold sets of categories: ranklib, solr, elasticsearch, "
            "opensearch, elasticsearch-native.",
        ),
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Search engine and version that reads the file, as missing values are not the "
            f"same to all: {', '.join(TARGETS)}, or another version, as opensearch-2.19.",
            show_default="the newest of the format",
        ),
    ] = None,
    feature_set: Annotated[
        Path | None,
        typer.Option(
            help="For a search engine: also write a skeleton of the definitions of the features.",
            show_default=False,
        ),
    ] = None,
    relevance: Annotated[
        float | None,
        typer.Option(
            help="For a model of 'rankgrove calibrate --method sigmoid': write the probability of "
            "this grade or a higher one, instead of scores.",
            show_default="the model's own scores",
        ),
    ] = None,
) -> None:
    """Write a model in the format of another program.

    Examples:

    rankgrove convert lightgbm.txt web.rg

    rankgrove convert web.rg web.onnx

    rankgrove convert web.rg web.json --to elasticsearch --features names.txt --missing zero

    rankgrove convert web.rg web.json --engine opensearch-3.1 --feature-set features.json
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, read_names
    from rankgrove.cli.outputs import check_outputs, say_written

    if (out is None) == (out_option is None):
        raise ParameterError("Name one file to write, as in 'rankgrove convert web.rg web.onnx'.")
    out = out or out_option
    assert out is not None
    check_exists(model)
    check_outputs({"OUT": out, "--feature-set": feature_set}, [model, features])
    rg.convert(
        model,
        out,
        None if to is None else to.value,
        features=None if features is None else read_names(features),
        name=name,
        shift=shift,
        missing=missing.value,
        combine=None if combine is None else combine.value,
        base_score=base_score,
        expand_categories=expand_categories,
        engine=engine,
        feature_set=feature_set,
        relevance=relevance,
    )
    say_written(out)
    if feature_set is not None:
        say_written(feature_set)
