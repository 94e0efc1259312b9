"""``rankgrove parity`` and ``rankgrove join``: what search engines scored and logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

LogFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG...",
        help="Scored documents with their features: responses of Elasticsearch or OpenSearch "
        "(_ltrlog), Solr (its features transformer) or Vespa (summary-features, match-features) "
        "as JSON, one after the other or in a list, also .gz; or a CSV, TSV, parquet or arrow "
        "file.",
        show_default=False,
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(help="Name of the log entry, or of the field with the features."),
]
QueryPath = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="Where the log has the query's id: names with dots between them within the hit or "
        "the response, as in _source.query; or a column.",
        show_default="query_id, qid, query or name beside the response; Solr's q; else its number",
    ),
]
DocumentPath = Annotated[
    str | None,
    typer.Option(
        "--document",
        help="Where the log has the document's id.",
        show_default="_id, id, documentid",
    ),
]


def parity(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model file: rankgrove's or another library's; with --engine also the file that "
            "was uploaded to it.",
        ),
    ],
    log: LogFiles,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine and version whose rules are assumed, as in opensearch-3.1; rankgrove: "
            "the model's own scores.",
            show_default="by the log: the engine of its kind by which the most scores are right",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="File with the names of all features of the model, one per line, as in the log.",
            show_default="the model's own, or f1, f2, ...",
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Features that the documents should have: another log, or a table."),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(help="Another model that may have been in use; repeat for several."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="Scores agree where they differ by at most this times max(1, |score|)."
        ),
    ] = 1e-6,
    training: Annotated[
        Path | None,
        typer.Option(
            help="Training data to write: the logged features with the grades of --judgements."
        ),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(help="Judgements for --training: qrels, or a table of grades."),
    ] = None,
    entry: Entry = None,
    query: QueryPath = None,
    document: DocumentPath = None,
    score: Annotated[
        str | None,
        typer.Option(help="Where the log has the score.", show_default="_score, score, relevance"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", "--json", help="Also write everything to this JSON file."),
    ] = None,
) -> None:
    """Say whether an engine scores as the model does, and name the cause of every difference.

    Every document is scored again from its logged features. The status is 0 if all agree, else 1.

    Examples:

    rankgrove parity web.rg log.json --engine opensearch-3.1

    rankgrove parity web.rg log.csv --also old.rg --reference features.csv --out report.json

    rankgrove parity web.rg log.json --training train.txt --judgements qrels.txt
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, read_names
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.errors import ParameterError
    from rankgrove.files import write_atomically

    if (training is None) != (judgements is None):
        raise ParameterError("--training and --judgements belong together: give both, or neither.")
    read = [model, *log, features, reference, *(also or []), judgements]
    for path in read:
        if path is not None:
            check_exists(path)
    check_writable("parity", {"--out": out, "--training": training}, read)
    names = None if features is None else read_names(features)
    scored = rg.read_feature_log(log, entry=entry, query=query, document=document, score=score)
    found = rg.parity(
        model,
        scored,
        engine=engine,
        features=names,
        reference=reference,
        also=also,
        tolerance=tolerance,
    )
    typer.echo(str(found))
    if out is not None:
        write_atomically(out, json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n")
    if training is not None:
        typer.echo(f"\n{rg.join_log(scored, judgements, training)}")
    say_written(out, training)
    if not found.equal:
        raise typer.Exit(1)


def join(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG... JUDGEMENTS",
            help="Logged features (as for rankgrove parity), then the judgements: qrels, or a "
            "table with a row per judgement.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="LETOR file to write, for rankgrove train.")
    ],
    unjudged: Annotated[
        float | None,
        typer.Option(
            help="Grade of documents without a judgement, in queries that have some.",
            show_default="they are left out",
        ),
    ] = None,
    absent: Annotated[
        str | None,
        typer.Option(
            help="What a feature is that a document lacks: zero or missing.",
            show_default="as logged: zero in Solr's logs, else missing",
        ),
    ] = None,
    names_out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the names of the features, one per line, as rankgrove convert "
            "--features and rankgrove parity --features take them."
        ),
    ] = None,
    entry: Entry = None,
    query: QueryPath = None,
    document: DocumentPath = None,
    grade: Annotated[
        str | None,
        typer.Option(help="Column of the grades in a table of judgements.", show_default="grade"),
    ] = None,
) -> None:
    """Join logged features with judgements: training data of what the search engine saw.

    The file begins with the features' names as comments. rankgrove clicks judge makes judgements.

    Examples:

    rankgrove join log.json qrels.txt --out train.txt --names-out names.txt

    rankgrove join log.csv grades.csv --out train.txt --unjudged 0

    rankgrove train train.txt --out web.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.errors import ParameterError
    from rankgrove.files import write_atomically

    if len(files) < 2:
        raise ParameterError(
            "Give the log and the judgements, as in 'rankgrove join log.json qrels.txt --out "
            "train.txt'."
        )
    for path in files:
        check_exists(path)
    check_writable("join", {"--out": out, "--names-out": names_out}, files)
    reading: dict[str, Any] = {"entry": entry, "log_query": query, "log_document": document}
    joined = rg.join_log(
        files[:-1], files[-1], out, unjudged=unjudged, absent=absent, grade=grade, **reading
    )
    typer.echo(str(joined))
    if names_out is not None:
        names = "".join(f"{name}\n" for name in joined.dataset.feature_names)
        write_atomically(names_out, names)
    say_written(out, names_out)
