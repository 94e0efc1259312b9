"""``rankgrove calibrate``: scores with a meaning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import PlotFile, Reading, Threads, reads_data


class Method(StrEnum):
    """Forms of the function from scores to grades."""

    isotonic = "isotonic"
    sigmoid = "sigmoid"


@reads_data("base_score")
def calibrate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA... MODEL",
            help="Judged data that the model was not trained on (or with --retrain, the data that "
            "it was trained on); and the trained model.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write the calibrated model to.")
    ],
    method: Annotated[
        Method,
        typer.Option(
            help="isotonic: any function that never falls; sigmoid: logistic, for little data."
        ),
    ] = Method.isotonic,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="The data is that of training: learn from the scores of models that are trained "
            "again without a fifth of the queries.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and intervals.")] = 0,
    plot: PlotFile = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Learn what a model's scores mean: the expected grade, and how likely every grade is.

    The order of documents does not change. 'rankgrove rank --relevance' writes expected grades.

    Examples:

    rankgrove calibrate vali.txt web.rg --out calibrated.rg --plot reliability.png

    rankgrove rank test.txt --model calibrated.rg --relevance --out grades.txt
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import model_and_data
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.reporting.figure import save_figure

    model, data = model_and_data("calibrate", files)
    check_writable("calibrate", {"--out": out, "--plot": plot}, files)
    trained = rg.load(model)
    judged = reading.load(data, models={str(model): trained})
    calibrated = rg.calibrate(
        trained, judged, method=method.value, retrain=retrain, seed=seed, n_threads=threads
    )
    calibrated.save(out)
    if plot is not None:
        save_figure(rg.plot.reliability(calibrated), plot)
    typer.echo(str(calibrated.reliability_))
    typer.echo("(Every query was predicted by curves that were not learned from it.)")
    say_written(out, plot)
