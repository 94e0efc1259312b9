"""``rankgrove cv``: k-fold cross-validation of one ranker on one data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import (
    Convention,
    Encode,
    Normalisation,
    Reading,
    Threads,
    Transform,
    reads_data,
)
from rankgrove.cli.train import Config, RankerName, Settings

if TYPE_CHECKING:
    from rankgrove.evaluation.evaluate import Evaluation


@reads_data("weight", chooses_features=True, has_model=False)
def cv(
    data: Annotated[
        list[Path],
        typer.Argument(help="Judged data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ],
    ranker: RankerName = "lambdamart",
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    valid_fold: Annotated[
        bool,
        typer.Option(
            "--valid-fold",
            help="Use the fold after the test fold for validation, as LETOR's folds do; rankers "
            "with early stopping need it.",
        ),
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Measure to compute; repeat for several. The first decides on validation data, "
            "and rankers with a parameter measure maximise it.",
            show_default="ndcg@10",
        ),
    ] = None,
    settings: Settings = None,
    config: Config = None,
    normalise: Annotated[
        Normalisation | None,
        typer.Option(help="Normalise features within every query.", show_default="no"),
    ] = None,
    transform: Transform = None,
    encode: Encode = None,
    convention: Convention = "papers",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split into folds.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file to write, with all results.")
    ] = None,
    scores_out: Annotated[
        Path | None,
        typer.Option(help="File to write all documents' scores to, each from its fold's model."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the table.")] = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Cross-validate a ranker: folds by query, measures per fold and over all queries.

    Examples:

    rankgrove cv train.txt --ranker lambdamart --folds 5

    rankgrove cv train.txt --valid-fold --set early_stopping=50 -m map -m ndcg@10 --out cv.json
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures
    from rankgrove.cli.outputs import check_writable, say_written, score_lines
    from rankgrove.cli.parameters import new_ranker, parameters, prepared
    from rankgrove.files import write_atomically
    from rankgrove.tuning.cross_validation import check_valid_fold

    for path in data:
        check_exists(path)
    check_writable("cv", {"--out": out, "--scores-out": scores_out}, [*data, config])
    check_measures(measure or [], convention)
    base = new_ranker(ranker, "cv")
    has_measure = "measure" in base.get_params(deep=False)
    chosen = {"measure": measure[0]} if measure and has_measure else {}
    base.set_params(**(chosen | parameters(config, settings or [])))
    base, reading = prepared(base, reading, normalise, transform, encode)
    base.check_parameters()
    check_valid_fold(base, valid_fold, "give --valid-fold")
    judged = reading.load(data)

    def print_fold(k: int, evaluation: Evaluation) -> None:
        if not quiet:
            means = ", ".join(f"{name} {value:.4f}" for name, value in evaluation.mean.items())
            typer.echo(f"fold {k} of {folds}: {means}", err=True)

    result = rg.cross_validate(
        base,
        judged,
        measure or None,
        folds,
        valid=valid_fold,
        convention=convention,
        seed=seed,
        n_threads=threads,
        callback=print_fold,
    )
    typer.echo(str(result))
    if out is not None:
        write_atomically(out, json.dumps(result.to_dict(), allow_nan=False) + "\n")
    if scores_out is not None:
        write_atomically(scores_out, score_lines(result.scores))
    say_written(out, scores_out)
