"""Rankers inside a ranker's model file: a submodel, the members of a combination or a bag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.model.sense import table
from rankgrove.rankers.base import Arrays, Content, Ranker, plain_parameters, untrained
from rankgrove.rankers.restoring import restored
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents


def pack(ranker: Ranker, name: str) -> tuple[Content, Arrays]:
    """Return a trained ranker's content, and its arrays under ``name/``."""
    content, arrays = ranker.to_state()
    return {"kind": ranker.kind, **content}, {f"{name}/{key}": a for key, a in arrays.items()}


def unpack(content: Content, arrays: Arrays, name: str) -> Ranker:
    """Build the ranker that :func:`pack` packed."""
    prefix = f"{name}/"
    inner = {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
    return restored(str(table(content, f"the {name}")["kind"]), content, inner)


def pack_members(
    rankers: Sequence[Any], what: str, name: str = "ranker"
) -> tuple[list[Content], Arrays]:
    """Return the contents and the arrays of the rankers that `what` ("a combination") holds.

    Arrays are under ``name 0/``, ``name 1/``, ...
    """
    packed: list[Content] = []
    arrays: Arrays = {}
    for i, ranker in enumerate(rankers):
        if not isinstance(ranker, Ranker):
            raise ParameterError(
                f"{what[0].upper()}{what[1:]} with a {type(ranker).__name__} cannot be saved: only "
                "rankers of rankgrove have a model file. Keep its scores instead."
            )
        content, inside = pack(ranker, f"{name} {i}")
        packed.append(content)
        arrays |= inside
    return packed, arrays


def unpack_members(
    packed: Sequence[Content], arrays: Arrays, name: str = "ranker"
) -> tuple[Ranker, ...]:
    """Build the rankers that :func:`pack_members` packed."""
    return tuple(unpack(content, arrays, f"{name} {i}") for i, content in enumerate(packed))


def described(ranker: Ranker) -> Content:
    """Return an untrained ranker as plain values: its kind, its parameters, and its base ranker."""
    content = {"kind": ranker.kind, "parameters": plain_parameters(ranker)}
    inner = getattr(ranker, "base", None)
    return content | ({"base": described(inner)} if isinstance(inner, Ranker) else {})


def undescribed(content: Content) -> Ranker:
    """Return the untrained ranker of :func:`described`."""
    content = table(content, "an untrained ranker")
    ranker = untrained(content["kind"], content["parameters"])
    if "base" in content and "base" in ranker.held:
        ranker.set_params(base=undescribed(content["base"]))
    return ranker


def loaded(model: Any, name: str, owner: str, rule: str) -> Any:
    """Return the model of a model file; anything but a path is returned unchanged."""
    if not isinstance(model, str | Path):
        return model
    if not Path(model).is_file():
        refuse(name, owner, f"{rule}, and there is no such file", str(model))
    from rankgrove.rankers.load import load  # imports all rankers

    return load(model)


def check_members(rankers: Any, least: int, owner: str) -> None:
    """Refuse anything but a list of enough rankers."""
    if isinstance(rankers, str) or not hasattr(rankers, "__len__"):
        refuse("rankers", owner, "a list of trained rankers", rankers)
    if len(rankers) < least:
        few = counted(least, "ranker")
        raise ParameterError(f"{owner} needs at least {few}. Got {len(rankers)}.")
    for ranker in rankers:
        if not hasattr(ranker, "predict"):
            raise ParameterError(
                f"{owner} needs rankers, which can score other data. Got {type(ranker).__name__}: "
                "combine scores with rankgrove.interpolate."
            )


def loaded_members(rankers: Any, least: int, owner: str) -> Any:
    """Return the list of rankers, after loading those given as model files."""
    if isinstance(rankers, Sequence) and not isinstance(rankers, str):
        rule = "a list of trained rankers or of model files"
        rankers = [loaded(ranker, "rankers", owner, rule) for ranker in rankers]
    check_members(rankers, least, owner)
    return rankers


def member_scores(model: Any, X: Documents, n_threads: int | None) -> np.ndarray:
    """Return the scores of a ranker, or of any other model with ``predict``."""
    if getattr(model, "takes_datasets", False):
        return np.asarray(model.predict(X, n_threads=n_threads))
    features = X.X if isinstance(X, QueryDataset) else X
    return np.asarray(model.predict(features), np.float64).reshape(-1)
