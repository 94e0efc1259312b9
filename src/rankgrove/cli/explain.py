"""``rankgrove explain``: feature contributions (SHAP values) to the scores of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import PlotFile, Reading, Threads, reads_data

if TYPE_CHECKING:
    from rankgrove.explaining.explanation import Explanation


@reads_data("base_score", "strict")
def explain(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA... MODEL",
            help="Documents, LETOR files (plain or gzip) or one CSV/parquet file; and the trained "
            "model.",
        ),
    ],
    query: Annotated[str, typer.Option("--query", "-q", help="The id of the query to explain.")],
    document: Annotated[
        str | None,
        typer.Option(
            "--document",
            "-d",
            help="Explain this document, given by its id or by its rank (1 is the best).",
            show_default="the best document",
        ),
    ] = None,
    above: Annotated[
        str | None,
        typer.Option(help="Explain why this document (id or rank) is ranked above --below."),
    ] = None,
    below: Annotated[str | None, typer.Option(help="The other document (id or rank).")] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of features to show.")] = 10,
    background: Annotated[
        Path | None,
        typer.Option(
            help="Reference data; needed for models that do not record how many training rows "
            "reached their leaves, such as RankLib's.",
            show_default="the model's record of its training data",
        ),
    ] = None,
    plot: PlotFile = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Show feature contributions (SHAP values), which sum exactly to a document's score.

    Examples:

    rankgrove explain test.txt web.rg --query 17

    rankgrove explain test.txt web.rg --query 17 --above 1 --below 2 --plot why.png
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, model_and_data
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.errors import ParameterError
    from rankgrove.reporting.figure import save_figure

    if (above is None) != (below is None):
        raise ParameterError("--above and --below belong together: give both, or neither.")
    if above is not None and document is not None:
        raise ParameterError("Give either --document, or --above and --below.")
    if background is not None:
        check_exists(background)
    model, data = model_and_data("explain", files)
    check_writable("explain", {"--plot": plot}, [*files, background])
    trained = rg.load(model)

    known = {str(model): trained}
    reference = None
    if background is not None:
        reference = reading.load([background], base_score=None, models=known)
    judged = reading.load(data, models=known)
    explanation = rg.explain(trained, judged, query, reference, n_threads=threads)
    if above is not None and below is not None:
        shown = explanation.why(_place(explanation, above), _place(explanation, below))
    else:
        shown = explanation.table(_place(explanation, document or "1"))
    typer.echo(shown.text(top))
    if plot is not None:
        save_figure(rg.plot.explanation(shown, n_features=top), plot)
    say_written(plot)


def _place(explanation: Explanation, text: str) -> int:
    """Return the position of a document, given by its id or by its rank."""
    if text not in explanation.documents and text.isdecimal():
        from rankgrove.errors import ParameterError

        n = len(explanation.documents)
        if not 1 <= int(text) <= n:
            raise ParameterError(
                f"The query has {n} documents, and no rank {text}: "
                f"give a rank from 1 (the best) to {n}, or a document's id."
            )
        return int(explanation.ranking[int(text) - 1])
    return explanation.position(text)
