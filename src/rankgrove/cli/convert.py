"""``rankgrove convert``: a model from one program to another."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import ParameterError


class To(StrEnum):
    """Formats that are written."""

    lightgbm = "lightgbm"
    xgboost = "xgboost"
    ranklib = "ranklib"
    solr = "solr"
    elasticsearch = "elasticsearch"
    onnx = "onnx"
    python = "python"
    c = "c"
    rankgrove = "rankgrove"


class Missing(StrEnum):
    """What becomes of missing values where a program takes 0 for them."""

    refuse = "refuse"
    zero = "zero"


class Combine(StrEnum):
    """What is written of a bag."""

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
        Path | None, typer.Option("--out", "-o", help="File to write, as OUT.")
    ] = None,
    to: Annotated[
        To | None,
        typer.Option(
            help="What to write.",
            show_default="by the ending: .txt lightgbm, .xml ranklib, .onnx, .py, .c, .rg",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="File with the names of all features, one a line. Of a dump of XGBoost, in the "
            "order of its columns.",
            show_default="the model's own, or f1, f2, ...",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in Solr or Elasticsearch.", show_default="the name of OUT"
        ),
    ] = None,
    shift: Annotated[
        bool | None,
        typer.Option(
            "--shift/--no-shift",
            help="Add a constant so that no score is negative.",
            show_default="shift for elasticsearch",
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="Where ranklib, solr and elasticsearch take 0 for a missing value and the model "
            "learned otherwise: refuse, or let them (zero)."
        ),
    ] = Missing.refuse,
    combine: Annotated[
        Combine | None,
        typer.Option(
            help="Of a bag that scales scores within every query, write the plain mean of its "
            "models: another ranking.",
            show_default="as the bag does",
        ),
    ] = None,
    base_score: Annotated[
        float | None,
        typer.Option(
            help="What the scores of a dump of XGBoost begin with: it does not say.",
            show_default="0",
        ),
    ] = None,
) -> None:
    """Write a model in the format of another program.

    Examples:

    rankgrove convert lightgbm.txt web.rg

    rankgrove convert web.rg web.onnx

    rankgrove convert web.rg web.json --to elasticsearch --features names.txt --missing zero
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, read_names
    from rankgrove.cli.outputs import check_outputs, say_written

    if (out is None) == (out_option is None):
        raise ParameterError("Name one file to write, as in 'rankgrove convert web.rg web.onnx'.")
    out = out or out_option
    assert out is not None
    check_exists(model)
    check_outputs({"OUT": out}, [model, features])
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
    )
    say_written(out)
