"""Support vector machines that learn whole rankings: SVM-map and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import declares_parameters
from rankgrove.rankers.fitting import Callback
from rankgrove.rankers.linear import parameters as linear
from rankgrove.rankers.linear.chosen_c import ChoosesC, Learner
from rankgrove.rankers.linear.cutting_plane_learner import CuttingPlaneLearner
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.svm.oracles import FinderOracle, LossOracle, RankingOracle


@declares_parameters
class StructuralSVM(ChoosesC, LinearPredictor):
    """Base of the structural SVMs: a linear ranker that minimises a bound on the loss of rankings.

    The objective is |w|^2 / 2 + C * the mean over queries of the slack, and a query's slack bounds
    its loss: the SVM-map paper's Optimization Problem 1. It is solved to a certified gap.

    A loss of your own is a subclass with a ``kind`` (its name in model files) and a method
    ``most_violated(scores, relevant)``, which returns loss and order (row numbers, best first) of
    the ranking of one query that maximises

        loss + 1 / (P N) * sum over relevant i, irrelevant j of +-(s_i - s_j)

    with plus where i is ranked before j, P relevant and N irrelevant documents; ``goal`` names the
    measure that decides on C.

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights
    C_ : the C that was kept
    solution_ : how solving for it ended: status ("converged", or the limit that ended it),
        objective, dual (a lower bound on the optimum), gap, violation, slack, numbers of iterations
        and constraints
    solutions_ : the same for every C tried
    seconds_ : total time, time in the oracle and time in the QP, for all values of C
    history_ : validation data set -> measure -> its value for every C tried
    skipped_ : numbers of queries left out, by reason
    interrupted_ : whether Ctrl-C ended training
    """

    loss: ClassVar[str] = ""  # name of a built-in oracle's loss

    C: float | str | Sequence[float] = linear.C
    epsilon: float = linear.EPSILON
    relevant: float = linear.RELEVANT
    scaling: str | None = shared.SCALING
    thresholds: int | None = linear.THRESHOLDS
    form: str = linear.FORM
    max_iterations: int | None = linear.MAX_ITERATIONS
    time_limit: float | None = linear.TIME_LIMIT
    memory_limit: float | None = linear.MEMORY_LIMIT
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS(False, "show the progress of the solver")

    def most_violated(self, scores: np.ndarray, relevant: np.ndarray) -> tuple[float, Any]:
        """Return loss and order of the most violated ranking of one query."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have, and a subclass that is incomplete."""
        owner, svm = type(self).__name__, type(self)
        lacking = [
            f"a class attribute {name!r}" for name in ("kind", "goal") if not hasattr(svm, name)
        ]
        if not self.loss and svm.most_violated is StructuralSVM.most_violated:
            lacking.append("a method most_violated(scores, relevant)")
        if lacking:
            raise ParameterError(f"{owner} needs {' and '.join(lacking)}: see StructuralSVM.")
        super().check_parameters()

    def _learner(self, data: LinearData, callbacks: list[Callback]) -> Learner:
        return CuttingPlaneLearner(self, data, self._oracle(data), callbacks)

    def _oracle(self, data: LinearData) -> RankingOracle:
        common: Any = {"weights": data.query_weight, "n_threads": self.n_threads}
        rows = (data.design(), data.query_ptr, data.labels >= self.relevant)
        if self.loss:
            return LossOracle(self.loss, *rows, **common)
        return FinderOracle(self.most_violated, *rows, **common)


class SVMMap(StructuralSVM):
    """The SVM that minimises a bound on 1 - MAP: SVM-map.

    The most violated rankings come from the paper's Algorithm 2, so the problem is solved to its
    global optimum.

    Parameters and attributes are those of :class:`StructuralSVM`.

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.SVMMap(C=[0.1, 1, 10], relevant=2).fit(train, valid=test)
    >>> model.solution_["status"], model.C_ in (0.1, 1, 10)
    ('converged', True)
    """

    kind: ClassVar[str] = "svm-map"
    loss: ClassVar[str] = "map"
    goal: ClassVar[str] = "map"


class SVMRoc(StructuralSVM):
    """The SVM that minimises a bound on the share of pairs in the wrong order: SVM-roc.

    The loss is the mean over queries of 1 - ROC area.

    Parameters and attributes are those of :class:`StructuralSVM`.
    """

    kind: ClassVar[str] = "svm-roc"
    loss: ClassVar[str] = "roc"
    goal: ClassVar[str] = "auc"


class SVMMrr(StructuralSVM):
    """The SVM that minimises a bound on 1 - MRR.

    The exact most violated ranking is found by trying every rank of the first relevant document.

    Parameters and attributes are those of :class:`StructuralSVM`.
    """

    kind: ClassVar[str] = "svm-mrr"
    loss: ClassVar[str] = "mrr"
    goal: ClassVar[str] = "mrr"


class SVMNdcg(StructuralSVM):
    """The SVM that minimises a bound on 1 - NDCG of binary relevance, over all ranks.

    Algorithm 2 is exact for it too, since the discount is convex. For graded gains or a cutoff
    there is no exact algorithm here: labels count as relevant or not.

    Parameters and attributes are those of :class:`StructuralSVM`.
    """

    kind: ClassVar[str] = "svm-ndcg"
    loss: ClassVar[str] = "ndcg"
    goal: ClassVar[str] = "ndcg"
    goal_is_binary: ClassVar[bool] = False
