"""Classification SVMs as rankers: the SVM-map paper's SVM-acc and its three variants."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.model.linear import BY_QUERY, Linear
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    integer,
    parameter,
    real,
)
from rankgrove.rankers.fitting import Callback
from rankgrove.rankers.linear import parameters as linear
from rankgrove.rankers.linear.chosen_c import ChoosesC, Learner
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.linear_predictor import LinearPredictor


@declares_parameters
class SVMAcc(ChoosesC, LinearPredictor):
    """A linear SVM that separates relevant from irrelevant documents, and ranks by its margin.

    The paper's SVM-acc has the default parameters, SVM-acc2 has ``balanced=True``, SVM-acc3
    ``scaling="percentile"`` and SVM-acc4 ``scaling="query"``, all with ``thresholds=50``. LIBLINEAR
    does the training.

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights
    C_ : the C that was kept
    solution_ : how its training ended: status ("converged" or "iteration limit") and iterations
    solutions_ : the same for every C tried
    history_ : validation data set -> measure -> its value for every C tried
    skipped_ : numbers of queries left out, by reason
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train = rg.make_web(60, n_docs=30, seed=1)
    >>> model = rg.SVMAcc(C=100, balanced=True, relevant=2).fit(train)
    >>> rg.evaluate(model, train, "map[relevant=2]").mean["map[relevant=2]"] > 0.4
    True
    """

    kind: ClassVar[str] = "svm-acc"
    goal: ClassVar[str] = "map"
    takes_row_weights: ClassVar[bool] = True

    C: float | str | Sequence[float] = linear.C(
        1.0,
        "the weight of the mean hinge loss of documents, added to |w|^2 / 2 (LIBLINEAR's own C is "
        'this over the number of documents); several values or ``"auto"``: the one that is best '
        "on validation data",
    )
    balanced: bool = parameter(
        False,
        "multiply the weight of relevant documents so that both classes have the same total weight",
        flag,
    )
    relevant: float = linear.RELEVANT
    scaling: str | None = shared.SCALING
    thresholds: int | None = linear.THRESHOLDS
    loss: str = parameter(
        "hinge",
        '``"hinge"``, or ``"squared"``: its square, which is faster to train',
        choice(["hinge", "squared"]),
    )
    tolerance: float = parameter(1e-3, "LIBLINEAR's stopping tolerance", real(above=0.0))
    max_iterations: int = parameter(
        1000, "LIBLINEAR's maximum number of iterations, for one C", integer(low=1)
    )
    random_state: int = shared.RANDOM_STATE(
        0, "seed of the order in which LIBLINEAR takes the documents"
    )
    n_threads: int | None = shared.N_THREADS(
        None, "number of threads; None: all cores. Training itself runs on one"
    )

    def _default_qid(self, n_rows: int) -> np.ndarray | None:
        return None if self.scaling in BY_QUERY else np.zeros(n_rows, np.int64)

    def _learner(self, data: LinearData, callbacks: list[Callback]) -> Learner:
        if callbacks:
            raise ParameterError("SVMAcc.fit: LIBLINEAR has no callbacks: leave callbacks out.")
        return _Liblinear(self, data)


class _Liblinear(Learner):
    """Trains with LIBLINEAR."""

    def __init__(self, ranker: SVMAcc, data: LinearData) -> None:
        relevant = data.labels >= ranker.relevant
        self._ranker = ranker
        self._data = data
        self._matrix = data.matrix()
        self._target = np.where(relevant, 1, -1)
        self._weight = _document_weights(data, relevant, ranker.balanced)

    def learn(self, C: float) -> tuple[Linear, dict[str, Any], bool]:
        """Return the model, a record of its training, and whether training was interrupted."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        ranker = self._ranker
        svm = LinearSVC(
            loss="hinge" if ranker.loss == "hinge" else "squared_hinge",
            dual=ranker.loss == "hinge",
            C=C,
            tol=ranker.tolerance,
            max_iter=ranker.max_iterations,
            random_state=ranker.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(self._matrix, self._target, sample_weight=self._weight)
        status = "converged" if svm.n_iter_ < ranker.max_iterations else "iteration limit"
        record = {"status": status, "iterations": int(svm.n_iter_)}
        return self._data.linear(svm.coef_[0], float(svm.intercept_[0])), record, False


def _document_weights(data: LinearData, good: np.ndarray, balanced: bool) -> np.ndarray:
    """Return the weight of every document's loss; without `balanced` they add up to 1."""
    weight = np.ones(good.size) if data.row_weight is None else data.row_weight.copy()
    if data.query_weight is not None:
        weight *= np.repeat(data.query_weight, np.diff(data.query_ptr))
    total = weight.sum()
    if balanced:
        of_good = weight[good].sum()
        weight[good] *= (total - of_good) / of_good
    return np.asarray(weight / total)
