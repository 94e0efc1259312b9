"""Classification SVMs as rankers: the SVM-map paper's SVM-acc and its three variants."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.model.linear import BY_QUERY, Linear
from rankgrove.rankers.linear import Learner, LinearRanker
from rankgrove.rankers.linear_data import LinearData
from rankgrove.validation import check_choice, check_integer, check_real, refuse


class SVMAcc(LinearRanker):
    """A linear SVM that tells relevant from irrelevant documents, and ranks by its margin.

    The paper's SVM-acc is the plain one, SVM-acc2 has ``balanced=True``, SVM-acc3
    ``scaling="percentile"`` and SVM-acc4 ``scaling="query"``, all with ``thresholds=50``. It is
    trained by LIBLINEAR.

    Parameters
    ----------
    C : the weight of the mean hinge loss of documents beside |w|^2 / 2 (LIBLINEAR's own C is this
        over the number of documents); several values or ``"auto"``: the one that is best on
        validation data
    balanced : a relevant document counts as many times more as there are more irrelevant ones
    relevant : the lowest label that counts as relevant; queries without relevant or without
        irrelevant documents are left out
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    thresholds : turn every feature into so many indicators of thresholds; standard scaling is then
        left out
    loss : ``"hinge"``, or ``"squared"`` for its square, which is quicker to train
    tolerance : LIBLINEAR's stopping tolerance
    max_iterations : LIBLINEAR's most iterations, for one C
    random_state : seed of the order in which LIBLINEAR takes the documents
    n_threads : threads to use where work is divided; training has one

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
    _takes_row_weights: ClassVar[bool] = True

    def __init__(
        self,
        C: float | str | Sequence[float] = 1.0,
        balanced: bool = False,
        relevant: float = 1.0,
        scaling: str | None = "standard",
        thresholds: int | None = None,
        loss: str = "hinge",
        tolerance: float = 1e-3,
        max_iterations: int = 1000,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.balanced = balanced
        self.relevant = relevant
        self.scaling = scaling
        self.thresholds = thresholds
        self.loss = loss
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.random_state = random_state
        self.n_threads = n_threads

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        if not isinstance(self.balanced, bool):
            refuse("balanced", owner, "True or False", self.balanced)
        check_choice("loss", owner, self.loss, ["hinge", "squared"])
        check_real("tolerance", owner, self.tolerance, above=0.0)
        check_integer("max_iterations", owner, self.max_iterations, low=1)
        check_integer("random_state", owner, self.random_state, low=0)

    def _queries_of_none(self, n_rows: int) -> np.ndarray | None:
        return None if self.scaling in BY_QUERY else np.zeros(n_rows, np.int64)

    def _learner(self, data: LinearData, callbacks: list[Any]) -> Learner:
        if callbacks:
            raise ParameterError("SVMAcc.fit: LIBLINEAR calls nobody back: leave callbacks out.")
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        matrix = data.matrix()
        good = data.labels >= self.relevant
        target = np.where(good, 1, -1)
        weight = _document_weights(data, good, self.balanced)

        def learn(C: float) -> tuple[Linear, dict[str, Any], bool]:
            svm = LinearSVC(
                loss="hinge" if self.loss == "hinge" else "squared_hinge",
                dual=self.loss == "hinge",
                C=C,
                tol=self.tolerance,
                max_iter=self.max_iterations,
                random_state=self.random_state,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                svm.fit(matrix, target, sample_weight=weight)
            ended = "converged" if svm.n_iter_ < self.max_iterations else "iteration limit"
            record = {"status": ended, "iterations": int(svm.n_iter_)}
            return data.linear(svm.coef_[0], float(svm.intercept_[0])), record, False

        return learn


def _document_weights(data: LinearData, good: np.ndarray, balanced: bool) -> np.ndarray:
    """Return what every document counts in the mean; the mean of all is 1 / their number."""
    weight = np.ones(good.size) if data.row_weight is None else data.row_weight.copy()
    if data.query_weight is not None:
        weight *= np.repeat(data.query_weight, np.diff(data.query_ptr))
    total = weight.sum()
    if balanced:
        of_good = weight[good].sum()
        weight[good] *= (total - of_good) / of_good
    return np.asarray(weight / total)
