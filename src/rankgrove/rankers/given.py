"""Arguments of a ranker's methods: a data set or arrays, validation data, features by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.dataset_checks import check_features
from rankgrove.data.queries import QueryDataset
from rankgrove.data.tabular import column_names
from rankgrove.errors import DataError, ParameterError
from rankgrove.validation import counted, nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Features, Matrix
    from rankgrove.rankers.base import Ranker

    # Documents as a caller may give them: a data set, or features.
    Documents: TypeAlias = QueryDataset | Features

# The value of absent features, for messages.
WORDS = {"zero": "0", "missing": "missing"}


def as_dataset(
    X: Documents,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    owner: str,
    weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    base_score: ArrayLike | None = None,
) -> QueryDataset:
    """Return data, given as a data set or as features, labels and query ids, as a data set."""
    if isinstance(X, QueryDataset):
        if any(argument is not None for argument in (y, qid, weight, query_weight, base_score)):
            raise DataError(
                f"{owner}: a QueryDataset holds its own labels, query ids, weights and base "
                "scores: pass them to the QueryDataset."
            )
        return X
    refuse_file(X, owner)
    if y is None or qid is None:
        missing = (
            "requires y to be passed, but the target y is None"
            if y is None
            else "needs query ids (qid=)"
        )
        raise DataError(
            f"{owner} {missing}: give a QueryDataset, or X, y and qid. In scikit-learn's "
            "searches and pipelines enable metadata routing, and pass qid."
        )
    names = frame_names(X)
    return QueryDataset(
        X,
        y,
        qid,
        weight=weight,
        query_weight=query_weight,
        feature_names=names,
        base_score=base_score,
    )


def with_queries(ranker: Ranker, X: Documents, qid: ArrayLike | None, owner: str) -> Documents:
    """Return documents with their queries, where query ids are given.

    Without them, a ranker that scales something within queries is refused.
    """
    if isinstance(X, QueryDataset):
        return X
    if qid is not None:
        # tables are coded by the names of their categories first
        data = as_dataset(ranker._aligned(X, owner), np.zeros(np.size(qid)), qid, owner)
        return data.with_codes_of(dict(ranker.categories_))
    scaled = ranker.scaled_by_query()
    if scaled is not None:
        raise DataError(
            f"{owner}: the model scales {scaled} within every query, so it needs the queries: give "
            "it a QueryDataset, or qid=."
        )
    return X


def query_ids(
    qid: ArrayLike | None, group: ArrayLike | None, owner: str, n_rows: int | None = None
) -> Any:
    """Return the query id of every row, from `qid` or from the number of rows of every query."""
    if group is None:
        return qid
    if qid is not None:
        raise DataError(f"{owner}: qid and group mean the same: give one of them.")
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise DataError(
            f"{owner}: group is the number of rows of every query, in the order of the rows: whole "
            f"numbers of at least 1. Got {np.array2string(sizes, threshold=8)}."
        )
    if n_rows is not None and sizes.sum() != n_rows:
        raise DataError(
            f"{owner}: the sizes of group add up to {int(sizes.sum()):,}, and there are "
            f"{counted(n_rows, 'row')}: give the number of rows of every query, in the order of "
            "the rows."
        )
    return np.repeat(np.arange(sizes.size), sizes)


def valid_datasets(
    valid: Any, owner: str, eval_set: Any = None, eval_group: Any = None, eval_qid: Any = None
) -> dict[str, QueryDataset]:
    """Return validation data by name, from a data set, (X, y, qid), or a dict or list of those.

    Or from `eval_set`, `eval_group` and `eval_qid`, as in LightGBM and XGBoost.
    """
    if eval_set is not None:
        if valid is not None:
            raise DataError(f"{owner}: valid and eval_set are the same thing: give one of them.")
        valid = _eval_sets(eval_set, eval_group, eval_qid, owner)
    elif eval_group is not None or eval_qid is not None:
        raise DataError(f"{owner}: eval_group and eval_qid belong to an eval_set: give it too.")
    if valid is None:
        return {}
    if isinstance(valid, dict):
        return {str(name): _one_valid(data, owner) for name, data in valid.items()}
    if isinstance(valid, list):
        return {f"valid {i}": _one_valid(data, owner) for i, data in enumerate(valid, 1)}
    return {"valid": _one_valid(valid, owner)}


def training_data_last(
    watched: dict[str, QueryDataset], eval_set: Any, X: Documents
) -> dict[str, QueryDataset]:
    """Return validation data with the training data, if it is in `eval_set`, at the end.

    As in LightGBM, it is measured but does not decide when to stop.
    """
    if eval_set is None or isinstance(eval_set, tuple | QueryDataset):
        return watched
    is_train = [X is (data[0] if isinstance(data, tuple | list) else data) for data in eval_set]
    order = sorted(zip(is_train, watched.items(), strict=True), key=lambda pair: pair[0])
    return dict(item for _, item in order)


def _eval_sets(eval_set: Any, eval_group: Any, eval_qid: Any, owner: str) -> list[Any]:
    """Return (X, y) pairs with their queries as (X, y, qid)."""
    sets = [eval_set] if isinstance(eval_set, tuple | QueryDataset) else list(eval_set)
    queries: dict[str, list[Any]] = {}
    for name, values in (("eval_group", eval_group), ("eval_qid", eval_qid)):
        listed = [None] * len(sets) if values is None else list(values)
        if len(listed) != len(sets):
            raise DataError(
                f"{owner}: {name} has {len(listed)} entries for {counted(len(sets), 'eval_set')}: "
                "give a list with one entry for each."
            )
        queries[name] = listed
    datasets: list[Any] = []
    for data, group, qid in zip(sets, *queries.values(), strict=True):
        if not (isinstance(data, tuple | list) and len(data) == 2):
            datasets.append(data)
            continue
        X, y = data
        ids = query_ids(qid, group, owner, np.size(y))
        if ids is None:
            raise DataError(
                f"{owner}: validation measures rankings within queries: give eval_group (rows of "
                "every query) or eval_qid with eval_set."
            )
        datasets.append((X, y, ids))
    return datasets


def _one_valid(valid: Any, owner: str) -> QueryDataset:
    if isinstance(valid, QueryDataset):
        return valid
    if isinstance(valid, tuple) and len(valid) == 3:
        return as_dataset(*valid, owner)
    if isinstance(valid, tuple) and len(valid) == 2:
        raise DataError(
            f"{owner}: validation measures rankings within queries: give (X, y, qid), not (X, y)."
        )
    refuse_file(valid, owner)
    raise DataError(
        f"{owner}: validation data is a QueryDataset or (X, y, qid). Got {type(valid).__name__}."
    )


def one_weight(weight: ArrayLike | None, sample_weight: ArrayLike | None, owner: str) -> Any:
    """Return the weights of rows, given under either name."""
    if weight is not None and sample_weight is not None:
        raise ParameterError(f"{owner}: weight and sample_weight are the same thing: give one.")
    return sample_weight if weight is None else weight


def refuse_file(data: object, owner: str) -> None:
    """Refuse the name of a file where data is needed."""
    if isinstance(data, str | Path):
        raise DataError(
            f"{owner} takes data, not the name of a file: read it first with "
            f"rg.read_letor({str(data)!r}), or with rg.read_table for a CSV or parquet file."
        )


def features_of(
    X: Documents, owner: str, *, double: bool = False, n_threads: int | None = 1
) -> tuple[Matrix, Rows]:
    """Return the feature matrix (float32, dense or CSR) and which of its rows to use.

    With `double`, features become float64 unless they are float32 or in a data set.
    """
    if isinstance(X, QueryDataset):
        return X.features, X.rows
    refuse_file(X, owner)
    try:
        n_rows = row_count(X)
    except TypeError:
        raise DataError(f"{owner} needs a data set or features. Got {type(X).__name__}.") from None
    return check_features(X, n_rows, double=double, n_threads=n_threads), None


def row_count(X: Any) -> int:
    """Return the number of rows of a data set or of features."""
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def frame_names(X: object) -> list[str] | None:
    """Return the column names of a table, or None for anything else."""
    if hasattr(X, "tocsr") or not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return None
    return [str(name) for name in column_names(X)]


def check_names(expected: Sequence[str] | None, names: Sequence[str] | None, owner: str) -> None:
    """Refuse data whose features have other names or another order than in training."""
    if expected is None or names is None or list(expected) == list(names):
        return
    if sorted(expected) == sorted(names):
        raise DataError(
            f"{owner}: the features have the names of the training data, but in another order. "
            f"Put them in this order: {', '.join(expected[:5])}, ..."
        )
    other = next(name for name in names if name not in set(expected))
    raise DataError(
        f"{owner}: the data has a feature {other!r} that the training data did not have"
        f"{nearest(other, expected)}."
    )


def check_qid(qid: ArrayLike, n_rows: int, owner: str) -> None:
    """Refuse query ids if there is not one per row."""
    if np.size(qid) != n_rows:
        raise DataError(f"{owner}: X has {counted(n_rows, 'row')}, and qid {np.size(qid):,} ids.")


def is_other_width(ranker: Ranker, n_features: int) -> bool:
    """Whether data has another number of features than a trained ranker."""
    if getattr(ranker, "least_features_", False):  # its model file only names the features it uses
        return n_features < ranker.n_features_in_
    return n_features != ranker.n_features_in_


def width_text(model: str, known: int, data: str, n_features: int, absent: str) -> str:
    """Return the warning for text data whose number of features is not the model's."""
    begin = f"{model} has {counted(known, 'feature')}, {data} {n_features:,}: "
    n = abs(known - n_features)
    last = "the last one is" if n == 1 else f"the last {n:,} are"
    return f"{begin}{last} {f'taken as {WORDS[absent]}' if n_features < known else 'left out'}."
