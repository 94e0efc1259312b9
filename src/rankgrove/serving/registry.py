"""The models of a service, by name; open requests keep the old model while it is replaced."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.early_exit import calibrated_in
from rankgrove.rankers.load import load
from rankgrove.rankers.trees.starts import needs_base_score
from rankgrove.scoring.scorer import Scorer
from rankgrove.serving.coding import Json
from rankgrove.serving.problems import Problem
from rankgrove.serving.requests import RankRequest, RequestForm
from rankgrove.validation import nearest

Stamp = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded model; one of these answers a request from beginning to end."""

    name: str
    path: Path
    model: Ranker
    scorer: Scorer | None
    form: RequestForm
    stamp: Stamp
    loaded: float
    version: int

    def rank(self, request: RankRequest) -> dict[str, Json]:
        """Return the ranked ids and their scores; equal scores keep the order of the request."""
        order, scores = self._best(request)
        ids = [request.ids[i] for i in order.tolist()]
        answer: dict[str, Json] = {"model": self.name, "version": self.version}
        answer |= {"ids": ids, "scores": scores.tolist()}
        calibrated = calibrated_in(self.model)
        if calibrated is not None:
            answer["relevance"] = calibrated.relevance_of(scores).expected.tolist()
        return answer

    def _best(self, request: RankRequest) -> tuple[np.ndarray, np.ndarray]:
        """Return the documents of the answer, best first, and their scores."""
        k = request.top_k
        if k is not None and request.ids and self.scorer is not None and self.scorer.has_top(k):
            top = self.scorer.top(request.features, k)
            return top.rows, top.scores
        scores = self.scores(request.features, request.base_score)
        order = np.argsort(-scores, kind="stable")[:k]
        return order, scores[order]

    def scores(self, features: np.ndarray, base_score: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of one query's documents, using only the calling thread."""
        n_rows = features.shape[0]
        if n_rows == 0:
            return np.empty(0)
        if self.scorer is not None:
            return self.scorer.predict(features)
        query = QueryDataset.from_parts(
            features,
            np.zeros(n_rows),
            np.zeros(1, np.int64),
            np.zeros(n_rows, np.int64),
            base_score=base_score,
            categories=dict(self.model.categories_),
        )
        return self.model.predict(query, n_threads=1)

    def about(self) -> dict[str, Json]:
        """Return a description of the model, as plain values."""
        return {
            "name": self.name,
            "kind": self.model.kind,
            "version": self.version,
            "file": str(self.path),
            "loaded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.loaded)),
            "n_features": self.model.n_features_in_,
            "features": self.form.names,
            "absent": self.form.absent,
            "categorical": {
                self.form.names[j]: None if names is None else len(names)
                for j, names in self.model.categories_.items()
            },
            "n_trees": self.model.tree_count(),
            "measure": str(getattr(self.model, "measure", "")) or None,
            "validation": _validation(self.model),
            "needs_base_score": self.form.needs_base_score,
        }


class Registry:
    """Models by name, each loaded from a file.

    Parameters
    ----------
    files : name -> model file; the first answers requests without a name
    max_documents : maximum documents of a request
    absent : the value of features that a document does not name, ``"zero"`` or ``"missing"``;
        None: as in the model's training data, or missing if its file does not say
    """

    def __init__(
        self, files: Mapping[str, Path], max_documents: int, absent: str | None = None
    ) -> None:
        self.max_documents = max_documents
        self.absent = absent
        self.errors: dict[str, str] = {}  # of the last attempt to reload a model
        self._seen: dict[str, Stamp | None] = {}  # of the files last tried, loaded or refused
        self._lock = threading.Lock()  # for loading: two at once would take twice the memory
        self._models = {name: self._load(name, Path(path), 1) for name, path in files.items()}
        self._seen = {name: served.stamp for name, served in self._models.items()}

    @property
    def models(self) -> Mapping[str, Served]:
        """The models; the mapping is replaced, never changed."""
        return self._models

    def get(self, name: str | None) -> Served:
        """Return a model by name; None: the first."""
        models = self._models
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            raise Problem(
                404,
                f"There is no model {name[:60]!r}{nearest(name, models)}.",
                rule=f"The models are {', '.join(models)}.",
                remedy="GET /models lists them.",
            )
        return models[name]

    def reload(self, name: str | None = None) -> dict[str, str | None]:
        """Reload one model, or all; return the error of each, or None.

        A model whose file cannot be loaded stays as it is.
        """
        names = list(self._models) if name is None else [self.get(name).name]
        return {name: self._replace(name) for name in names}

    def reload_changed(self) -> dict[str, str | None]:
        """Reload the models whose files changed since they were last checked."""
        changed = [
            name
            for name, served in self._models.items()
            if (stamp := stamp_of(served.path)) is not None and stamp != self._seen[name]
        ]
        return {name: self._replace(name) for name in changed}

    def _replace(self, name: str) -> str | None:
        with self._lock:
            old = self._models[name]
            self._seen[name] = stamp_of(old.path)
            try:
                new = self._load(name, old.path, old.version + 1)
            except Exception as error:  # whatever is wrong with the file, the old model stays
                self.errors[name] = str(error) or type(error).__name__
                return self.errors[name]
            self._models = self._models | {name: new}
            self.errors.pop(name, None)
            return None

    def _load(self, name: str, path: Path, version: int) -> Served:
        stamp = stamp_of(path)
        if stamp is None:
            raise ParameterError(f"The model {name}: there is no file {path}.")
        model = load(path)
        names = getattr(model, "feature_names_", None) or [
            f"f{j + 1}" for j in range(model.n_features_in_)
        ]
        needs = needs_base_score(getattr(model, "submodel_", None))
        absent = self.absent or model.absent_ or "missing"
        form = RequestForm(names, self.max_documents, needs, absent, model.categories_)
        scorer = None if model.flat() is None else model.scorer()
        served = Served(name, path, model, scorer, form, stamp, time.time(), version)
        for n_rows in (2, 256):  # compile before the first request, and check that scoring works
            features = np.zeros((n_rows, model.n_features_in_), np.float32)
            served.scores(features, np.zeros(n_rows) if needs else None)
        return served


def stamp_of(path: Path) -> Stamp | None:
    """Return the time, size and inode of a file, or None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _validation(model: Ranker) -> dict[str, dict[str, float]] | None:
    """Return the measures on validation data at the best round; None without validation data."""
    best = getattr(model, "best_round_", getattr(model, "best_epoch_", None))
    history = getattr(model, "history_", None)
    if best is None or not history:
        return None
    return {
        name: {measure: float(values[best - 1]) for measure, values in measures.items() if values}
        for name, measures in history.items()
    }
