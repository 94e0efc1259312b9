"""All kinds of rankers: which can be trained, and reading a trained one back."""

from __future__ import annotations

from pathlib import Path

from rankgrove.errors import ModelFileError
from rankgrove.model.store import read_model
from rankgrove.rankers import (  # noqa: F401  (they enter themselves)
    adarank,
    bagged,
    combination,
    forest,
    frank,
    gbrank,
    lambdamart,
    mart,
    mcrank,
    nets,
    rankboost,
    stacking,
    svm,
    svm_acc,
    trada,
)
from rankgrove.rankers.base import KINDS, Ranker, class_of


def trainable() -> dict[str, type[Ranker]]:
    """Return the rankers that are trained from parameters and data alone, by kind."""
    return {kind: ranker for kind, ranker in KINDS.items() if ranker.trainable}


def load(path: str | Path) -> Ranker:
    """Read a trained ranker from a file.

    Examples
    --------
    >>> import tempfile, pathlib, rankgrove as rg
    >>> data = rg.make_artificial(20, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.rg")
    >>> rg.LambdaMART(n_trees=2).fit(data).save(path)
    >>> rg.load(path)
    LambdaMART(n_trees=2)
    """
    kind, content, arrays = read_model(path)
    try:
        return class_of(kind).restore(content, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error!r}.") from None
