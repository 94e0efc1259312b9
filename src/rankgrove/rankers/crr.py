"""CRR: one linear model for labels and for order, by stochastic gradient steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.model.mlp import matrix_parts
from rankgrove.objectives.crr import LOSSES, PairIndex
from rankgrove.random import derive_seed
from rankgrove.rankers.linear_data import LinearData
from rankgrove.rankers.linear_rounds import LinearRoundsRanker, Round
from rankgrove.svm.pairs import COUNTED
from rankgrove.validation import check_choice, check_integer, check_real

STEPS_AT_ONCE = 1 << 16  # between two looks whether Ctrl-C was pressed


class CRR(LinearRoundsRanker):
    """A linear ranker that learns labels and order together (Sculley 2010).

    It minimises alpha L(documents) + (1 - alpha) L(pairs) + l2 / 2 |w|^2: the first the mean loss
    of predicting every document's label, the second that of predicting the difference of labels
    of two documents of a query from the difference of their features. Every step draws a document
    with probability alpha, else a pair, which is found by index: pairs are never written down.
    Scores are labels, too: they may be compared between queries.

    Parameters
    ----------
    alpha : 1: regression alone; 0: pairs alone
    loss : ``"squared"``; or ``"logistic"``, on labels brought to [0, 1]: scores are log odds then
    pairs : ``"all"``: every pair of the data is drawn alike; ``"query"``: a query is drawn, then a
        pair of it
    l2 : how strongly weights shrink (not the intercept). It counts beside mean losses of scaled
        features: less may be better where there are many queries
    learning_rate : size of the first step; it falls with the root of the number of epochs
    n_epochs : passes, each of as many steps as there are documents; the model of a pass is the mean
        of the weights after its steps
    measure : what is looked at on validation data
    early_stopping : stop when so many passes have not bettered the validation measure
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    random_state : seed of what is drawn
    n_threads : threads that score validation data; None: all cores. Training itself runs on one
    progress : show a progress bar

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights. Of the best pass on validation data, or the last
    objective_ : the mean loss of what was drawn in every pass, each before its step
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

    def __init__(
        self,
        alpha: float = 0.5,
        loss: str = "squared",
        pairs: str = "all",
        l2: float = 0.3,
        learning_rate: float = 0.003,
        n_epochs: int = 50,
        measure: str | Measure = "ndcg@10",
        early_stopping: int | None = None,
        scaling: str | None = "standard",
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.pairs = pairs
        self.l2 = l2
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.measure = measure
        self.early_stopping = early_stopping
        self.scaling = scaling
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        check_real("alpha", owner, self.alpha, low=0.0, high=1.0)
        check_choice("loss", owner, self.loss, LOSSES)
        check_choice("pairs", owner, self.pairs, COUNTED)
        check_real("l2", owner, self.l2, low=0.0)
        check_real("learning_rate", owner, self.learning_rate, above=0.0)
        check_integer("n_epochs", owner, self.n_epochs, low=1)
        check_integer("random_state", owner, self.random_state, low=0)

    def _most_rounds(self) -> int:
        return self.n_epochs

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        from rankgrove.objectives._crr_kernels import crr_steps

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
        given = (
            matrix_parts(data.features), data.rows, data.shift, factor, target,
            *index.for_kernels(), LOSSES.index(self.loss), float(self.alpha), float(self.l2),
            float(self.learning_rate), float(n_steps),
            np.uint64(derive_seed(self.random_state, "crr")),
        )  # fmt: skip
        for epoch in range(self.n_epochs):
            total, cost = np.zeros(w.size), 0.0
            ends = range(epoch * n_steps, (epoch + 1) * n_steps, STEPS_AT_ONCE)
            for first in ends:
                last = min(first + STEPS_AT_ONCE, (epoch + 1) * n_steps)
                cost += crr_steps(*given, first, last, w, total)
            mean = total / n_steps
            yield Round(mean[:-1], cost / n_steps, float(mean[-1]))
