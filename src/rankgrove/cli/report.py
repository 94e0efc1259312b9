"""``rankgrove report``: an HTML page that compares models, features and scores."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Convention, Reading, ScoredSystems, Threads, reads_data
from rankgrove.errors import ParameterError
from rankgrove.reporting.defaults import DOCUMENTS, MEASURES

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Judged data that no model was trained on: LETOR files (plain or gzip), or one "
        "CSV/parquet file.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The page to write.")]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        help="Further judged data, for the sections on model sizes and on weights of combinations: "
        "one file, or several separated by commas; repeat for several sets."
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="Measure to compute; repeat for several. Models are compared by the first.",
        show_default=" ".join(MEASURES),
    ),
]
Queries = Annotated[
    str | None,
    typer.Option(
        help="Ids of queries whose documents are always included in the page, as in 17,42."
    ),
]
Documents = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of documents in the page, with ranks, scores and feature contributions; for "
        "larger data, those of the queries with the largest differences.",
    ),
]
Title = Annotated[
    str | None, typer.Option(help="Title of the page.", show_default="the models' names")
]
Clicks = Annotated[
    Path | None,
    typer.Option(
        help="A click log with the columns session, query, document, position and click, for a "
        "section on clicks and on what models learned about positions; 'rankgrove clicks convert' "
        "makes it of others.",
        metavar="LOG",
    ),
]


@reads_data("base_score", "strict")
def report(
    data: Data,
    system: ScoredSystems = None,
    out: Out = Path("report.html"),
    valid: Valid = None,
    measure: Measures = None,
    convention: Convention = "papers",
    queries: Queries = None,
    documents: Documents = DOCUMENTS,
    title: Title = None,
    clicks: Clicks = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Write an HTML page on systems: measures, queries won and lost, rankings, features, sizes.

    The other systems are compared with the first.

    Examples:

    rankgrove report test.txt -s web.rg --out report.html

    rankgrove report test.txt -s bm25=feature:25 -s new=web.rg -m ndcg@10 -m map --out report.html
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import (
        check_exists,
        check_measures,
        load_systems,
        named_sets,
        parse_sources,
    )
    from rankgrove.cli.outputs import check_writable

    measures = measure or list(MEASURES)
    check_measures(measures, convention)
    models, files = _split_arguments(data)
    sources = parse_sources([*models, *(system or [])])
    if not sources or not files:
        raise ParameterError(
            "Give the judged data and at least one system, as in 'rankgrove report test.txt "
            "-s bm25=feature:25 -s new=web.rg'; the others are compared with the first."
        )
    for path in files:
        check_exists(path)
    sets = named_sets(valid or [])
    inputs = [
        *files,
        *([] if clicks is None else [clicks]),
        *(s.file for s in sources.values()),
        *itertools.chain(*sets.values()),
    ]
    check_writable("report", {"--out": out}, inputs)
    log = None if clicks is None else rg.read_clicks(clicks)
    systems, judged = load_systems(sources, files, None, reading)
    load = partial(reading.load_like, judged, base_score=None)
    page = rg.report(
        systems,
        judged,
        measures,
        out,
        convention=convention,
        valid={name: load(paths) for name, paths in sets.items()},
        queries=None if queries is None else [query.strip() for query in queries.split(",")],
        n_documents=documents,
        title=title,
        n_threads=threads,
        clicks=log,
    )
    typer.echo(page.summary)
    typer.echo(f"written to {out} ({len(page.html.encode()) / 1e6:.1f} MB)")


def _split_arguments(texts: list[str]) -> tuple[list[str], list[Path]]:
    """Return models, which were arguments in the old spelling, and the files of judged data."""
    from rankgrove.cli.inputs import hint
    from rankgrove.formats.read import kind_of

    models: list[str] = []
    files: list[Path] = []
    for text in texts:
        path = Path(text.rpartition("=")[2])
        is_model = path.suffix == ".rg" or (path.is_file() and kind_of(path) is not None)
        if is_model:
            models.append(text)
            hint(f"report {text}", f"report DATA -s {text}")
        else:
            files.append(Path(text))
    return models, files
