"""All kinds of rankers: which of them can be trained, and how model files are read."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.formats.read import DUMP, kind_of, read_foreign
from rankgrove.model.store import read_model
from rankgrove.rankers import foreign_models
from rankgrove.rankers.auto import auto  # noqa: F401
from rankgrove.rankers.base import KINDS, Ranker
from rankgrove.rankers.ensembles import (  # noqa: F401
    bagged,
    calibrated,
    combination,
    early_exit,
    prepared,
    stacking,
)
from rankgrove.rankers.linear import (  # noqa: F401  (importing registers rankers in KINDS)
    adarank,
    coordinate_ascent,
    crr,
    rank_svm,
    smooth_rank,
    structural_svm,
    svm_acc,
)
from rankgrove.rankers.nets import boltzrank, lambda_nets, listnet  # noqa: F401
from rankgrove.rankers.restoring import restored
from rankgrove.rankers.trees import (  # noqa: F401
    forest,
    frank,
    gbrank,
    lambdamart,
    mart,
    mcrank,
    rankboost,
    trada,
)
from rankgrove.validation import refuse

OTHERS = (
    "nor one of LightGBM (save_model, or dump_model as JSON), XGBoost (save_model as .json or "
    ".ubj, or dump_model as JSON), RankLib, QuickRank or Solr."
)
_log = logging.getLogger("rankgrove")


def trainable() -> dict[str, type[Ranker]]:
    """Return the rankers that are trained from parameters and data alone, by kind."""
    return {kind: ranker for kind, ranker in KINDS.items() if ranker.trainable}


def load(
    path: str | Path | Any,
    *,
    features: Sequence[str] | None = None,
    base_score: float | None = None,
) -> Ranker:
    """Read a trained ranker from a file: a rankgrove model, or one of another library.

    The format is recognised from the content. LightGBM's text files and dumped JSON, XGBoost's JSON
    and UBJ files and its dumped JSON, and the trees of RankLib, QuickRank and Solr become a
    :class:`TreeRanker`; RankLib's linear models become a :class:`WeightRanker`. Scores are the
    other library's to the last bit.

    Parameters
    ----------
    path : the file; or a LightGBM or XGBoost model in memory (Booster, LGBMRanker, XGBRanker)
    features : for an XGBoost dump with feature names: all names in the order of the data's columns,
        which the dump does not hold
    base_score : for an XGBoost dump: the margin that scores start from, which the dump does not
        hold; None: 0, and a warning

    Examples
    --------
    >>> import tempfile, pathlib, rankgrove as rg
    >>> data = rg.make_artificial(20, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.rg")
    >>> rg.LambdaMART(n_trees=2).fit(data).save(path)
    >>> rg.load(path)
    LambdaMART(n_trees=2)
    """
    if not isinstance(path, str | Path):
        model = foreign_models.of_object(path)
        if isinstance(model, Ranker):
            return model
        refuse("path", "load", "the path of a model file, or a LightGBM or XGBoost model", path)
    seems = kind_of(path) if Path(path).is_file() else "rankgrove"
    if seems is None and Path(path).stat().st_size and not zipfile.is_zipfile(path):
        raise ModelFileError(f"{path} is not a rankgrove model, {OTHERS}")
    of_dumps = {"features": features, "base_score": base_score}
    for name, value in of_dumps.items():
        if value is not None and seems != DUMP:
            raise ParameterError(
                f"load: {name}= is only for a dump of XGBoost (dump_model as JSON), and {path} "
                "is none: leave it out."
            )
    if seems not in (None, "rankgrove"):
        model = read_foreign(path, seems, features, base_score)
        for note in getattr(model, "notes", ()):
            _log.warning("%s: %s", path, note)
        return foreign_models.ranker_of(model)
    kind, content, arrays = read_model(path)
    try:
        return restored(kind, content, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
