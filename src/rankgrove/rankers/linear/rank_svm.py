"""RankSVM: minimises the hinge loss of all pairs of unequal labels, to a certified gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import choice, declares_parameters, parameter
from rankgrove.rankers.fitting import Callback
from rankgrove.rankers.linear import parameters as linear
from rankgrove.rankers.linear.chosen_c import ChoosesC, Learner
from rankgrove.rankers.linear.cutting_plane_learner import CuttingPlaneLearner
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.svm.pair_oracle import COUNTED, PairOracle


@declares_parameters
class RankSVM(ChoosesC, LinearPredictor):
    """A linear SVM that learns which document of a pair is better (Joachims 2002 and 2006).

    The objective is |w|^2 / 2 + C * the mean over pairs of max(0, 1 - (s_i - s_j)), over all pairs
    of a query's documents whose labels say that i is better than j. Labels may have any number of
    grades. Pairs are never stored: a pass over the data takes O(n log n) per query.

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

    C: float | str | Sequence[float] = linear.C(
        10.0,
        "the weight of the mean hinge loss, added to |w|^2 / 2; several values or "
        '``"auto"``: the one that is best on validation data',
    )
    pairs: str = parameter(
        "all",
        '``"all"``: the mean over all pairs of the data, so long lists count more, as in LETOR\'s '
        'RankSVM; ``"query"``: the mean over queries of the mean over a query\'s pairs',
        choice(COUNTED),
    )
    epsilon: float = linear.EPSILON
    scaling: str | None = shared.SCALING
    thresholds: int | None = linear.THRESHOLDS
    form: str = linear.FORM
    max_iterations: int | None = linear.MAX_ITERATIONS
    time_limit: float | None = linear.TIME_LIMIT
    memory_limit: float | None = linear.MEMORY_LIMIT
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS(False, "show the progress of the solver")

    def _learner(self, data: LinearData, callbacks: list[Callback]) -> Learner:
        return CuttingPlaneLearner(self, data, self._oracle(data), callbacks)

    def _oracle(self, data: LinearData) -> PairOracle:
        return PairOracle(
            data.design(),
            data.query_ptr,
            data.labels,
            pairs=self.pairs,
            weights=data.query_weight,
            n_threads=self.n_threads,
        )
