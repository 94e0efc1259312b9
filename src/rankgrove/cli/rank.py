"""``rankgrove rank``: scores or a TREC run of a trained model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import (
    BaseScore,
    Cache,
    DocidColumn,
    FeatureColumns,
    LabelColumn,
    QidColumn,
    Threads,
    ZeroBased,
)


class Form(StrEnum):
    """What to write."""

    scores = "scores"
    trec = "trec"


def rank(
    data: Annotated[
        list[Path],
        typer.Argument(help="Data to rank: LETOR files (plain or gzip), or one CSV/parquet file."),
    ],
    model: Annotated[Path, typer.Option(help="Model file.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write.", show_default="standard output"),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="scores: one a line, in row order; trec: a run.")
    ] = Form.scores,
    run_name: Annotated[str, typer.Option(help="trec: the name of the run.")] = "rankgrove",
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    base_score: BaseScore = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
    threads: Threads = None,
) -> None:
    """Score documents by a trained model.

    Examples:

    rankgrove rank test.txt --model web.rg --out scores.txt

    rankgrove rank test.txt --model web.rg --format trec > web.run
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_outputs, load_dataset
    from rankgrove.data.trec_files import run_lines
    from rankgrove.files import write_atomically

    check_outputs({"--out": out}, [*data, model])
    trained = rg.load(model)
    dataset = load_dataset(
        data,
        label=label,
        qid=qid,
        docid=docid,
        features=features,
        base_score=base_score,
        cache=cache,
        zero_based=zero_based,
        models=[trained],
    )
    scores = trained.predict(dataset, n_threads=threads)
    if form is Form.trec:
        text = "".join(run_lines((dataset, scores), run_name))
    else:
        text = "".join(f"{score!r}\n" for score in scores.tolist())
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
