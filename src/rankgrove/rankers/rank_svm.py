"""RankSVM: the hinge loss of all pairs of unequal labels, to a certified gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rankgrove.rankers.cutting import CuttingPlaneRanker
from rankgrove.rankers.linear_data import LinearData
from rankgrove.svm.pairs import COUNTED, PairOracle
from rankgrove.validation import check_choice


class RankSVM(CuttingPlaneRanker):
    """A linear SVM that learns which document of a pair is better (Joachims 2002 and 2006).

    The objective is |w|^2 / 2 + C * the mean over pairs of max(0, 1 - (s_i - s_j)), over all pairs
    of a query's documents whose labels say that i is better than j. Labels may have any number of
    grades. No pair is ever written down: a look at the data takes O(n log n) a query.

    Parameters
    ----------
    C : the weight of the mean hinge loss beside |w|^2 / 2; several values or ``"auto"``: the one
        that is best on validation data
    pairs : what the mean is taken over. ``"all"``: every pair of the data counts alike, so that
        long lists count more, as in LETOR's RankSVM; ``"query"``: the mean over queries of the
        mean over a query's pairs
    epsilon : the violation of a constraint that is let pass; the objective is then within about
        C * epsilon of the optimum
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    thresholds : turn every feature into so many indicators of thresholds, so that the model is a
        sum of step functions; standard scaling is then left out
    form : ``"1-slack"``, whose iterations do not grow with the number of queries, or ``"n-slack"``
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

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.RankSVM(C=[0.1, 1, 10]).fit(train, valid=test)
    >>> model.solution_["status"], model.C_ in (0.1, 1, 10)
    ('converged', True)
    """

    kind: ClassVar[str] = "ranksvm"
    goal: ClassVar[str] = "ndcg@10"
    goal_is_binary: ClassVar[bool] = False
    graded: ClassVar[bool] = True

    def __init__(
        self,
        C: float | str | Sequence[float] = 10.0,
        pairs: str = "all",
        epsilon: float = 1e-3,
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
        self.pairs = pairs
        self.epsilon = epsilon
        self.scaling = scaling
        self.thresholds = thresholds
        self.form = form
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        check_choice("pairs", type(self).__name__, self.pairs, COUNTED)

    def _oracle(self, data: LinearData) -> PairOracle:
        return PairOracle(
            data.design(),
            data.query_ptr,
            data.labels,
            pairs=self.pairs,
            weights=data.query_weight,
            n_threads=self.n_threads,
        )
