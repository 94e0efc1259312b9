"""CRR: one linear model for labels and for order, trained by stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.model.mlp import matrix_parts
from rankgrove.objectives.pair_index import LOSSES, PairIndex
from rankgrove.random import derive_seed
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import choice, declares_parameters, integer, parameter, real
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.rounds import LinearRoundsRanker, Round
from rankgrove.svm.pair_oracle import COUNTED

STEPS_AT_ONCE = 1 << 16  # between two checks for Ctrl-C


@declares_parameters
class CRR(LinearRoundsRanker):
    """A linear ranker that learns labels and order together (Sculley 2010).

    It minimises alpha L(documents) + (1 - alpha) L(pairs) + l2 / 2 |w|^2. L(documents) is the mean
    loss of predicting a document's label; L(pairs) is that of predicting the difference of labels
    of two documents of a query from the difference of their features. Every step draws a document
    with probability alpha, else a pair, which is found by index: pairs are never stored. Scores
    predict labels: they may be compared between queries.

    Attributes
    ----------
    linear_ : the model of the best pass on validation data, or of the last; ``coef_`` its weights
    objective_ : the mean loss of the drawn documents and pairs in every pass, before their steps
    history_ : validation data set -> measure -> its value after every pass
    best_round_ : the pass that is best on validation data, or None
    n_rounds_ : number of passes
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.CRR(alpha=0.5, n_epochs=10).fit(train)
    >>> rg.evaluate(model, test, "ndcg@5").mean["ndcg@5"] > 0.4
    True
    """

    kind: ClassVar[str] = "crr"
    unit: ClassVar[str] = "epochs"

    alpha: float = parameter(0.5, "1: only regression; 0: only pairs", real(low=0.0, high=1.0))
    loss: str = parameter(
        "squared",
        '``"squared"``; or ``"logistic"``, on labels scaled to [0, 1]: scores are then log odds',
        choice(LOSSES),
    )
    pairs: str = parameter(
        "all",
        '``"all"``: every pair of the data is equally likely; ``"query"``: first a query is drawn, '
        "then one of its pairs",
        choice(COUNTED),
    )
    l2: float = parameter(
        0.3,
        "weight of the L2 penalty, without the intercept. It is added to mean losses of scaled "
        "features: a lower value may be better for many queries",
        real(low=0.0),
    )
    learning_rate: float = parameter(
        0.003,
        "size of the first step; it falls with the root of the number of epochs",
        real(above=0.0),
    )
    n_epochs: int = parameter(
        50,
        "passes, each of as many steps as there are documents; the model of a pass is the mean of "
        "the weights after its steps",
        integer(low=1),
    )
    measure: str | Measure = shared.MEASURE("ndcg@10", "measure on validation data, or its name")
    early_stopping: int | None = shared.EARLY_STOPPING(
        None, "stop when this many passes have not improved the validation measure"
    )
    scaling: str | None = shared.SCALING
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS
    progress: bool = shared.PROGRESS

    def _most_rounds(self) -> int:
        return self.n_epochs

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        from rankgrove.objectives._crr_kernels import Documents, Rules, crr_steps

        announce()
        target = data.labels
        if self.loss == "logistic":
            target = (target - target.min()) / (target.max() - target.min())
        index = PairIndex(data.labels, data.query_ptr, self.pairs, data.query_weight)
        if not index.has_pairs and self.alpha < 1.0:
            raise DataError(f"{type(self).__name__}: every query with unequal labels has weight 0.")
        n_steps = data.rows.size
        factor = np.divide(1.0, data.scale, out=np.zeros(data.scale.size), where=data.scale > 0)
        w = np.zeros(data.scale.size + 1)
        documents = Documents(matrix_parts(data.features), data.rows, data.shift, factor, target)
        rules = Rules(
            loss=LOSSES.index(self.loss),
            alpha=float(self.alpha),
            l2=float(self.l2),
            rate=float(self.learning_rate),
            per_epoch=float(n_steps),
            seed=np.uint64(derive_seed(self.random_state, "crr")),
        )
        for epoch in range(self.n_epochs):
            total, cost = np.zeros(w.size), 0.0
            ends = range(epoch * n_steps, (epoch + 1) * n_steps, STEPS_AT_ONCE)
            for first in ends:
                last = min(first + STEPS_AT_ONCE, (epoch + 1) * n_steps)
                cost += crr_steps(documents, index.for_kernels, rules, first, last, w, total)
            mean = total / n_steps
            yield Round(mean[:-1], cost / n_steps, float(mean[-1]))
