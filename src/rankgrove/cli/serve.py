"""``rankgrove serve``: scoring over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from rankgrove.cli.options import Absent


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help="Model files; the default for NAME is the file's name without its ending. The "
            "first model answers POST /rank.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = 8080,
    max_body: Annotated[
        int, typer.Option(min=1, help="Maximum bytes per request; larger ones get status 413.")
    ] = 1 << 24,
    max_documents: Annotated[
        int, typer.Option(min=1, help="Maximum documents per request; more get status 422.")
    ] = 10_000,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds in which a request's body must arrive.")
    ] = 30.0,
    watch: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds between two checks of the model files; changed files are reloaded. 0: "
            "reload only on POST /reload and SIGHUP.",
        ),
    ] = 2.0,
    absent: Annotated[
        Absent | None,
        typer.Option(
            help="Value of features that a document does not name.",
            show_default="as in the model's training data; missing if its file has no record",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only warnings and errors.")] = False,
) -> None:
    """Score documents over HTTP: JSON in, ranked ids and scores out.

    Examples:

    rankgrove serve web.rg other=small.rg --port 8080

    curl -d '{"documents": [{"id": "a", "features": {"f1": 0.5}}]}' http://127.0.0.1:8080/rank
    """
    from rankgrove.cli.inputs import check_exists, named_files
    from rankgrove.serving.server import serve as run

    files = named_files(models, without="/")  # the name is part of an address
    for path in files.values():
        check_exists(path)
    run(
        files,
        host,
        port,
        quiet=quiet,
        max_body=max_body,
        max_documents=max_documents,
        timeout=timeout,
        watch=watch,
        absent=absent,
    )
