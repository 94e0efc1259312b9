"""``rankgrove rank``: scores of a trained model, or its TREC run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import Reading, Threads, reads_data

if TYPE_CHECKING:
    from rankgrove.rankers.ensembles.calibrated import CalibratedRanker


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
    relevance: Annotated[
        bool,
        typer.Option(
            "--relevance",
            help="scores: write expected grades instead (needs a model of 'rankgrove calibrate').",
        ),
    ] = False,
    min_relevance: Annotated[
        float | None,
        typer.Option(
            help="trec: leave out documents whose expected grade is lower (needs a model of "
            "'rankgrove calibrate').",
            show_default="none is left out",
        ),
    ] = None,
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

    rankgrove rank test.txt --model calibrated.rg --relevance --out grades.txt
    """
    import rankgrove as rg
    from rankgrove.cli.outputs import check_writable, say_written, score_lines
    from rankgrove.data.trec_files import run_lines, run_of_scores
    from rankgrove.errors import ParameterError
    from rankgrove.files import write_atomically

    if top is not None and form is not Form.trec:
        raise ParameterError("--top is for runs: add --format trec.")
    if relevance and form is Form.trec:
        raise ParameterError("--relevance is for --format scores; for runs, see --min-relevance.")
    if min_relevance is not None and form is not Form.trec:
        raise ParameterError("--min-relevance is for runs: add --format trec.")
    check_writable("rank", {"--out": out}, [*data, model])
    trained = rg.load(model)
    if (relevance or min_relevance is not None) and not isinstance(trained, rg.CalibratedRanker):
        raise ParameterError(
            f"{model} has scores without a scale: --relevance and --min-relevance need a model of "
            "'rankgrove calibrate'."
        )
    dataset = reading.load(data, models={str(model): trained})
    if top is None:
        scores = trained.predict(dataset, n_threads=threads)
    else:
        scores, saved = trained.predict_top(dataset, top, n_threads=threads)
        if saved > 0.0:
            typer.echo(f"{saved:.1%} of the documents' trees were skipped.", err=True)
    if form is Form.trec:
        run: Mapping[str, Mapping[str, float]] = run_of_scores(dataset, scores)
        if min_relevance is not None:
            run = _at_least(min_relevance, run, trained)
        text = "".join(run_lines(run, run_name, top))
    elif relevance:
        text = score_lines(trained.relevance_of(scores).expected)
    else:
        text = score_lines(scores)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        say_written(out)


def _at_least(
    grade: float, run: Mapping[str, Mapping[str, float]], model: CalibratedRanker
) -> dict[str, dict[str, float]]:
    """Return a run without the documents whose expected grade is below `grade`."""
    import numpy as np

    left: dict[str, dict[str, float]] = {}
    for query, documents in run.items():
        expected = model.relevance_of(np.array(list(documents.values()))).expected
        kept = zip(documents.items(), expected.tolist(), strict=True)
        left[query] = {name: score for (name, score), value in kept if value >= grade}
    return left
