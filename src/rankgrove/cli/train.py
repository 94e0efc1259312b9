"""``rankgrove train``: from judged data to a model file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.cli.options import (
    Combine,
    Encode,
    Normalisation,
    Reading,
    Sample,
    Threads,
    Transform,
    reads_data,
)
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.rankers.base import Ranker

Data = Annotated[
    list[Path],
    typer.Argument(
        help="Training data: LETOR files (plain, gzip or zstd), or one CSV, parquet or arrow file; "
        "with --low-memory also several tables, or a folder of bins."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        help="Validation data; the round (or C) with the best value on it is kept. Repeat for "
        "several sets, which are named after their files; the first decides. A set of several "
        "LETOR files is written A,B,C.",
        metavar="FILE",
    ),
]
ValidShare = Annotated[
    float | None,
    typer.Option(
        help="Share of the training queries to hold out as validation data, instead of --valid; "
        "the ranker's random_state is the seed.",
        show_default=False,
    ),
]
Normalise = Annotated[
    Normalisation | None,
    typer.Option(
        help="Normalise features within every query, as RankLib's -norm does; the model also does "
        "so when it scores.",
        show_default="no",
    ),
]
RankerName = Annotated[
    str,
    typer.Option(
        help="Ranker to train: lambdamart, mart, mcrank, lambdarank, ranknet, listnet, boltzrank, "
        "svm-map, svm-roc, svm-mrr, svm-ndcg, svm-acc, ranksvm, coordinate-ascent, smoothrank, "
        "crr, rankboost, adarank, frank, gbrank or randomforest."
    ),
]
MeasureName = Annotated[
    str | None,
    typer.Option(
        "--measure",
        "-m",
        help="Measure to maximise; pointwise and pairwise rankers use it only on validation data.",
        show_default="ndcg@10",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter; repeat for several. A value is a number, a string, a list as in "
        "C=[0.1,1], or none, true or false.",
        metavar="NAME=VALUE",
    ),
]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with parameters; --set takes precedence.")
]
Submodel = Annotated[
    str | None,
    typer.Option(help="Model file to start from: new trees are added to its scores."),
]
Start = Annotated[
    Path | None,
    typer.Option(help="Model file of a net of the same sizes; training starts from its weights."),
]
ValidMeasures = Annotated[
    list[str] | None,
    typer.Option(help="Measure on validation data; repeat for several. The first decides."),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="Keep the state in this file; a killed run continues from it."),
]
BagSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Train a bag with this number of models; --checkpoint is then a folder.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Train on a Dask cluster: 'local' (processes on this machine) or the address of a "
        "scheduler. Each worker reads its own files, or trains models of a bag. The result is the "
        "same as without a cluster.",
        metavar="tcp://HOST:PORT",
    ),
]
LowMemory = Annotated[
    bool,
    typer.Option(
        "--low-memory",
        help="Read the data in blocks, and keep a byte per feature value on disk instead of four "
        "in memory. The model is the same; the second run finds the bins.",
    ),
]
Bins = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the bins of --low-memory, instead of FILE.bins.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress bar and no summary.")]
ValidBaseScores = Annotated[
    list[str] | None,
    typer.Option(help="Like --base-score, for validation data in LETOR text; one per --valid."),
]
ValidPositions = Annotated[
    list[str] | None,
    typer.Option(
        "--valid-position",
        help="Like --position, for validation data of clicks; one per --valid. Without it, "
        "validation data is of judgements.",
        metavar="FILE|COLUMN",
    ),
]


@reads_data("weight", "base_score", "position", "position_context", chooses_features=True)
def train(
    data: Data,
    out: Out,
    valid: Valid = None,
    valid_share: ValidShare = None,
    ranker: RankerName = "lambdamart",
    measure: MeasureName = None,
    settings: Settings = None,
    config: Config = None,
    submodel: Submodel = None,
    start: Start = None,
    valid_measure: ValidMeasures = None,
    checkpoint: Checkpoint = None,
    models: BagSize = None,
    sample: Sample = None,
    combine: Combine = None,
    normalise: Normalise = None,
    transform: Transform = None,
    encode: Encode = None,
    cluster: Cluster = None,
    quiet: Quiet = False,
    low_memory: LowMemory = False,
    bins: Bins = None,
    *,
    reading: Reading,
    valid_base_score: ValidBaseScores = None,
    valid_position: ValidPositions = None,
    threads: Threads = None,
) -> None:
    """Train a ranker and write it to a file.

    Examples:

    rankgrove train train.txt --valid vali.txt --measure ndcg@10 --set n_trees=500 --out web.rg

    rankgrove train train.txt --valid-share 0.2 --normalise zscore --features chosen.txt
    --out web.rg

    rankgrove train train.txt --ranker lambdarank --transform log1p --normalise zscore --out net.rg

    rankgrove train train.txt --config web.toml --set learning_rate=0.05 --out web.rg

    rankgrove train train.txt --ranker mart --set loss=logistic --set relevant=2 --out two.rg

    rankgrove train small.txt --submodel big.rg --set row_fraction=0.7 --out new.rg

    rankgrove train train.txt --ranker lambdarank --start ranknet.rg --out net.rg

    rankgrove train train.txt --valid vali.txt --ranker svm-map --set C=auto --out map.rg

    rankgrove train part1.txt part2.txt part3.txt --cluster tcp://host:8786 --out web.rg

    rankgrove train big.txt --valid vali.txt --low-memory --out web.rg

    rankgrove train rows.txt --position rows.txt.positions --set position_bias=ips --valid vali.txt
    --out clicks.rg

    rankgrove train train.txt --valid vali.txt --models 45 --set query_fraction=0.5
    --set overfitting_tolerance=0.02 --out bag.rg

    `rankgrove params mart` lists the parameters of a ranker. After Ctrl-C the best model so far is
    written; of a bag, the finished models stay in the --checkpoint folder.
    """
    from rankgrove.cli.fits import cluster_fit, local_fit, low_memory_fit, refuse_with_low_memory
    from rankgrove.cli.inputs import check_exists, named_sets
    from rankgrove.cli.outputs import one_interrupt, say_written, says_what_is_kept
    from rankgrove.cli.parameters import bag_options, new_ranker, parameters, prepared
    from rankgrove.data.file_kinds import is_folder_of_bins

    if start is not None:
        check_exists(start)
    if bins is not None and not low_memory:
        raise ParameterError("--bins is the folder of --low-memory: give that too.")
    if not low_memory and any(is_folder_of_bins(path) for path in data):
        raise ParameterError(f"{data[0]} is a folder of bins: give --low-memory too.")
    base = new_ranker(ranker)
    kept = None if checkpoint is None or models else str(checkpoint)
    options = {"measure": measure, "submodel": submodel, "checkpoint": kept, "n_threads": threads}
    of_data: dict[str, Any] = {"base_score": reading.base_score, "position": reading.position}
    _check_takes(base, ranker, options | of_data, start, models)
    shown = {"progress": not quiet} if "progress" in base.get_params(deep=False) else {}
    chosen = {name: value for name, value in options.items() if value is not None}
    base.set_params(**(shown | parameters(config, settings or []) | chosen))
    _check_positions(base, reading, valid_position, cluster)
    known = _load_submodel(base, reading.base_score)
    bag = bag_options(models, sample, combine)
    if models is not None:
        base = _bag_of(base, models, bag | {"cluster": cluster}, checkpoint, threads, quiet)
    trained, reading = prepared(base, reading, normalise, transform, encode)
    # Check everything possible before reading data, which may take long.
    trained.check_parameters()
    held_out = _check_share(valid_share, valid, base)
    is_watched = bool(valid) or held_out is not None
    if valid_measure and not is_watched:
        raise ParameterError("--valid-measure needs validation data: give --valid too.")
    trained.check_validation(is_watched, valid_measure or None)
    sets = named_sets(valid or [])
    scores = _valid_base_scores(reading.base_score, list(sets.values()), valid_base_score)
    places = _valid_positions(sets, valid_position)
    others = [config, start, *_position_files(reading.position, data, sets, places)]
    _check_files(base, out, data, sets, reading.base_score, scores, others)
    if low_memory:
        steps = {"normalise": normalise, "transform": transform, "encode": encode}
        refuse_with_low_memory(trained, ranker, cluster, reading, known, steps)
        fit = low_memory_fit(trained, data, sets, places, reading, bins, held_out, quiet)
    elif cluster is not None and models is None:
        fit = cluster_fit(trained, ranker, data, sets, reading, cluster, held_out)
    else:
        fit = local_fit(trained, data, sets, scores, places, reading, known, held_out, quiet)
    ends: AbstractContextManager[None] = nullcontext()
    if models is not None:
        ends = says_what_is_kept("models", checkpoint, "--checkpoint FOLDER")
    with ends, one_interrupt():
        begin = {} if start is None else {"start": start}
        try:
            fit(valid_measures=valid_measure or None, **begin)
        except KeyboardInterrupt:  # keep the best model so far, if there is one
            if not getattr(trained, "interrupted_", False):
                raise
        trained.save(out)
    if not quiet:
        typer.echo(trained.summary())
        say_written(out)
    if trained.interrupted_:
        typer.echo(f"interrupted: {out} holds the best model so far.", err=True)
        raise typer.Exit(130)


# -- the ranker ---------------------------------------------------------------------------------


# option -> the parameter that the ranker needs for it, and why one without it cannot use the option
_NEEDED = {
    "measure": (
        "measure",
        "{} has its own loss. --valid-measure sets the measure on validation data.",
    ),
    "submodel": ("submodel", "{} cannot start from another model. Leave it out."),
    "base_score": ("submodel", "{} cannot start from another ranker's scores. Leave it out."),
    "checkpoint": ("checkpoint", "{} cannot continue a killed run. Leave it out."),
    "n_threads": ("n_threads", "{} runs on one thread. Leave it out."),
    "position": ("position_bias", "{} does not correct for positions. Leave it out."),
}


def _check_takes(
    base: Ranker,
    ranker: str,
    options: Mapping[str, object],
    start: Path | None,
    models: int | None,
) -> None:
    """Refuse options that a ranker cannot use; the message names the option."""
    if start is not None and ("start" not in base.fit_takes or models):
        learner = "a bag" if models else ranker
        raise ParameterError(
            f"--start begins with a net's weights, which {learner} cannot do. Leave it out."
        )
    known = base.get_params(deep=False)
    for name, value in options.items():
        parameter, reason = _NEEDED[name]
        if value is not None and parameter not in known:
            option = "--threads" if name == "n_threads" else f"--{name.replace('_', '-')}"
            raise ParameterError(f"{option} {value}: {reason.format(ranker)}")


def _check_positions(
    base: Ranker, reading: Reading, of_valid: list[str] | None, cluster: str | None
) -> None:
    """Refuse a correction without positions, and positions that nothing uses."""
    method = getattr(base, "position_bias", None)
    if method is not None and reading.position is None:
        raise ParameterError(
            f"position_bias={method} corrects for positions, and there are none: give --position, "
            "the file that 'rankgrove clicks data' writes next to the rows, or a column of a table."
        )
    if reading.position is not None and method is None:
        typer.echo(
            "note: positions are not used without a correction: give --set position_bias=additive, "
            "ips, or another method ('rankgrove params' has them).",
            err=True,
        )
    if of_valid and reading.position is None:
        raise ParameterError("--valid-position is used with --position: give that too.")
    if of_valid and cluster is not None:
        raise ParameterError(
            "On a cluster, validation tables have the column of --position: leave --valid-position "
            "out."
        )
    if reading.position_context is not None and reading.position is None:
        raise ParameterError("--position-context is used with --position: give that too.")


def _check_share(
    share: float | None, valid: list[str] | None, ranker: Ranker
) -> tuple[float, int] | None:
    """Return the share of queries to hold out, and the seed of the draw."""
    if share is None:
        return None
    if valid:
        raise ParameterError("Give --valid or --valid-share: both are validation data.")
    if not 0.0 < share < 1.0:
        raise ParameterError(
            f"--valid-share is a share of the queries: above 0, below 1. Got {share}."
        )
    return share, int(ranker.get_params(deep=False).get("random_state", 0) or 0)


def _load_submodel(base: Ranker, base_score: str | None) -> dict[str, Any]:
    """Load the submodel that a ranker starts from; return it if it knows its features."""
    from rankgrove.rankers.trees.starts import BASE_SCORE, needs_base_score, resolve

    if base_score is not None and getattr(base, "submodel", None) is None:
        base.set_params(submodel=BASE_SCORE)
    submodel = resolve(getattr(base, "submodel", None), "train")
    if needs_base_score(submodel) and base_score is None:
        raise ParameterError(
            "The ranker starts from scores that come with the data: give --base-score."
        )
    if base_score is not None and not needs_base_score(submodel):
        raise ParameterError("Give either a submodel or --base-score.")
    if submodel is not None:
        base.set_params(submodel=submodel)
    return {"to start from": submodel} if hasattr(submodel, "n_features_in_") else {}


def _bag_of(
    base: Ranker,
    models: int,
    options: Mapping[str, Any],
    checkpoint: Path | None,
    threads: int | None,
    quiet: bool,
) -> Ranker:
    """Return a bag of rankers like `base`."""
    import rankgrove as rg

    return rg.BaggedRanker(
        base,
        models,
        **options,
        checkpoint=checkpoint,
        random_state=base.get_params(deep=False).get("random_state", 0),
        n_threads=threads,
        progress=not quiet,
    )


# -- the files ----------------------------------------------------------------------------------


def _check_files(
    ranker: Ranker,
    out: Path,
    data: list[Path],
    sets: Mapping[str, list[Path]],
    base_score: str | None,
    valid_scores: list[str | None],
    others: list[Path | None],
) -> None:
    """Refuse files to write that are also read, or cannot be written."""
    from rankgrove.cli.outputs import check_outputs
    from rankgrove.data.file_kinds import is_table
    from rankgrove.validation import check_output_file

    score_files = [*valid_scores, None if is_table(data) else base_score]
    read = [*data, *itertools.chain(*sets.values()), *others]
    read += [Path(name) for name in score_files if name is not None]
    kept = getattr(ranker, "checkpoint", None)
    state = None if kept is None else Path(kept)
    check_outputs({"--out": out, "--checkpoint": state}, read)
    check_output_file("--out", "train", out)


def _valid_base_scores(
    base_score: str | None, valid: list[list[Path]], valid_base_score: list[str] | None
) -> list[str | None]:
    """Return where the base scores of every validation set are: a column, or a file of scores."""
    from rankgrove.data.file_kinds import is_table

    if valid_base_score is not None:
        if len(valid_base_score) != len(valid):
            raise ParameterError(
                f"Give one --valid-base-score for each --valid. Got {len(valid_base_score)} for "
                f"{len(valid)}."
            )
        return list(valid_base_score)
    if base_score is not None and not all(is_table(files) for files in valid):
        raise ParameterError("The validation data needs base scores too: give --valid-base-score.")
    return [base_score] * len(valid)


def _valid_positions(
    sets: Mapping[str, list[Path]], valid_position: list[str] | None
) -> list[str | None]:
    """Return where the positions of every validation set are; None: it has judgements."""
    if valid_position is None:
        return [None] * len(sets)
    if len(valid_position) != len(sets):
        raise ParameterError(
            f"Give one --valid-position for each --valid. Got {len(valid_position)} for "
            f"{len(sets)}."
        )
    return list(valid_position)


def _position_files(
    position: str | None,
    data: list[Path],
    sets: Mapping[str, list[Path]],
    places: list[str | None],
) -> list[Path | None]:
    """Return the files of positions; those of tables are columns."""
    from rankgrove.data.file_kinds import is_table

    named = [(position, data), *zip(places, sets.values(), strict=True)]
    return [None if name is None or is_table(files) else Path(name) for name, files in named]
