"""Rankers inside a ranker's model file: a submodel, the members of a combination or a bag.

A ranker of ours is written into the file of the one that holds it, so that the file stands alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.rankers.base import KINDS, Ranker


def pack(ranker: Ranker, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a trained ranker's content, and its arrays under ``name/``."""
    content, arrays = ranker.to_state()
    return {"kind": ranker.kind, **content}, {f"{name}/{key}": a for key, a in arrays.items()}


def unpack(content: dict[str, Any], arrays: dict[str, np.ndarray], name: str) -> Ranker:
    """Build the ranker that :func:`pack` packed."""
    kind = content["kind"]
    if kind not in KINDS:
        raise ModelFileError(f"The file holds a {kind!r}, which is not a ranker it could hold.")
    own = f"{name}/"
    inner = {key.removeprefix(own): a for key, a in arrays.items() if key.startswith(own)}
    return KINDS[kind].restore(content, inner)
