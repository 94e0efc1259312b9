"""``rankgrove report``: one or several models on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import (
    BaseScore,
    Cache,
    Convention,
    DocidColumn,
    FeatureColumns,
    LabelColumn,
    QidColumn,
    Threads,
    ZeroBased,
)
from rankgrove.errors import ParameterError
from rankgrove.reporting.defaults import DOCUMENTS, MEASURES


def report(
    model: Annotated[str, typer.Argument(help="The trained model: FILE, or NAME=FILE.")],
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            "-d",
            help="Judged data that no model was trained on: a LETOR file (plain or gzip), or a "
            "CSV/parquet file; repeat for several LETOR files.",
        ),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", "-a", help="Another model: FILE, or NAME=FILE; repeat for several."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    valid: Annotated[
        list[str] | None,
        typer.Option(
            help="Further judged data, to measure sizes and weights of combinations on: one file, "
            "or several with commas between them; repeat for several sets."
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="What to measure; repeat for several. Models are compared by the first.",
            show_default=" ".join(MEASURES),
        ),
    ] = None,
    convention: Convention = "papers",
    queries: Annotated[
        str | None,
        typer.Option(
            help="Ids of queries whose documents are to be in the page in any case, as in 17,42."
        ),
    ] = None,
    documents: Annotated[
        int,
        typer.Option(
            min=0,
            help="Documents to put into the page, with ranks, scores and reasons; of larger data, "
            "those of the queries with the largest differences.",
        ),
    ] = DOCUMENTS,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default="the models")
    ] = None,
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    base_score: BaseScore = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
    threads: Threads = None,
) -> None:
    """Put models on one page: measures, queries won and lost, rankings, features, sizes.

    Examples:

    rankgrove report web.rg --data test.txt --out report.html

    rankgrove report old=web.rg --against new=best.rg --data test.txt -m ndcg@10 -m map
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_outputs, load_dataset, named_sets
    from rankgrove.validation import check_output_file

    measures = measure or list(MEASURES)
    for spec in measures:
        rg.measure(spec, convention)
    files = named_files([model, *(against or [])])
    for path in [*files.values(), *data]:
        check_exists(path)
    sets = named_sets(valid or [])
    read = [*files.values(), *data, *(path for paths in sets.values() for path in paths)]
    check_outputs({"--out": out}, read)
    check_output_file("--out", "report", out)
    models = {name: rg.load(path) for name, path in files.items()}
    n_features = max(one.n_features_in_ for one in models.values())

    def load(paths: list[Path], scores: str | None) -> rg.QueryDataset:
        return load_dataset(
            paths,
            label=label,
            qid=qid,
            docid=docid,
            features=features,
            base_score=scores,
            cache=cache,
            zero_based=zero_based,
            n_features=n_features,
        )

    made = rg.report(
        models,
        load(data, base_score),
        measures,
        out,
        convention=convention,
        valid={name: load(paths, None) for name, paths in sets.items()},
        queries=None if queries is None else [one.strip() for one in queries.split(",")],
        n_documents=documents,
        title=title,
        n_threads=threads,
    )
    typer.echo(made.summary)
    typer.echo(f"written to {out} ({len(made.html.encode()) / 1e6:.1f} MB)")


def named_files(given: list[str]) -> dict[str, Path]:
    """Return the files of models by name: NAME=FILE, or the file's name without its ending."""
    files: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).stem, text
        if not name or not path:
            raise ParameterError(f"Write a model as FILE or NAME=FILE. Got {text!r}.")
        if name in files:
            raise ParameterError(
                f"Two models are named {name!r}: name them yourself, as in old={files[name]}."
            )
        files[name] = Path(path)
    return files
