"""BoltzRank: a net that raises the expected measure of a distribution over rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.nets.boltzmann import AROUND, Boltzmann, BoltzmannTask, Draws
from rankgrove.nets.tasks import Inputs
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    integer,
    parameter,
    real,
)
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.nets import parameters as nets
from rankgrove.rankers.nets.net import NetRanker


@declares_parameters
class BoltzRank(NetRanker):
    """A net that raises the expected measure of a distribution over rankings.

    Volkovs and Zemel (2009): scores phi give a ranking R of m documents the energy E(R) =
    2 alpha / (m (m - 1)) times the sum over pairs of (r_j - r_k) (phi_j - phi_k), r the ranks, and
    the probability exp(-E(R)) over the sum of all. The mean of a measure under these probabilities
    is smooth in the scores, and training follows its gradient; sums over all rankings are estimated
    from a random sample of rankings per query. The potentials are the paper's unary ones: a
    document's score depends only on its own features. There is one update per query. Training runs
    on one thread; the model is the same to the bit for any order of queries in the file.

    Attributes
    ----------
    network_ : the net, of the best epoch where there was validation data
    best_epoch_ : the epoch with the best validation value, or None
    history_ : validation data set -> measure -> its value after every epoch
    n_epochs_ : number of epochs that were run
    n_features_in_, feature_names_ : of the training data
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.BoltzRank("ndcg@5", n_epochs=30).fit(train)
    >>> rg.evaluate(model, test, "ndcg@5").mean["ndcg@5"] > 0.4
    True
    """

    kind: ClassVar[str] = "boltzrank"
    takes_row_weights: ClassVar[bool] = False
    auto_rates: ClassVar[Mapping[str, float]] = {"adam": 0.003, "sgd": 0.1}

    measure: str | Measure = nets.MEASURE
    hidden: int | Sequence[int] = nets.HIDDEN(())
    activation: str = nets.ACTIVATION
    optimiser: str = nets.OPTIMISER("adam", '``"adam"``, or ``"sgd"``: plain gradient steps')
    learning_rate: float | str = nets.LEARNING_RATE(
        "auto", 'size of a step; ``"auto"``: 0.003 for adam, 0.1 for sgd'
    )
    schedule: str = nets.FALLING_SCHEDULE
    n_epochs: int = nets.N_EPOCHS
    n_rankings: int = parameter(100, "rankings drawn per query", integer(low=2, high=1_000_000))
    around: str = parameter(
        "scores",
        'centre of the drawn rankings: the net\'s own ``"scores"``, or the ``"labels"``',
        choice(AROUND),
    )
    spread: float = parameter(
        1.0,
        "spread of the drawn rankings: documents are drawn one rank after the other with "
        "probabilities proportional to exp(score / spread), or exp(label / spread)",
        real(above=0.0),
    )
    redraw: bool = parameter(
        True,
        "use new random numbers in every epoch; False: always the same, so a query keeps its "
        "rankings where they are drawn around labels",
        flag,
    )
    alpha: float = parameter(
        1.0,
        "scale of the energy: the higher, the more likely the rankings that agree with the scores",
        real(above=0.0),
    )
    measure_share: float = parameter(
        1.0,
        "share of the expected measure in the objective; the rest is minus the Kullback-Leibler "
        "divergence of the rankings' probabilities from a target: the probabilities that labels "
        "would give as scores",
        real(low=0.0, high=1.0),
    )
    temperature: float = parameter(
        1.0,
        "divisor of the labels in the target: the higher, the more even the target",
        real(above=0.0),
    )
    l2: float = nets.L2
    early_stopping: int | None = nets.EARLY_STOPPING
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = nets.CHECKPOINT_EVERY
    random_state: int = nets.RANDOM_STATE(
        0, "seed of the first weights, of the order of queries and of the rankings"
    )
    n_threads: int | None = shared.N_SCORING_THREADS
    progress: bool = shared.PROGRESS

    def _task(self, training: Training, inputs: Inputs) -> BoltzmannTask:
        data = training.train
        owner = type(self).__name__
        if data.weight is not None:
            raise DataError(
                f"{owner}: weights of rows have no meaning for rankings of whole lists. Give the "
                "data weights of queries (query_weight), or none."
            )
        task = BoltzmannTask(
            inputs,
            target_measure(self.measure),
            data.grouped(data.y),
            data.query_ptr,
            data.query_keys,
            Boltzmann(self.alpha, self.measure_share, self.temperature),
            Draws(self.n_rankings, self.around, self.spread, self.redraw, self.random_state),
            data.query_weight,
            self.n_threads,
        )
        if task.is_empty:
            raise DataError(
                f"{owner}: no query has documents of different labels that {self.measure} can "
                "tell apart: there is nothing to learn an order from. Check the labels."
            )
        return task
