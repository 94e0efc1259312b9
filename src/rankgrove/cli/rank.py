"""``rankgrove rank``: scores of a trained model, or its TREC run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Reading, Threads, reads_data


class Form(StrEnum):
    """Output formats."""

    scores = "scores"
    trec = "trec"


@reads_data("base_score", "strict")
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
        Form, typer.Option("--format", help="scores: one per line, in row order; trec: a TREC run.")
    ] = Form.scores,
    run_name: Annotated[str, typer.Option(help="trec: name of the run.")] = "rankgrove",
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="trec: write only this many documents per query; scoring the others stops early, "
            "which saves time.",
            show_default="all",
        ),
    ] = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Score documents with a trained model.

    Examples:

    rankgrove rank test.txt --model web.rg --out scores.txt

    rankgrove rank test.txt --model web.rg --format trec > web.run

    rankgrove rank test.txt --model web.rg --format trec --top 10 > top.run
    """
    import rankgrove as rg
    from rankgrove.cli.outputs import check_writable, say_written, score_lines
    from rankgrove.data.trec_files import run_lines
    from rankgrove.errors import ParameterError
    from rankgrove.files import write_atomically

    if top is not None and form is not Form.trec:
        raise ParameterError("--top is for runs: add --format trec.")
    check_writable("rank", {"--out": out}, [*data, model])
    trained = rg.load(model)
    dataset = reading.load(data, models={str(model): trained})
    if top is None:
        scores = trained.predict(dataset, n_threads=threads)
    else:
        scores, saved = trained.predict_top(dataset, top, n_threads=threads)
        if saved > 0.0:
            typer.echo(f"{saved:.1%} of the documents' trees were skipped.", err=True)
    if form is Form.trec:
        text = "".join(run_lines((dataset, scores), run_name, top))
    else:
        text = score_lines(scores)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        say_written(out)
