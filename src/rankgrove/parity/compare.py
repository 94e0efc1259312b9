"""``rg.parity``: a log of scored documents compared with the model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import DataError, ModelFileError, ParameterError, RankgroveError
from rankgrove.formats.targets import engine_of, unknown_engine
from rankgrove.parity.case import Case, listed
from rankgrove.parity.causes import CAUSES
from rankgrove.parity.diagnosis import Explained, diagnosed
from rankgrove.parity.engine import Engine
from rankgrove.parity.log import FeatureLog
from rankgrove.parity.production import (
    OURS,
    Production,
    columns_in,
    in_engines,
    of_file,
    ours,
    readers,
    written,
)
from rankgrove.parity.reading import read_feature_log
from rankgrove.parity.result import Cause, Parity, examples_of
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.foreign_models import of_object
from rankgrove.rankers.load import load
from rankgrove.validation import check_real, counted, refuse

_OWNER = "parity"
# The engines that may have written a log, by the beginnings of their names; the best is taken.
_FAMILIES = {
    "elasticsearch": ("elasticsearch", "opensearch"),
    "solr": ("solr",),
    "vespa": ("vespa",),
    "table": (),
}


def parity(
    model: Any,
    log: FeatureLog | str | Path | Sequence[str | Path],
    *,
    engine: str | Engine | None = None,
    features: Sequence[str] | None = None,
    reference: FeatureLog | str | Path | None = None,
    also: Mapping[str, Any] | Sequence[str | Path] | None = None,
    tolerance: float = 1e-6,
    **reading: Any,
) -> Parity:
    """Compare the scores that a search engine gave with the model's, and name why they differ.

    The score of every document is recomputed from its logged features, by the rules of the engine.
    Where it is not the logged one, causes are tried until one gives exactly the logged scores:
    rules for missing values and comparisons, widths of numbers, features in another order, lost or
    changed, another model, fewer trees, stale values, constants, factors, roundings, the rules of
    other engines. Different documents may have different causes.

    Parameters
    ----------
    model : a trained ranker, a model of LightGBM or XGBoost, or the path of a model file; with an
        engine also the file that was uploaded to it
    log : a :class:`FeatureLog`, or files as :func:`read_feature_log` takes them
    engine : the engine whose rules are assumed, such as ``"opensearch-3.1"``; ``"rankgrove"``: the
        model's own scores. None: by the kind of the log, the engine of this kind by which the most
        scores are right; for tables ``"rankgrove"``
    features : names of the model's features in the order of its columns, as in the log; None: the
        model's own, else their numbers
    reference : the features that the documents should have: another log or a table
    also : other models that may have been in use, by name, or a list of model files
    tolerance : scores agree where they differ by at most this times max(1, abs(score))
    **reading : for logs in files: the other arguments of :func:`read_feature_log`

    Returns
    -------
    Parity

    Examples
    --------
    >>> import numpy as np, rankgrove as rg
    >>> from rankgrove.parity.log import FeatureLog
    >>> data = rg.make_artificial(20, seed=1)
    >>> model = rg.LambdaMART(n_trees=5).fit(data)
    >>> scored = rg.FeatureLog(
    ...     "table", data.feature_names, np.float64(data.X), data.qid, np.arange(data.n_rows),
    ...     model.predict(data) + 0.5)
    >>> found = rg.parity(model, scored)
    >>> found.equal, [cause.name for cause in found.causes]
    (False, ['constant'])
    """
    tolerance = check_real("tolerance", _OWNER, tolerance, low=0.0)
    scored = log if isinstance(log, FeatureLog) else read_feature_log(log, **reading)
    if isinstance(log, FeatureLog) and reading:
        raise ParameterError(
            f"parity: {next(iter(reading))}= is for logs that are read from files."
        )
    engines = all_engines()
    ranker, file = _model(model, engine, engines)
    name, production, values, chosen = _production(ranker, file, scored, engine, engines, features)
    notes = [*chosen, *_nothing_missing(ranker, production, values)]
    scored = replace(scored, notes=(*notes, *scored.notes))
    given_models = {
        title: _other(one, title, name, engine, engines, production, features, scored)
        for title, one in _also(also).items()
    }
    expected = _reference(reference, scored, production.names)
    case = Case(
        scored, production, values, tolerance,
        lambda: _others(name, production, ranker, engines, features), given_models, *expected,
    )  # fmt: skip
    return _compared(case, name)


def _others(
    name: str,
    production: Production,
    ranker: Ranker | None,
    engines: Mapping[str, Engine],
    features: Sequence[str] | None,
) -> dict[str, Production]:
    """Return the model in other engines: the same file, and the file written for each."""
    rest = {other: engine for other, engine in engines.items() if other != name}
    found = {
        f"{other}, with the file for {name}": p for other, p in readers(production, rest).items()
    }
    if ranker is not None:
        own = in_engines(ranker, rest, *names_of(ranker, features))
        for other, made in own.items():
            if made.content != production.content:
                found[f"{other}, with a file for it"] = made
    return found


def all_engines() -> Mapping[str, Engine]:
    """Return the emulated engines by name."""
    from rankgrove.parity.engines import ENGINES

    return ENGINES


def names_of(ranker: Ranker, features: Sequence[str] | None) -> tuple[list[str], bool]:
    """Return the names of a ranker's columns, and whether they are names and not numbers."""
    n = ranker.n_features_in_
    own = getattr(ranker, "feature_names_", None)
    if features is None:
        return (list(own), True) if own is not None else ([f"f{j + 1}" for j in range(n)], False)
    if isinstance(features, str) or not all(isinstance(name, str) and name for name in features):
        refuse("features", _OWNER, "a list of names", features)
    if len(features) != n or len(set(features)) < n:
        raise ParameterError(
            f"parity: the model has {counted(n, 'feature')}; {len(set(features))} different names "
            "were given. Name all of them, in their order."
        )
    return list(features), True


# -- what is given --------------------------------------------------------------------------------


def _model(
    model: Any, engine: str | Engine | None, engines: Mapping[str, Engine]
) -> tuple[Ranker | None, Path | None]:
    """Return the ranker, or the path of a file that only an engine reads."""
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if not path.is_file():
            refuse("model", _OWNER, "a trained ranker or the path of a model file, and there is no "
                   "such file", str(model))  # fmt: skip
        try:
            return load(path), None
        except ModelFileError as error:
            if any(_reads(one, path) for one in _asked(engine, engines).values()):
                return None, path
            raise ModelFileError(
                f"{error} Nor is it a file that one of the engines reads: give the model that it "
                "was converted from."
            ) from None
    ranker = of_object(model)
    inside = getattr(ranker, "ranker", None)
    if not isinstance(ranker, Ranker) and isinstance(inside, Ranker):  # the result of a search
        ranker = inside
    if not isinstance(ranker, Ranker):
        refuse("model", _OWNER, "a trained ranker or the path of a model file", model)
    ranker._check_is_fitted()
    return ranker, None


def _reads(engine: Engine, path: Path) -> bool:
    try:
        engine.read(path.read_bytes())
    except RankgroveError:
        return False
    return True


def _asked(engine: str | Engine | None, engines: Mapping[str, Engine]) -> Mapping[str, Engine]:
    """Return the engine that was asked for, or all."""
    if isinstance(engine, Engine):
        return {engine.name: engine}
    if engine is None or engine == OURS:
        return engines
    if not isinstance(engine, str):
        refuse("engine", _OWNER, "the name of an engine", engine)
    name = engine_of(engine)  # a version in between is an engine that has a name
    if name == OURS:
        return engines
    if name not in engines:
        raise ParameterError(f"{_OWNER}: {unknown_engine(engine, [*engines, OURS])}")
    return {name: engines[name]}


def _production(
    ranker: Ranker | None,
    file: Path | None,
    log: FeatureLog,
    engine: str | Engine | None,
    engines: Mapping[str, Engine],
    features: Sequence[str] | None,
) -> tuple[str, Production, np.ndarray, list[str]]:
    """Return the name of the engine, the model in it, the log in the model's columns, and notes.

    Without `engine`, that of the log's kind by which the most scores are right.
    """
    asked = _asked(engine, engines)
    if engine is None:
        begins = _FAMILIES[log.kind]
        asked = {name: one for name, one in engines.items() if name.startswith(begins or " ")}
    if file is not None:
        content = file.read_bytes()
        able = {n: of_file(content, e) for n, e in (asked or engines).items() if _reads(e, file)}
        if not able:
            raise ModelFileError(f"{file} is no file that {listed(list(asked))} reads.")
        named = True
    else:
        assert ranker is not None
        names, named = names_of(ranker, features)
        if engine == OURS or not asked:
            able = {OURS: ours(ranker, names, log.query)}
        elif engine is None:
            able = in_engines(ranker, asked, names, named)
            able = able or {OURS: ours(ranker, names, log.query)}
        else:
            able = {name: written(ranker, one, names, named) for name, one in asked.items()}
    best: tuple[int, str, Production, np.ndarray] | None = None
    n_right: dict[str, int] = {}
    for name, production in able.items():
        values = columns_in(log, production.names, production.read, named)
        n_right[name] = 0
        if len(able) > 1:
            case = Case(log, production, values, 1e-6)
            n_right[name] = int(case.agree(case.base, np.arange(len(log))).sum())
        if best is None or n_right[name] > best[0]:
            best = (n_right[name], name, production, values)
    assert best is not None
    _, name, production, values = best
    return name, production, values, _chosen(name, n_right)


def _chosen(name: str, n_right: Mapping[str, int]) -> list[str]:
    """Return a note if the engine that was taken is not the usual one, the first."""
    usual = next(iter(n_right))
    if name == usual:
        return []
    return [
        f"no engine was named: {name} was taken, by which {counted(n_right[name], 'score')} are "
        f"right; by {usual} only {n_right[usual]:,} are. If yours is another one than {name}, name "
        "it (--engine)"
    ]


def _nothing_missing(
    ranker: Ranker | None, production: Production, values: np.ndarray
) -> list[str]:
    """Return a note if the model learned from missing values and the log has none."""
    read = np.isin(production.names, production.read)
    if ranker is None or ranker.saw_missing_ is not True or np.isnan(values[:, read]).any():
        return []
    return [
        "values were missing in the model's training, and none is in the log: if documents can "
        "lack a feature, the engine gives it a default value, such as 0 (in Solr the defaultValue "
        "of the feature store), and scores are right for that value alone"
    ]


def _also(also: Mapping[str, Any] | Sequence[str | Path] | None) -> dict[str, Any]:
    if also is None:
        return {}
    if isinstance(also, Mapping):
        return dict(also)
    if isinstance(also, str | Path):
        also = [also]
    return {str(one): one for one in also}


def _other(
    model: Any,
    title: str,
    name: str,
    engine: str | Engine | None,
    engines: Mapping[str, Engine],
    production: Production,
    features: Sequence[str] | None,
    log: FeatureLog,
) -> Production:
    """Return another model in the same engine, on the columns of the first."""
    ranker, file = _model(model, engine, engines)
    of = engine if isinstance(engine, Engine) else engines.get(name)
    if file is not None:
        assert of is not None
        other = of_file(file.read_bytes(), of)
    else:
        assert ranker is not None
        own = getattr(ranker, "feature_names_", None)
        same = own is None and ranker.n_features_in_ == len(production.names)
        names = list(production.names) if same else names_of(ranker, None)[0]
        other = ours(ranker, names, log.query) if of is None else written(ranker, of, names, True)
    place = {column: j for j, column in enumerate(production.names)}
    unknown = [column for column in other.read if column not in place]
    if unknown:
        raise DataError(
            f"The model {title} reads the feature {unknown[0]!r}, which the first model has not: "
            "compare the log with it in a run of its own."
        )
    columns = np.array([place.get(column, -1) for column in other.names])

    def scores(values: np.ndarray) -> np.ndarray:
        own_values = np.where(columns >= 0, values[:, columns], np.nan)
        return other.scores(own_values)

    return Production(other.title, production.names, other.read, scores, whole=other.whole)


def _reference(
    reference: FeatureLog | str | Path | None, log: FeatureLog, names: Sequence[str]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the reference's values in the model's columns, and which of them are known."""
    if reference is None:
        return None, None
    other = reference if isinstance(reference, FeatureLog) else read_feature_log(reference)
    keys = {key: row for row, key in enumerate(_keys(other, by_query=True))}
    own = _keys(log, by_query=True)
    if not any(key in keys for key in own):  # features of documents, for all queries
        keys = {key: row for row, key in enumerate(_keys(other, by_query=False))}
        own = _keys(log, by_query=False)
    rows = np.array([keys.get(key, -1) for key in own])
    if not (rows >= 0).any():
        raise DataError(
            "No document of the log is in the reference: queries or documents are named otherwise. "
            f"The log has document {own[0][-1]!r}, the reference {next(iter(keys))[-1]!r}."
        )
    values = np.full((len(log), len(names)), np.nan)
    known = np.zeros(values.shape, bool)
    place = {name: j for j, name in enumerate(other.features)}
    for column, name in enumerate(names):
        if name in place:
            values[:, column] = np.where(rows >= 0, other.values[rows, place[name]], np.nan)
            known[:, column] = rows >= 0
    if not known.any():
        raise DataError(
            f"The reference has none of the model's features. It has {listed(other.features)}; the "
            f"model reads {listed(names)}."
        )
    return values, known


def _keys(log: FeatureLog, by_query: bool) -> list[tuple[str, ...]]:
    documents = [str(document) for document in log.document]
    if not by_query:
        return [(document,) for document in documents]
    return [(str(q), d) for q, d in zip(log.query, documents, strict=True)]


# -- the comparison -------------------------------------------------------------------------------


def _compared(case: Case, engine: str) -> Parity:
    log = case.log
    scored = np.flatnonzero(np.isfinite(log.score))
    if not scored.size:
        raise DataError(
            "No document of the log has a score. Ask the engine for it (fl=score in Solr; in "
            "Elasticsearch results sorted by a field have none), or name its place: score= "
            "(--score)."
        )
    agree = case.agree(case.base[scored], scored)
    right, wrong = scored[agree], scored[~agree]
    off = np.abs(case.base[scored] - log.score[scored])
    parts = diagnosed(case, wrong, right) if wrong.size else []
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, np.int64)
    which = np.repeat(np.arange(len(parts)), [part.rows.size for part in parts])
    explained = np.concatenate([_explained(part) for part in parts]) if parts else np.empty(0)
    order = np.argsort(rows, kind="stable")
    return Parity(
        engine,
        int(scored.size),
        int(right.size),
        tuple(_cause(case, part, right.size) for part in parts),
        case.tolerance,
        float(np.nan_to_num(off, nan=np.inf).max()),
        tuple(_notes(case, scored.size)),
        log,
        rows[order],
        case.base[rows[order]],
        explained[order],
        which[order],
    )


def _explained(part: Explained) -> np.ndarray:
    known = part.cause in CAUSES and part.cause not in ("unexplained", "rounding")
    return part.scores if known else np.full(part.rows.size, np.nan)


def _cause(case: Case, part: Explained, n_right: int) -> Cause:
    recomputed = case.base[part.rows]
    kind = CAUSES[part.cause]
    off = np.nan_to_num(np.abs(recomputed - case.log.score[part.rows]), nan=np.inf)
    note = ""
    if part.n_tried and part.cause not in ("unexplained", "rounding", "feature-changed"):
        if part.n_against == 0:
            note = "It fits all other documents, too: it may hold for the whole log."
        else:
            share = part.n_against / part.n_tried
            note = (
                f"It holds for a part of the log only: {share:.0%} of the documents whose scores "
                "agree would have other scores by it (some nodes, times or documents differ)."
            )
    return Cause(
        part.cause, kind.title, part.detail, kind.remedy, int(part.rows.size), float(off.max()),
        examples_of(case.log, part.rows, recomputed, part.cause, _explained(part)),
        tuple(part.also), note,
    )  # fmt: skip


def _notes(case: Case, n_scored: int) -> list[str]:
    notes = list(case.log.notes)
    without = len(case.log) - n_scored
    if without:
        notes.append(f"{counted(without, 'document')} without a score left out")
    if case.reference is not None and case.known is not None:
        with np.errstate(invalid="ignore"):
            same = (case.values == case.reference) | (
                np.isnan(case.values) & np.isnan(case.reference)
            )
        differs = case.known & ~same
        if differs.any():
            order = np.argsort(-differs.sum(axis=0), kind="stable")
            names = [case.names[j] for j in order.tolist() if differs[:, j].any()]
            notes.append(
                f"{counted(int(differs.any(axis=1).sum()), 'document')} have other feature values "
                f"than in the reference ({listed(names)})"
            )
    return notes
