"""``rankgrove early-exit``: faster top documents, at a bounded loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import Convention, Reading, Threads, reads_data

if TYPE_CHECKING:
    from rankgrove import EarlyExitRanker


@reads_data("base_score")
def early_exit(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA... MODEL",
            help="Judged data that the model was not trained on, with as many documents per query "
            "as will be scored; and the trained model, one sum of trees.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the model to.")],
    measure: Annotated[
        str,
        typer.Option(
            "--measure", "-m", help="Measure with a cutoff, whose loss is bounded: ndcg@10."
        ),
    ] = "ndcg@10",
    max_loss: Annotated[
        float, typer.Option(min=0.0, help="Greatest loss of the measure's mean.")
    ] = 0.0005,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Confidence of the bound of the loss.")
    ] = 0.95,
    convention: Convention = "papers",
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Learn when scoring of a document may stop, so that the first documents are found faster.

    'rankgrove rank --top', 'rankgrove serve' with top_k, and predict_top in Python use the rule.

    Examples:

    rankgrove early-exit vali.txt web.rg --measure ndcg@10 --max-loss 0.0005 --out fast.rg

    rankgrove rank test.txt --model fast.rg --format trec --top 10 --out top.run
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_measures, model_and_data
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.measures.parse import measure as parse_measure

    model, data = model_and_data("early-exit", files)
    check_measures([measure], convention)
    check_writable("early-exit", {"--out": out}, files)
    trained = rg.load(model)
    judged = reading.load(data, models={str(model): trained})
    fast = rg.EarlyExitRanker(
        trained,
        parse_measure(measure, convention),
        max_loss=max_loss,
        confidence=confidence,
        n_threads=threads,
    ).fit(judged)
    fast.save(out)
    typer.echo(str(fast.certificate_))
    if not fast.certificate_.saved:
        typer.echo(_why_none(fast))
    say_written(out)


def _why_none(fast: EarlyExitRanker) -> str:
    """Return why no documents are left out, and what helps."""
    from rankgrove.scoring.lanes import chunk_ends
    from rankgrove.validation import counted

    trees = fast.flat()
    if trees is not None and chunk_ends(trees.n_trees).size < 2:
        return (
            f"Scoring may first stop after 32 trees, and the model has "
            f"{counted(trees.n_trees, 'tree')}: early exit is for larger models."
        )
    short = "Queries of fewer than 64 documents are always scored to the end."
    if fast.exits_ is None:
        return (
            "No rule had a small enough bound of the loss: give more queries or a larger "
            f"--max-loss. ({short})"
        )
    return f"{short} Give queries with as many documents as will be scored."
