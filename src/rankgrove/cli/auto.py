"""``rankgrove auto``: the best ranker for some data within a time limit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Reading, Threads, reads_data
from rankgrove.errors import ParameterError


@reads_data("weight")
def auto(
    data: Annotated[
        list[Path],
        typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", "--model", help="Model file to write.")],
    measure: Annotated[str, typer.Option("--measure", "-m", help="Measure to maximise.")] = (
        "ndcg@10"
    ),
    minutes: Annotated[
        float | None, typer.Option(help="Time limit.", show_default="10, without --fits")
    ] = None,
    fits: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of fits, in place of a time limit; the result is reproducible.",
            show_default=False,
        ),
    ] = None,
    max_trees: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of trees of the model.", show_default="no limit"),
    ] = None,
    max_microseconds: Annotated[
        float | None,
        typer.Option(
            help="Maximum time of scoring one document, on one thread of this machine.",
            show_default="no limit",
        ),
    ] = None,
    exportable: Annotated[
        bool,
        typer.Option(
            "--exportable", help="Keep to one sum of trees, which rankgrove convert can write."
        ),
    ] = False,
    group: Annotated[
        Path | None,
        typer.Option(
            help="File with one value per query, in the order of the data: queries of equal values "
            "(those of a user, say) are never divided between training and validation.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps every fit; a search that was ended resumes from it."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Train on the workers of a Dask cluster: local (processes of this machine), or a "
            "scheduler's address.",
            metavar="tcp://HOST:PORT",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no progress bar and no leaderboard.")
    ] = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Find the best ranker for your data within a time limit.

    Many rankers are cross-fitted, tuned and combined. Everything is chosen by scores of queries
    that a model was not trained on. An estimate for new queries is printed at the end.

    Examples:

    rankgrove auto train.txt --minutes 10 --out best.rg

    rankgrove auto train.txt -m map --minutes 10 --cluster local --out best.rg

    rankgrove auto train.txt --exportable --max-trees 500 --out best.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures
    from rankgrove.cli.outputs import check_writable, say_written

    for path in [*data, *([] if group is None else [group])]:
        check_exists(path)
    check_writable("auto", {"--out": out}, data)
    check_measures([measure], "papers")
    if minutes is not None and fits is not None:
        raise ParameterError("--minutes and --fits are both limits: give one of them.")
    train = reading.load(data)
    ranker = rg.AutoRanker(
        measure,
        minutes=(10.0 if minutes is None else minutes) if fits is None else None,
        n_fits=fits,
        max_trees=max_trees,
        max_microseconds=max_microseconds,
        exportable=exportable,
        group=None if group is None else _lines(group, train.n_queries),
        cluster=cluster,
        checkpoint=checkpoint,
        random_state=seed,
        n_threads=threads,
        progress=not quiet,
    )
    interrupted = False
    try:
        ranker.fit(train)
    except KeyboardInterrupt:
        if not hasattr(ranker, "model_"):
            raise
        interrupted = True
    ranker.save(out)
    if not quiet:
        typer.echo(str(ranker.leaderboard_))
        typer.echo(ranker.explain_choice())
    if interrupted:
        typer.echo("The search was interrupted: this is the best model so far.", err=True)
    say_written(out)


def _lines(path: Path, n_queries: int) -> list[str]:
    values = path.read_text().split("\n")
    values = values[:-1] if values and not values[-1] else values
    if len(values) != n_queries:
        raise ParameterError(
            f"--group: {path} has {len(values):,} lines, and the data has {n_queries:,} queries: "
            "one line per query, in the order of the data."
        )
    return values
