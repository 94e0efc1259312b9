"""``rankgrove cv``: k-fold cross-validation of one ranker on one data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import Convention, Normalisation, Reading, Threads, reads_data
from rankgrove.cli.train import Config, RankerName, Settings

if TYPE_CHECKING:
    from rankgrove.evaluation.evaluate import Evaluation


@reads_data("weight", chooses_features=True)
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
            help="Keep the fold after the one that tests for validation, as LETOR's folds do; "
            "rankers that stop early need it.",
        ),
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="What to measure; repeat for several. The first is also what the ranker "
            "maximises, where it has a choice, and what decides on validation data.",
            show_default="ndcg@10",
        ),
    ] = None,
    settings: Settings = None,
    config: Config = None,
    normalise: Annotated[
        Normalisation | None,
        typer.Option(help="Normalise features within every query.", show_default="no"),
    ] = None,
    convention: Convention = "papers",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the division into folds.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file for all figures.")
    ] = None,
    scores_out: Annotated[
        Path | None,
        typer.Option(help="File for the scores of all documents, each by the model of its fold."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the table.")] = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Cross-validate a ranker: folds by query, figures of every fold and of all queries together.

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
    own = base.get_params(deep=False)
    chosen = {"measure": measure[0]} if measure and "measure" in own else {}
    base.set_params(**(chosen | parameters(config, settings or [])))
    base, reading = prepared(base, reading, normalise)
    base.check_parameters()
    check_valid_fold(base, valid_fold, "give --valid-fold")
    judged = reading.load(data)

    def tell(k: int, found: Evaluation) -> None:
        if not quiet:
            means = ", ".join(f"{name} {value:.4f}" for name, value in found.mean.items())
            typer.echo(f"fold {k} of {folds}: {means}", err=True)

    found = rg.cross_validate(
        base,
        judged,
        measure or None,
        folds,
        valid=valid_fold,
        convention=convention,
        seed=seed,
        n_threads=threads,
        callback=tell,
    )
    typer.echo(str(found))
    if out is not None:
        write_atomically(out, json.dumps(found.to_dict(), allow_nan=False) + "\n")
    if scores_out is not None:
        write_atomically(scores_out, score_lines(found.scores))
    say_written(out, scores_out)
