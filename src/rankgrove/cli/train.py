"""``rankgrove train``: from judged data to a model file."""

from __future__ import annotations

import inspect
import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.cli.options import (
    BaseScore,
    Cache,
    DocidColumn,
    FeatureColumns,
    LabelColumn,
    QidColumn,
    Threads,
    WeightColumn,
    ZeroBased,
)
from rankgrove.cli.params import new_ranker, parameters
from rankgrove.errors import ParameterError


def train(
    data: Annotated[
        list[Path],
        typer.Argument(help="Training data: LETOR files (plain or gzip), or one CSV/parquet file."),
    ],
    model: Annotated[Path, typer.Option("--model", help="Model file to write.")],
    valid: Annotated[
        list[str] | None,
        typer.Option(
            help="Validation data; the model keeps the best round there, or the best C. Repeat it "
            "for several sets, named by their files: the first decides. A set of several LETOR "
            "files is written A,B,C.",
            metavar="FILE",
        ),
    ] = None,
    ranker: Annotated[
        str,
        typer.Option(
            help="What to train: lambdamart, mart, mcrank, lambdarank, ranknet, listnet, svm-map, "
            "svm-roc, svm-mrr, svm-ndcg, svm-acc, ranksvm, coordinate-ascent, smoothrank, crr, "
            "rankboost, adarank, frank, gbrank or randomforest."
        ),
    ] = "lambdamart",
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            "-m",
            help="What to maximise; rankers of labels and of pairs only look at it on the "
            "validation data.",
            show_default="ndcg@10",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A parameter; repeat for several. A value is a number, a text, a list as in "
            "C=[0.1,1], or none, true or false.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters; --set comes before it.")
    ] = None,
    submodel: Annotated[
        str | None,
        typer.Option(help="Model file to go on from: its scores, with new trees added."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="Model file of a net of the same sizes, whose weights training begins with."
        ),
    ] = None,
    valid_measure: Annotated[
        list[str] | None,
        typer.Option(help="What to measure on the validation data; the first decides."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Keep the state in this file; a killed run goes on from it."),
    ] = None,
    models: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Train a bag of so many models; --checkpoint is a folder then.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        float, typer.Option(help="Share of the queries that a model of a bag sees.")
    ] = 0.67,
    combine: Annotated[
        str, typer.Option(help="How a bag's scores are made one: minmax, borda or mean.")
    ] = "minmax",
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Train on the workers of a Dask cluster, each of which reads its own files (or "
            "trains models of a bag): local (processes of this machine), or a scheduler's "
            "address. The model is the same.",
            metavar="tcp://HOST:PORT",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar, no summary.")] = False,
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    weight: WeightColumn = None,
    base_score: BaseScore = None,
    valid_base_score: Annotated[
        list[str] | None,
        typer.Option(
            help="As --base-score, of validation data in LETOR text; one for each --valid."
        ),
    ] = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
    threads: Threads = None,
) -> None:
    """Train a ranker and write it to a file.

    Examples:

    rankgrove train train.txt --valid vali.txt --measure ndcg@10 --set n_trees=500 --model web.rg

    rankgrove train train.txt --config web.toml --set learning_rate=0.05 --model web.rg

    rankgrove train train.txt --ranker mart --set loss=logistic --set relevant=2 --model two.rg

    rankgrove train small.txt --submodel big.rg --set row_fraction=0.7 --model new.rg

    rankgrove train train.txt --ranker lambdarank --start ranknet.rg --model net.rg

    rankgrove train train.txt --valid vali.txt --ranker svm-map --set C=auto --model map.rg

    rankgrove train part1.txt part2.txt part3.txt --cluster tcp://host:8786 --model web.rg

    rankgrove train train.txt --valid vali.txt --models 45 --set query_fraction=0.5
    --set overfitting_tolerance=0.02 --model bag.rg

    Ctrl-C keeps the best model so far. `rankgrove params mart` lists the parameters of a ranker.
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_outputs, load_dataset, named_sets
    from rankgrove.data.file_kinds import is_table
    from rankgrove.validation import check_output_file

    if start is not None:
        check_exists(start)
    given = parameters(config, settings or [])
    made = new_ranker(ranker)
    own = made.get_params(deep=False)
    if start is not None and ("start" not in inspect.signature(made.fit).parameters or models):
        what = "a bag" if models else ranker
        raise ParameterError(
            f"--start begins with a net's weights, and {what} cannot. Leave it out."
        )
    if measure is not None:
        if "measure" not in own:
            raise ParameterError(
                f"--measure {measure}: {ranker} has a loss of its own. --valid-measure says what "
                "to choose by on validation data."
            )
        given["measure"] = measure
    if submodel is not None:
        given["submodel"] = submodel
    if checkpoint is not None and models is None:
        given["checkpoint"] = str(checkpoint)
    if threads is not None:
        given["n_threads"] = threads
    made.set_params(**(({"progress": not quiet} if "progress" in own else {}) | given))
    made.check_parameters()
    going_on_from = _go_on_from(made, base_score)
    made.check_valid(bool(valid))
    if models is not None:
        made = rg.BaggedRanker(
            made,
            models,
            sample,
            combine,
            cluster=cluster,
            checkpoint=checkpoint,
            random_state=own.get("random_state", 0)
            if "random_state" not in given
            else given["random_state"],
            n_threads=threads,
            progress=not quiet,
        )
        made.check_parameters()
    for spec in [made.measure, *(valid_measure or [])]:
        rg.measure(spec)
    if valid_measure and not valid:
        raise ParameterError("--valid-measure needs validation data: give --valid too.")
    valid_files = named_sets(valid or [])
    valid_scores = _valid_base_scores(base_score, list(valid_files.values()), valid_base_score)
    score_files = [*valid_scores, None if is_table(data) else base_score]
    read = [*data, *itertools.chain(*valid_files.values()), config, start]
    read += [Path(name) for name in score_files if name is not None]
    kept = getattr(made, "checkpoint", None)
    state = None if kept is None else Path(kept)
    check_outputs({"--model": model, "--checkpoint": state}, read)
    check_output_file("--model", "train", model)
    columns: dict[str, Any] = {
        "label": label,
        "qid": qid,
        "docid": docid,
        "cache": cache,
        "zero_based": zero_based,
    }
    with_weights = {**columns, "features": features, "weight": weight}
    if cluster is not None and models is None:
        reading = _reading(data[0], with_weights, is_table(data))
        measured = {"valid": valid_files or None, "valid_measures": valid_measure or None}
        _check_can_fit_files(made, ranker, base_score)
        with one_interrupt():
            made.fit_files(data, cluster=cluster, **measured, **reading)
            made.save(model)
    else:
        train_data = load_dataset(data, **with_weights, base_score=base_score, models=going_on_from)
        # Weights are for training: a validation file need not have them.
        used = train_data.feature_names if weight else features
        valid_data = {
            name: load_dataset(
                files,
                **columns,
                features=used,
                base_score=scores,
                n_features=train_data.n_features,
            )
            for (name, files), scores in zip(valid_files.items(), valid_scores, strict=True)
        }
        if not quiet:
            typer.echo(f"training on {train_data!r}", err=True)
        with one_interrupt():
            made.fit(
                train_data,
                valid=valid_data or None,
                valid_measures=valid_measure or None,
                **({"start": start} if start is not None else {}),
            )
            made.save(model)
    if not quiet:
        typer.echo(made.summary())
        typer.echo(f"written to {model}")
    if made.interrupted_:
        typer.echo(f"interrupted: {model} holds the best model so far.", err=True)
        raise typer.Exit(130)


def _check_can_fit_files(made: Any, ranker: str, base_score: str | None) -> None:
    """Refuse what cannot be trained on a cluster."""
    if not hasattr(made, "fit_files"):
        raise ParameterError(f"--cluster trains a lambdamart, not a {ranker}. Leave it out.")
    if base_score is not None:
        raise ParameterError("--base-score cannot go with --cluster. Leave one of them out.")


def _reading(file: Path, columns: dict[str, Any], table: bool) -> dict[str, Any]:
    """Return how a cluster's workers read the files, of the options given."""
    from rankgrove.cli.inputs import feature_list, refuse_table_options

    if not table:
        refuse_table_options(file, columns)
        return {name: columns[name] for name in ("cache", "zero_based")}
    if columns["zero_based"]:
        raise ParameterError("--zero-based is for LETOR files. Leave it out.")
    names = ("label", "qid", "docid", "weight")
    return {
        **{name: columns[name] for name in names},
        "features": feature_list(columns["features"]),
    }


def _go_on_from(made: Any, base_score: str | None) -> list[Any]:
    """Load the submodel of a ranker; return it, where it knows of features."""
    from rankgrove.rankers.boosted_data import BASE_SCORE
    from rankgrove.rankers.submodel import needs_base_score, resolve

    if base_score is not None and getattr(made, "submodel", None) is None:
        made.set_params(submodel=BASE_SCORE)
    found = resolve(getattr(made, "submodel", None), "train")
    if needs_base_score(found) and base_score is None:
        raise ParameterError(
            "The ranker goes on from scores that come with the data: give --base-score."
        )
    if base_score is not None and not needs_base_score(found):
        raise ParameterError("Give either a submodel or --base-score.")
    if found is not None:
        made.set_params(submodel=found)
    return [found] if hasattr(found, "n_features_in_") else []


def _valid_base_scores(
    base_score: str | None, valid: list[list[Path]], given: list[str] | None
) -> list[str | None]:
    """Return where the base scores of every validation set are: a column, or a file of scores."""
    from rankgrove.data.file_kinds import is_table

    if given is not None:
        if len(given) != len(valid):
            raise ParameterError(
                f"Give one --valid-base-score for each --valid. Got {len(given)} for {len(valid)}."
            )
        return list(given)
    if base_score is not None and not all(is_table(files) for files in valid):
        raise ParameterError("The validation data needs base scores too: give --valid-base-score.")
    return [base_score] * len(valid)


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C end training, and no further one end the writing of the model."""
    pressed = []

    def interrupt(*_: object) -> None:
        pressed.append(True)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        typer.echo("already stopping; the model is being written.", err=True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
