"""``rankgrove auto``: the best ranker for some data within a time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Reading, Threads, reads_data
from rankgrove.errors import ParameterError
from rankgrove.files import real_path


@reads_data("weight", has_model=False)
def auto(
    data: Annotated[
        list[Path],
        typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", "--model", help="Model file to write.")],
    valid: Annotated[
        list[str] | None,
        typer.Option(
            help="More judged data, such as validation data: its queries join those of the folds. "
            "Repeat for several sets; a set of several LETOR files is written A,B,C.",
            metavar="FILE",
        ),
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Measure to maximise.")] = (
        "ndcg@10"
    ),
    minutes: Annotated[
        float | None, typer.Option(help="Time limit.", show_default="10, without --fits")
    ] = None,
    fits: Annotated[
        int | None,
        typer.Option(
            "--fits",
            "--n-fits",
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
            help="Maximum time of scoring one document, on one thread of this machine, 100 "
            "documents at a time.",
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
            help="File with one value per query of DATA, in its order: queries of equal values "
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
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML page to write: leaderboard, choice, search over time, parameters.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no progress bar, no leaderboard and no estimate.")
    ] = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Find the best ranker for your data within a time limit.

    Many rankers are cross-fitted, tuned and combined.
    Everything is chosen by scores of queries that a model was not trained on.
    An estimate for new queries is printed at the end.

    Examples:

    rankgrove auto train.txt --minutes 10 --out best.rg --report best.html

    rankgrove auto train.txt --valid vali.txt -m map --minutes 10 --out best.rg

    rankgrove auto train.txt --exportable --max-trees 500 --out best.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures, named_sets
    from rankgrove.cli.outputs import (
        check_writable,
        one_interrupt,
        say_written,
        says_what_is_kept,
    )
    from rankgrove.data.file_kinds import is_table

    for path in [*data, *([] if group is None else [group])]:
        check_exists(path)
    sets = named_sets(valid or [])
    read = [*data, *(path for paths in sets.values() for path in paths), group]
    check_writable("auto", {"--out": out, "--report": report}, read)
    check_measures([measure], "papers")
    _refuse_read_twice(data, sets)
    if minutes is not None and fits is not None:
        raise ParameterError("--minutes and --fits are both limits: give one of them.")
    train = reading.load(data)
    more = {
        name: reading.load_like(
            train, paths, features=train.given_names if is_table(paths) else None
        )
        for name, paths in sets.items()
    }
    ranker = rg.AutoRanker(
        measure,
        minutes=minutes,
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
    with says_what_is_kept("fits", checkpoint, "--checkpoint FOLDER"), one_interrupt():
        try:
            ranker.fit(train, valid=more or None)
        except KeyboardInterrupt:  # keep the best model so far, if there is one
            if not hasattr(ranker, "model_"):
                raise
        ranker.save(out)
        if report is not None:
            rg.report(ranker, out=report)
    if not quiet:
        typer.echo(str(ranker.leaderboard_))
        typer.echo(ranker.explain_choice())
        say_written(out, report)
    if ranker.interrupted_:
        typer.echo(f"interrupted: {out} holds the best model so far.", err=True)
        raise typer.Exit(130)


def _refuse_read_twice(data: list[Path], sets: Mapping[str, Sequence[Path]]) -> None:
    known = {real_path(path) for path in data}
    for path in (path for paths in sets.values() for path in paths):
        if real_path(path) in known:
            raise ParameterError(
                f"--valid {path} is read already: its queries are in the folds. Leave it out."
            )
        known.add(real_path(path))


def _lines(path: Path, n_queries: int) -> list[str]:
    values = path.read_text().split("\n")
    values = values[:-1] if values and not values[-1] else values
    if len(values) != n_queries:
        raise ParameterError(
            f"--group: {path} has {len(values):,} lines, and the data has {n_queries:,} queries: "
            "one line per query, in the order of the data."
        )
    return values
