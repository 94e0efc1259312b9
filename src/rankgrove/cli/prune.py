"""``rankgrove prune``: fewer trees at the same quality."""

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
    PlotFile,
    QidColumn,
    Threads,
    ZeroBased,
)


def prune(
    big: Annotated[
        Path, typer.Argument(help="The trained model: boosted trees, or a bag of them.")
    ],
    data: Annotated[
        list[Path],
        typer.Argument(help="Judged data the model was not trained on, such as validation data."),
    ],
    model: Annotated[Path, typer.Option(help="File to write the smaller model to.")],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="What must hold; repeat for several.",
            show_default="the model's own",
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much a mean may fall, in the measure's own units.")
    ] = 0.0,
    margin: Annotated[
        float,
        typer.Option(
            help="So many standard errors of the fall are added to it, and a rise counts for "
            "nothing; 1 is careful, with a tolerance above 0."
        ),
    ] = 0.0,
    keep: Annotated[float, typer.Option(help="Share of the trees that stay in any case.")] = 0.1,
    plot: PlotFile = None,
    curve: Annotated[Path | None, typer.Option(help="CSV file of trees against measures.")] = None,
    convention: Convention = "papers",
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    base_score: BaseScore = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
    threads: Threads = None,
) -> None:
    """Take trees out of a model and re-weight the rest, while measures hold on judged data.

    Examples:

    rankgrove prune web.rg vali.txt -m ndcg@10 -m map --tolerance 0.002 --model small.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_outputs, load_dataset
    from rankgrove.reporting.figure import check_plot, save_figure
    from rankgrove.validation import check_output_file

    for path in [big, *data]:
        check_exists(path)
    for spec in measure or []:
        rg.measure(spec, convention)
    check_outputs({"--model": model, "--plot": plot, "--curve": curve}, [big, *data])
    for option, written in (("--model", model), ("--plot", plot), ("--curve", curve)):
        if written is not None:
            check_output_file(option, "prune", written)
    if plot is not None:
        check_plot(plot)
    trained = rg.load(big)
    judged = load_dataset(
        data,
        label=label,
        qid=qid,
        docid=docid,
        features=features,
        base_score=base_score,
        cache=cache,
        zero_based=zero_based,
        models=[trained],
    )
    found = rg.prune(
        trained,
        judged,
        measure or None,
        tolerance,
        margin=margin,
        keep=keep,
        convention=convention,
        n_threads=threads,
    )
    found.ranker.save(model)
    if curve is not None:
        found.to_csv(curve)
    if plot is not None:
        save_figure(rg.plot.pruning(found), plot)
    (many, few), (before, after) = found.n_trees, found.values
    typer.echo(f"{many:,} trees, {few:,} left ({1 - few / many:.0%} gone)")
    for name in before:
        typer.echo(f"{name}: {before[name]:.4f} before, {after[name]:.4f} after, on these queries")
    typer.echo("(They chose the trees: evaluate the model on others.)")
    typer.echo(f"written to {model}")
