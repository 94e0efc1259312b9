"""TREC runs and judgements, and the data sets that are made from them.

`pool` joins a run with judgements, to evaluate it. `dataset_from_runs` makes the scores of several
runs the features of a data set. Files are read and written in `trec_files`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec_files import read_qrels, read_run, run_of_scores, write_run
from rankgrove.data.trec_tables import as_qrels, as_run
from rankgrove.data.trec_values import Qrels, Run, check_qrels, check_run
from rankgrove.errors import DataError
from rankgrove.validation import check_choice

if TYPE_CHECKING:
    from rankgrove.data.trec_tables import RunLike

    # A run in any form, or the path of a run file.
    AnyRun: TypeAlias = RunLike | str | Path

__all__ = [
    "Qrels",
    "Run",
    "as_qrels",
    "as_run",
    "dataset_from_runs",
    "judged_rows",
    "pool",
    "read_qrels",
    "read_run",
    "run_of_scores",
    "with_irrelevant_document",
    "write_run",
]


def pool(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    complete: bool = False,
) -> tuple[QueryDataset, np.ndarray]:
    """Return a data set without features, and scores, to evaluate a run as trec_eval does.

    Every query that is in both has its retrieved and its judged documents. The rows of a query are
    in descending order of document id, so that breaking ties by row order breaks them as trec_eval
    does. Scores are rounded to float32, as in trec_eval; scores that are then equal are tied.

    Parameters
    ----------
    run, qrels : as read by `read_run` and `read_qrels`, or plain mappings of that form
    complete : also include the judged queries that are not in the run, with nothing retrieved
        (trec_eval's ``-c``)

    Returns
    -------
    dataset : labels are the grades; retrieved documents without a judgement have label 0
    scores : one per row; minus infinity for a document that was judged but not retrieved

    Examples
    --------
    >>> dataset, scores = pool({"7": {"a": 1.0, "b": 2.0}}, {"7": {"b": 1, "c": 2}})
    >>> dataset.docid.tolist(), dataset.y.tolist(), scores.tolist()
    (['c', 'b', 'a'], [2.0, 1.0, 0.0], [-inf, 2.0, 1.0])
    """
    check_run(run)
    check_qrels(qrels)
    if not any(qid in run for qid in qrels):
        raise DataError(
            f"The run ({_excerpt(run)}) and the qrels ({_excerpt(qrels)}) have no query in common"
            f"{_other_types(run, qrels)}."
        )
    qids: list[str] = []
    docids: list[str] = []
    labels: list[int] = []
    scores: list[float] = []
    for qid, judged in qrels.items():
        if qid not in run and not complete:
            continue
        retrieved = run.get(qid, {})
        documents = _descending({**judged, **retrieved})
        qids += [qid] * len(documents)
        docids += documents
        labels += [judged.get(document, 0) for document in documents]
        scores += [retrieved.get(document, -math.inf) for document in documents]
    dataset = QueryDataset(None, labels, qid=qids, docid=docids)
    return dataset, _as_float32(np.array(scores))


def judged_rows(pooled: QueryDataset, qrels: Mapping[str, Mapping[str, object]]) -> np.ndarray:
    """Return which rows of a data set of `pool` have an entry in the qrels."""
    entries = {qid: set(map(str, documents)) for qid, documents in qrels.items()}
    assert pooled.docid is not None
    rows = zip(pooled.qid.tolist(), pooled.docid.tolist(), strict=True)
    return np.array([docid in entries[qid] for qid, docid in rows])


def with_irrelevant_document(
    pooled: QueryDataset, scores: np.ndarray
) -> tuple[QueryDataset, np.ndarray]:
    """Add a document that is neither retrieved nor relevant to queries whose pool has none.

    The collection always has one. Measures of pairs need it: a relevant document that was
    retrieved is ranked above it.

    Examples
    --------
    >>> dataset, scores = pool({"7": {"a": 1.0}}, {"7": {"a": 1}})
    >>> dataset, scores = with_irrelevant_document(dataset, scores)
    >>> dataset.y.tolist(), scores.tolist()
    ([1.0, 0.0], [1.0, -inf])
    """
    ends = pooled.query_ptr[1:]
    lacking = np.minimum.reduceat(pooled.y, pooled.query_ptr[:-1]) > 0.0
    if not lacking.any():
        return pooled, scores
    labels = np.insert(pooled.y, ends[lacking], 0.0)
    qid = np.insert(pooled.qid, ends[lacking], pooled.query_ids[lacking])
    return QueryDataset(None, labels, qid=qid), np.insert(scores, ends[lacking], -np.inf)


def _as_float32(scores: np.ndarray) -> np.ndarray:
    """Round to float32; finite scores beyond its range become its largest number, not infinity."""
    most = float(np.finfo(np.float32).max)
    absent = np.isneginf(scores)
    rounded: np.ndarray = np.clip(scores, -most, most).astype(np.float32).astype(np.float64)
    rounded[absent] = -np.inf
    return rounded


def _descending(documents: Iterable[str]) -> list[str]:
    return sorted(documents, key=lambda document: str(document).encode(), reverse=True)


def _other_types(run: Mapping[str, object], qrels: Mapping[str, object]) -> str:
    """Return a text about ids that differ only in type, or "" if there are none."""
    texts = {str(qid): qid for qid in run}
    for qid in qrels:
        if str(qid) in texts:
            in_run = texts[str(qid)]
            return (
                f": an id is {in_run!r} ({type(in_run).__name__}) in the run and {qid!r} "
                f"({type(qid).__name__}) in the qrels, which are not equal. Give both as texts: "
                "{str(qid): ... for qid ...}"
            )
    return ""


def _excerpt(table: Mapping[str, object]) -> str:
    names = [repr(name) for name in list(table)[:3]]
    return "queries " + ", ".join(names) + (", ..." if len(table) > 3 else "") if names else "empty"


# -- runs as features -------------------------------------------------------------------------


def dataset_from_runs(
    runs: Run | str | Path | Sequence[AnyRun] | Mapping[str, AnyRun],
    qrels: Mapping[str, Mapping[str, int]] | str | Path,
    *,
    absent: str = "min",
    unjudged: str = "irrelevant",
) -> QueryDataset:
    """Return a data set whose features are the scores of base retrieval functions.

    A query has the documents that any run retrieved for it; queries without judgements or without
    documents are left out. Queries are in the order of the qrels, the documents of a query in
    descending order of their ids. Labels are the unchanged grades, also negative ones.

    Parameters
    ----------
    runs : list of runs (also those of ranx, and data frames) or of paths of run files, or a
        mapping from feature name to run or path.
        In a list a feature has the name of its run. If names clash, a run given as a path takes
        the name of its file instead, and names that still clash are numbered.
    qrels : judgements, or the path of a qrels file
    absent : the score of a document that a run did not retrieve: ``"min"``, the run's lowest
        score for that query (or for any query, if it retrieved nothing for that one), or
        ``"missing"``, NaN
    unjudged : documents without a judgement are ``"irrelevant"``, label 0, or ``"drop"``

    Returns
    -------
    QueryDataset

    Examples
    --------
    >>> bm25 = Run({"7": {"a": 3.0, "b": 2.0}}, name="bm25")
    >>> ql = Run({"7": {"b": -1.0, "c": -2.0}}, name="ql")
    >>> data = dataset_from_runs([bm25, ql], {"7": {"a": 1}})
    >>> data.feature_names, data.docid.tolist(), data.y.tolist()
    (('bm25', 'ql'), ['c', 'b', 'a'], [0.0, 0.0, 1.0])
    >>> data.X
    array([[ 2., -2.],
           [ 2., -1.],
           [ 3., -2.]], dtype=float32)
    """
    owner = "dataset_from_runs"
    check_choice("absent", owner, absent, ["min", "missing"])
    check_choice("unjudged", owner, unjudged, ["irrelevant", "drop"])
    named = _named_runs(runs)
    judgements = read_qrels(qrels) if isinstance(qrels, str | Path) else as_qrels(qrels)
    check_qrels(judgements)
    floors = [_floor(name, run) if absent == "min" else math.nan for name, run in named.items()]
    qids: list[str] = []
    docids: list[str] = []
    labels: list[int] = []
    blocks: list[np.ndarray] = []
    for qid, judged in judgements.items():
        retrieved = [run.get(qid, {}) for run in named.values()]
        union = set().union(*retrieved)
        documents = _descending(union & judged.keys() if unjudged == "drop" else union)
        if not documents:
            continue
        qids += [qid] * len(documents)
        docids += documents
        labels += [judged.get(document, 0) for document in documents]
        blocks.append(_score_columns(documents, retrieved, floors, absent == "min"))
    if not qids:
        raise DataError(
            f"No documents are left: the qrels have {_excerpt(judgements)}; "
            + "; ".join(f"the run {name!r} has {_excerpt(run)}" for name, run in named.items())
            + "."
        )
    return QueryDataset(
        np.concatenate(blocks), labels, qid=qids, docid=docids, feature_names=list(named)
    )


def _score_columns(
    documents: list[str],
    retrieved: list[Mapping[str, float]],
    floors: list[float],
    lowest: bool,
) -> np.ndarray:
    """Return the scores of a query, documents x runs.

    A document that a run did not retrieve gets the run's lowest score for the query if `lowest` is
    set and there is one, else the run's floor.
    """
    block = np.empty((len(documents), len(retrieved)))
    for j, (scores, floor) in enumerate(zip(retrieved, floors, strict=True)):
        value = min(scores.values()) if lowest and scores else floor
        block[:, j] = [scores.get(document, value) for document in documents]
    return block


def _floor(name: str, run: Mapping[str, Mapping[str, float]]) -> float:
    lows = [min(scores.values()) for scores in run.values() if scores]
    if not lows:
        raise DataError(f"The run {name!r} has no documents: leave it out.")
    return min(lows)


def _named_runs(
    runs: Run | str | Path | Sequence[AnyRun] | Mapping[str, AnyRun],
) -> dict[str, Mapping[str, Mapping[str, float]]]:
    if isinstance(runs, Mapping) and not isinstance(runs, Run):
        named = {str(name): _as_run(run) for name, run in runs.items()}
    else:
        listed = [runs] if isinstance(runs, Run | str | Path) else list(runs)
        loaded = [_as_run(run) for run in listed]
        names = [str(getattr(run, "name", "run")) for run in loaded]
        stems = [
            Path(run).name.removesuffix(".gz") if isinstance(run, str | Path) else name
            for run, name in zip(listed, names, strict=True)
        ]
        clashing = {name for name in names if names.count(name) > 1}
        chosen = [
            stem if name in clashing else name for name, stem in zip(names, stems, strict=True)
        ]
        named = dict(zip(_distinct(chosen), loaded, strict=True))
    if not named:
        raise DataError("dataset_from_runs needs at least one run. Got none.")
    return named


def _as_run(run: AnyRun) -> Mapping[str, Mapping[str, float]]:
    if isinstance(run, str | Path):
        return read_run(run)
    table = as_run(run)
    check_run(table)
    return table


def _distinct(names: list[str]) -> list[str]:
    """Number repeated names: a, a_2, a_3."""
    taken = set(names)
    seen: set[str] = set()
    out = []
    for name in names:
        unique, number = name, 2
        while unique in seen or (unique != name and unique in taken):
            unique, number = f"{name}_{number}", number + 1
        seen.add(unique)
        out.append(unique)
    return out
