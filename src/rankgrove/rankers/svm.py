"""Support vector machines that learn whole rankings: SVM-map and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.rankers.cutting import CuttingPlaneRanker
from rankgrove.rankers.linear_data import LinearData
from rankgrove.svm.oracles import FinderOracle, LossOracle, RankingOracle


class StructuralSVM(CuttingPlaneRanker):
    """Base of the structural SVMs: a linear ranker that minimises a bound on the loss of rankings.

    The objective is |w|^2 / 2 + C * the mean over queries of the slack, and a query's slack bounds
    its loss: the SVM-map paper's Optimization Problem 1. It is solved to a certified gap.

    A loss of your own is a subclass with a ``kind`` (its name in model files) and a method
    ``most_violated(scores, relevant)``, which returns loss and order (row numbers, best first) of
    the ranking of one query that maximises

        loss + 1 / (P N) * sum over relevant i, irrelevant j of +-(s_i - s_j)

    with plus where i stands before j, P relevant and N irrelevant documents; ``goal`` names the
    measure that C is chosen by.

    Parameters
    ----------
    C : the weight of the mean slack beside |w|^2 / 2 (the paper's equation 3: C / n a query);
        several values or ``"auto"``: the one that is best on validation data
    epsilon : the violation of a constraint that is let pass; the objective is then within about
        C * epsilon of the optimum
    relevant : the lowest label that counts as relevant; queries without relevant or without
        irrelevant documents are left out
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    thresholds : turn every feature into so many indicators of thresholds, so that the model is a
        sum of step functions; standard scaling is then left out
    form : ``"1-slack"``, whose iterations do not grow with the number of queries, or
        ``"n-slack"``, the paper's Algorithm 1
    max_iterations : most looks at all queries, for one C
    time_limit : seconds that solving may take, for all values of C together
    memory_limit : megabytes that constraints may take
    n_threads : threads to use; None: all cores. The model does not depend on it
    progress : show how solving goes on

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights
    C_ : the C that was kept
    solution_ : how solving for it ended: status ("converged", or the limit that ended it),
        objective, dual (a lower bound on the optimum), gap, violation, slack, numbers of iterations
        and constraints
    solutions_ : the same for every C tried
    seconds_ : time spent in all, in the oracle and in the QP, for all values of C
    history_ : validation data set -> measure -> its value for every C tried
    skipped_ : numbers of queries left out, by reason
    interrupted_ : whether Ctrl-C ended training
    """

    loss: ClassVar[str] = ""  # of an oracle of ours

    def __init__(
        self,
        C: float | str | Sequence[float] = 1.0,
        epsilon: float = 1e-3,
        relevant: float = 1.0,
        scaling: str | None = "standard",
        thresholds: int | None = None,
        form: str = "1-slack",
        max_iterations: int | None = None,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.relevant = relevant
        self.scaling = scaling
        self.thresholds = thresholds
        self.form = form
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.progress = progress

    def most_violated(self, scores: np.ndarray, relevant: np.ndarray) -> tuple[float, Any]:
        """Return loss and order of the most violated ranking of one query."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have, and a subclass that is incomplete."""
        owner, own = type(self).__name__, type(self)
        lacking = [
            f"a class attribute {name!r}" for name in ("kind", "goal") if not hasattr(own, name)
        ]
        if not self.loss and own.most_violated is StructuralSVM.most_violated:
            lacking.append("a method most_violated(scores, relevant)")
        if lacking:
            raise ParameterError(f"{owner} needs {' and '.join(lacking)}: see StructuralSVM.")
        super().check_parameters()

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

    The mean over queries of 1 - ROC area: every query counts alike, and every pair of it.

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

    Algorithm 2 is exact for it too, since the discount falls ever more slowly. For graded gains
    or a cutoff no exact algorithm is known here: labels count as relevant or not.

    Parameters and attributes are those of :class:`StructuralSVM`.
    """

    kind: ClassVar[str] = "svm-ndcg"
    loss: ClassVar[str] = "ndcg"
    goal: ClassVar[str] = "ndcg"
    goal_is_binary: ClassVar[bool] = False
