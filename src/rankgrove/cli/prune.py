"""``rankgrove prune``: fewer trees at the same quality."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Convention, PlotFile, Reading, Threads, reads_data


@reads_data("base_score")
def prune(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA... MODEL",
            help="Judged data that the model was not trained on, such as validation data; and the "
            "trained model: boosted trees, or a bag of them.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the smaller model to.")],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Measure that must not fall; repeat for several.",
            show_default="the model's own",
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="How much a measure's mean may fall.")] = 0.0,
    margin: Annotated[
        float,
        typer.Option(
            help="Number of standard errors that are added to a fall before it is compared with "
            "the tolerance; a rise then counts as 0. 1 is a careful choice, with a tolerance "
            "above 0."
        ),
    ] = 0.0,
    keep: Annotated[float, typer.Option(help="Minimum share of the trees to keep.")] = 0.1,
    plot: PlotFile = None,
    curve: Annotated[
        Path | None, typer.Option(help="CSV file to write: measures by number of trees.")
    ] = None,
    convention: Convention = "papers",
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Remove trees from a model and re-weight the rest, as long as measures on judged data hold.

    Examples:

    rankgrove prune vali.txt web.rg -m ndcg@10 -m map --tolerance 0.002 --out small.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_measures, model_and_data
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.reporting.figure import save_figure

    big, data = model_and_data("prune", files)
    check_measures(measure or [], convention)
    check_writable("prune", {"--out": out, "--plot": plot, "--curve": curve}, files)
    trained = rg.load(big)
    judged = reading.load(data, models={str(big): trained})
    pruned = rg.prune(
        trained,
        judged,
        measure or None,
        tolerance,
        margin=margin,
        keep=keep,
        convention=convention,
        n_threads=threads,
    )
    pruned.ranker.save(out)
    if curve is not None:
        pruned.to_csv(curve)
    if plot is not None:
        save_figure(rg.plot.pruning(pruned), plot)
    (many, few), (before, after) = pruned.n_trees, pruned.values
    typer.echo(f"{many:,} trees, {few:,} left ({1 - few / many:.0%} removed)")
    for name in before:
        typer.echo(f"{name}: {before[name]:.4f} before, {after[name]:.4f} after, on these queries")
    typer.echo("(These queries chose the trees: evaluate the model on other queries.)")
    say_written(out, curve, plot)
