"""How `train` trains: in memory, in little memory, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankgrove.cli.options import Reading
from rankgrove.data.file_kinds import is_folder_of_bins, is_table
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset
    from rankgrove.rankers.base import Ranker


def local_fit(
    ranker: Ranker,
    data: list[Path],
    sets: Mapping[str, list[Path]],
    scores: list[str | None],
    places: list[str | None],
    reading: Reading,
    known: dict[str, Any],
    held_out: tuple[float, int] | None,
    quiet: bool,
) -> Callable[..., Any]:
    """Read the data; return the function that trains on it in this process."""
    from rankgrove.cli.ahead import compile_ahead
    from rankgrove.data.folds import hold_out

    compile_ahead(ranker.kind)
    train_data = reading.load(data, models=known)
    # Weights are for training: a validation file need not have them.
    used = train_data.feature_names if reading.weight else reading.features
    valid_data = {
        name: reading.load_like(
            train_data,
            files,
            features=used,
            weight=None,
            base_score=column,
            position=place,
            position_context=reading.position_context if place else None,
        )
        for (name, files), column, place in zip(sets.items(), scores, places, strict=True)
    }
    if held_out is not None:
        share, seed = held_out
        train_data, valid_data["held out"] = hold_out(train_data, share, seed=seed)
    if not quiet:
        typer.echo(f"training on {train_data!r}", err=True)
        if held_out is not None:
            typer.echo(f"held out for validation: {valid_data['held out']!r}", err=True)
    return partial(ranker.fit, train_data, valid=valid_data or None)


def refuse_with_low_memory(
    ranker: Ranker,
    name: str,
    cluster: str | None,
    reading: Reading,
    known: Mapping[str, Any],
    steps: Mapping[str, Any],
) -> None:
    """Refuse what needs the features themselves; `steps` are options that prepare them."""
    if ranker.kind == "prepared":
        given = [f"--{step} {value}" for step, value in steps.items() if value is not None]
        raise ParameterError(
            f"{given[0] if given else '--features FILE'} does not work with --low-memory, which "
            "keeps no features. Leave one of them out."
        )
    if not ranker.uses_bins:
        raise ParameterError(
            f"--low-memory trains rankers of trees on bins (lambdamart, mart, mcrank, gbrank, "
            f"randomforest), and {name} needs the features. Leave it out."
        )
    if cluster is not None:
        raise ParameterError("--low-memory does not work with --cluster. Leave one of them out.")
    if known:
        raise ParameterError(
            "--submodel scores the features, which --low-memory does not keep. Leave one of them "
            "out."
        )
    if reading.base_score is not None:
        raise ParameterError("--base-score does not work with --low-memory. Leave one of them out.")


def low_memory_fit(
    ranker: Ranker,
    data: list[Path],
    sets: Mapping[str, list[Path]],
    places: list[str | None],
    reading: Reading,
    folder: Path | None,
    held_out: tuple[float, int] | None,
    quiet: bool,
) -> Callable[..., Any]:
    """Make bins of the data on disk; return the function that trains on them."""
    import rankgrove as rg
    from rankgrove.cli.inputs import with_positions
    from rankgrove.data.folds import hold_out

    if reading.position is not None and is_table(data):
        raise ParameterError(
            "--low-memory takes positions of LETOR text, from a file. Leave --position or "
            "--low-memory out."
        )
    inner = ranker.base if ranker.is_bag else ranker
    same: dict[str, Any] = {"n_threads": ranker.get_params(deep=False).get("n_threads")}
    same |= {"progress": not quiet, "say": partial(typer.echo, err=True) if not quiet else None}
    if len(data) == 1 and is_folder_of_bins(data[0]):
        if folder is not None:
            raise ParameterError(f"{data[0]} is a folder of bins already: leave out --bins.")
        _refuse_reading(data[0], reading, [file for files in sets.values() for file in files])
        like = rg.open_binned(data[0], max_bins=inner.max_bins)
    else:
        columns = _workers_reading(data, reading)
        columns.pop("cache", None)
        _refuse_other_kinds(data, sets)
        like = rg.open_binned(data, folder=folder, max_bins=inner.max_bins, **same, **columns)
    train: QueryDataset = like
    valid: dict[str, QueryDataset] = {}
    for (name, files), place in zip(sets.items(), _places(folder, sets), strict=True):
        if len(files) == 1 and is_folder_of_bins(files[0]):
            valid[name] = rg.open_binned(files[0])  # `fit` refuses other bins
            continue
        of_valid = {
            option: getattr(reading, option)
            for option in (("label", "qid") if is_table(files) else ("zero_based",))
        }
        valid[name] = rg.open_binned(files, folder=place, like=like, **same, **of_valid)
    if reading.position is not None:
        train = with_positions(train, reading.position)
    for name, positions in zip(sets, places, strict=True):
        if positions is not None:
            valid[name] = with_positions(valid[name], positions)
    if held_out is not None:
        share, seed = held_out
        train, valid["held out"] = hold_out(train, share, seed=seed)
    if not quiet:
        typer.echo(f"training on {train!r}", err=True)
        if held_out is not None:
            typer.echo(f"held out for validation: {valid['held out']!r}", err=True)

    def fit(**more: Any) -> Any:
        try:
            return ranker.fit(train, valid=valid or None, **more)
        except KeyboardInterrupt:
            if ranker.is_bag or getattr(ranker, "interrupted_", False):
                raise  # what is kept is said by the caller
            typer.echo(f"interrupted: no model was written; {like.folder} is kept.", err=True)
            raise typer.Exit(130) from None

    return fit


def _places(folder: Path | None, sets: Mapping[str, list[Path]]) -> list[Path | None]:
    """Return the folders of the bins of validation data, next to a folder of training data."""
    if folder is None:
        return [None] * len(sets)
    places: list[Path | None] = []
    for name in sets:
        place = folder.with_name(f"{folder.name}.{name.replace('/', '-').replace(os.sep, '-')}")
        while place in places:
            place = place.with_name(f"{place.name}-{len(places) + 1}")
        places.append(place)
    return places


def _refuse_reading(folder: Path, reading: Reading, valid: list[Path]) -> None:
    """Refuse options of reading for bins that were made before, unless validation data uses them.

    Validation data in bins uses none.
    """
    files = [file for file in valid if not is_folder_of_bins(file)]
    used = {"cache"}
    if any(is_table([file]) for file in files):
        used |= {"label", "qid"}
    if not all(is_table([file]) for file in files):
        used |= {"zero_based"}
    plain = asdict(Reading())
    for name, value in asdict(reading).items():
        if value != plain[name] and name not in used:
            raise ParameterError(
                f"{folder} is a folder of bins, which were made already: leave "
                f"--{name.replace('_', '-')} out, or make the bins again from the data."
            )


def _refuse_other_kinds(data: list[Path], sets: Mapping[str, list[Path]]) -> None:
    """Refuse text for validation where the training data is a table, and the reverse."""
    for files in sets.values():
        if is_folder_of_bins(files[0]) or is_table(files) == is_table(data):
            continue
        kinds = {True: "a table", False: "LETOR text"}
        raise ParameterError(
            f"--valid {files[0]} is {kinds[is_table(files)]}, and the training data {data[0]} is "
            f"{kinds[is_table(data)]}: their features cannot be matched. Give both in one format."
        )


def cluster_fit(
    ranker: Ranker,
    name: str,
    data: list[Path],
    sets: Mapping[str, list[Path]],
    reading: Reading,
    cluster: str,
    held_out: tuple[float, int] | None,
) -> Callable[..., Any]:
    """Return the function that trains on a cluster; refuse options that it does not support."""
    from rankgrove.data.file_kinds import is_table

    columns = _workers_reading(data, reading)
    if ranker.kind == "prepared":
        raise ParameterError(
            "--normalise, --transform, --encode and --features FILE do not work with --cluster, "
            "whose workers read the files. Leave one of them out."
        )
    if not hasattr(ranker, "fit_files"):
        raise ParameterError(f"--cluster trains a lambdamart, not a {name}. Leave it out.")
    if reading.base_score is not None:
        raise ParameterError("--base-score does not work with --cluster. Leave one of them out.")
    if held_out is not None:
        raise ParameterError("--valid-share does not work with --cluster: give --valid FILE.")
    if reading.position is not None and not is_table(data):
        raise ParameterError(
            "--cluster takes positions from a column of CSV or parquet files. Leave --position or "
            "--cluster out."
        )
    return partial(ranker.fit_files, data, cluster=cluster, valid=sets or None, **columns)


def _workers_reading(data: list[Path], reading: Reading) -> dict[str, Any]:
    """Return the arguments with which a cluster's workers read the files."""
    from rankgrove.cli.inputs import (
        categorical_list,
        feature_list,
        listed_names,
        refuse_table_options,
    )

    columns = asdict(reading)
    chosen = categorical_list(reading.categorical)
    if not is_table(data):
        refuse_table_options(data[0], columns)
        return (
            {name: columns[name] for name in ("cache", "zero_based")}
            | ({"absent": str(reading.absent)} if reading.absent else {})
            | ({"categorical": chosen} if chosen else {})
        )
    if reading.zero_based:
        raise ParameterError("--zero-based is for LETOR files. Leave it out.")
    names = ("label", "qid", "docid", "weight")
    more = {
        "position": reading.position,
        "position_context": listed_names(reading.position_context),
    }
    return {
        **{name: columns[name] for name in names},
        **{name: value for name, value in more.items() if value is not None},
        "features": feature_list(reading.features),
        "categorical": chosen,
    }
