"""``rankgrove rank``: scores of a trained model, its TREC run, or a table of ranked documents."""

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
    table = "table"


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
        Form | None,
        typer.Option(
            "--format",
            help="scores: one per line, in row order; trec: a TREC run; table: a CSV, parquet or "
            "arrow file with query, document, rank and score.",
            show_default="table if the name of --out ends so, else scores",
        ),
    ] = None,
    run_name: Annotated[str, typer.Option(help="trec: name of the run.")] = "rankgrove",
    relevance: Annotated[
        bool,
        typer.Option(
            "--relevance",
            help="Expected grades, of a model of 'rankgrove calibrate'. scores: instead of scores; "
            "table: as a column.",
        ),
    ] = False,
    min_relevance: Annotated[
        float | None,
        typer.Option(
            help="trec, table: leave out documents whose expected grade is lower (needs a model of "
            "'rankgrove calibrate').",
            show_default="none is left out",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="trec, table: write only this many documents per query; scoring the others stops "
            "early, which saves time.",
            show_default="all",
        ),
    ] = None,
    with_features: Annotated[
        bool, typer.Option("--with-features", help="table: write the features too.")
    ] = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Score documents with a trained model.

    Examples:

    rankgrove rank test.txt --model web.rg --out scores.txt

    rankgrove rank test.txt --model web.rg --format trec > web.run

    rankgrove rank test.txt --model web.rg --format trec --top 10 > top.run

    rankgrove rank test.txt --model web.rg --out ranked.parquet

    rankgrove rank test.txt --model calibrated.rg --relevance --out grades.txt
    """
    import numpy as np

    import rankgrove as rg
    from rankgrove.cli.outputs import check_writable, say_written, score_lines
    from rankgrove.data.trec_files import run_lines
    from rankgrove.errors import ParameterError
    from rankgrove.files import write_atomically
    from rankgrove.rankers.ensembles.early_exit import calibrated_in

    form = _checked_form(form, out, top, with_features)
    if relevance and form is Form.trec:
        raise ParameterError("--relevance is for scores and tables; for runs, see --min-relevance.")
    if min_relevance is not None and form is Form.scores:
        raise ParameterError(
            "--min-relevance is for runs and tables: add --format trec, or --out ranked.csv."
        )
    check_writable("rank", {"--out": out}, [*data, model])
    trained = rg.load(model)
    calibrated = calibrated_in(trained)
    if (relevance or min_relevance is not None) and calibrated is None:
        raise ParameterError(
            f"{model} has scores without a scale: --relevance and --min-relevance need a model of "
            "'rankgrove calibrate'."
        )
    dataset = reading.load(data, models={str(model): trained}, judged=False)
    if top is None:
        scores = trained.predict(dataset, n_threads=threads)
    else:
        scores, saved = trained.predict_top(dataset, top, n_threads=threads)
        if saved > 0.0:
            typer.echo(f"{saved:.1%} of the documents' trees were skipped.", err=True)
    expected = None
    if calibrated is not None and (relevance or min_relevance is not None):
        expected = calibrated.relevance_of(scores).expected
        if min_relevance is not None:  # a document with this score is not written
            scores = np.where(expected >= min_relevance, scores, -np.inf)
    if form is Form.table and out is not None:
        from rankgrove.operations.ranking import table_of_scores

        column = expected if relevance else None
        table_of_scores(dataset, scores, top, with_features, column).write(out)
        say_written(out)
        return
    if form is Form.trec:
        text = "".join(run_lines((dataset, scores), run_name, top))
    else:
        text = score_lines(scores if expected is None else expected)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        say_written(out)


def _checked_form(form: Form | None, out: Path | None, top: int | None, features: bool) -> Form:
    """Return the form to write; refuse options that belong to another."""
    from rankgrove.errors import ParameterError
    from rankgrove.frames import WRITTEN_ENDINGS, check_table_name, library

    if form is None:
        is_named = out is not None and out.name.lower().endswith(WRITTEN_ENDINGS)
        form = Form.table if is_named else Form.scores
    if top is not None and form is Form.scores:
        raise ParameterError("--top is for runs and tables: add --format trec, or --out top.csv.")
    if features and form is not Form.table:
        raise ParameterError("--with-features is for tables: write one, such as --out ranked.csv.")
    if form is Form.table:
        if out is None:
            raise ParameterError("A table is written to a file: add --out ranked.csv.")
        check_table_name(out, "a ranking")
        library("pyarrow", "Writing a ranking")
    return form
