"""``rankgrove report``: one or several models on one page."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Convention, Reading, Threads, reads_data
from rankgrove.reporting.defaults import DOCUMENTS, MEASURES

Model = Annotated[str, typer.Argument(help="The trained model: FILE, or NAME=FILE.")]
Data = Annotated[
    list[Path],
    typer.Option(
        "--data",
        "-d",
        help="Judged data that no model was trained on: a LETOR file (plain or gzip), or a "
        "CSV/parquet file; repeat for several LETOR files.",
    ),
]
Against = Annotated[
    list[str] | None,
    typer.Option("--against", "-a", help="Another model: FILE, or NAME=FILE; repeat for several."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The page to write.")]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        help="Further judged data, to measure sizes and weights of combinations on: one file, "
        "or several with commas between them; repeat for several sets."
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="What to measure; repeat for several. Models are compared by the first.",
        show_default=" ".join(MEASURES),
    ),
]
Queries = Annotated[
    str | None,
    typer.Option(
        help="Ids of queries whose documents are to be in the page in any case, as in 17,42."
    ),
]
Documents = Annotated[
    int,
    typer.Option(
        min=0,
        help="Documents to put into the page, with ranks, scores and reasons; of larger data, "
        "those of the queries with the largest differences.",
    ),
]
Title = Annotated[str | None, typer.Option(help="Title of the page.", show_default="the models")]


@reads_data("base_score")
def report(
    model: Model,
    data: Data,
    against: Against = None,
    out: Out = Path("report.html"),
    valid: Valid = None,
    measure: Measures = None,
    convention: Convention = "papers",
    queries: Queries = None,
    documents: Documents = DOCUMENTS,
    title: Title = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Put models on one page: measures, queries won and lost, rankings, features, sizes.

    Examples:

    rankgrove report web.rg --data test.txt --out report.html

    rankgrove report old=web.rg --against new=best.rg --data test.txt -m ndcg@10 -m map
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures, named_files, named_sets
    from rankgrove.cli.outputs import check_writable

    measures = measure or list(MEASURES)
    check_measures(measures, convention)
    files = named_files([model, *(against or [])])
    for path in [*files.values(), *data]:
        check_exists(path)
    sets = named_sets(valid or [])
    check_writable(
        "report", {"--out": out}, [*files.values(), *data, *itertools.chain(*sets.values())]
    )
    models = {name: rg.load(path) for name, path in files.items()}
    load = partial(reading.load, n_features=max(one.n_features_in_ for one in models.values()))
    made = rg.report(
        models,
        load(data),
        measures,
        out,
        convention=convention,
        valid={name: load(paths, base_score=None) for name, paths in sets.items()},
        queries=None if queries is None else [one.strip() for one in queries.split(",")],
        n_documents=documents,
        title=title,
        n_threads=threads,
    )
    typer.echo(made.summary)
    typer.echo(f"written to {out} ({len(made.html.encode()) / 1e6:.1f} MB)")
