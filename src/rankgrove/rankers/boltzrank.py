"""BoltzRank: a net that raises the expected measure of a distribution over rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.nets.boltzmann import AROUND, Boltzmann, BoltzmannTask, Draws
from rankgrove.nets.inputs import Inputs
from rankgrove.rankers.net_ranker import NetRanker
from rankgrove.validation import check_choice, check_integer, check_real, refuse


class BoltzRank(NetRanker):
    """A net whose scores make rankings more or less likely, and the likely ones good.

    Volkovs and Zemel (2009): scores phi give a ranking R of m documents the energy E(R) =
    2 alpha / (m (m - 1)) times the sum over pairs of (r_j - r_k) (phi_j - phi_k), r the ranks, and
    the probability exp(-E(R)) over the sum of all. The mean of a measure under these probabilities
    is smooth in the scores, and gradients raise it; sums over all rankings are taken over a random
    sample of each query's. These are the paper's unary potentials: a document's score depends on
    its own features alone. One query makes one update. Training runs on one thread; it gives the
    same bits whatever the order of queries in the file.

    Parameters
    ----------
    measure : what to maximise: a measure or its name
    hidden : units of every hidden layer; ``()``: none, a linear function
    activation : of hidden units: ``"tanh"`` or ``"relu"``
    optimiser : ``"adam"``, or ``"sgd"``: plain gradient steps
    learning_rate : size of a step; ``"auto"``: 0.003 for adam, 0.1 for sgd
    schedule : ``"linear"`` and ``"cosine"`` bring the rate down to 0 over n_epochs, which takes the
        noise of single queries and draws out of the last epochs; ``"constant"`` does not
    n_epochs : passes over the queries at the most
    n_rankings : rankings drawn per query
    around : what they are drawn around: the net's own ``"scores"``, or the ``"labels"``
    spread : how far from it: documents are drawn one rank after the other with probabilities
        proportional to exp(score / spread), or exp(label / spread)
    redraw : draw with other random numbers in every epoch; False: always with the same, so that a
        query keeps its rankings where they are drawn around labels
    alpha : scale of the energy: the higher, the more likely the rankings that agree with the scores
    measure_share : share of the expected measure in what is maximised; the rest is minus the
        Kullback-Leibler divergence of the rankings' probabilities from a target, which the labels
        make as the scores make the probabilities
    temperature : the labels are divided by it in the target: the higher, the more even the target
    l2 : weights (not biases) shrink by learning_rate * l2 at every update
    early_stopping : stop when so many epochs have not bettered the validation measure
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : epochs between two checkpoints
    random_state : seed of the first weights, of the order of queries and of the rankings
    n_threads : threads that score validation data; None: all cores. Training itself runs on one
    progress : show a progress bar

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
    sigma: ClassVar[float] = 1.0  # type: ignore[misc]  # alpha is the scale of scores here

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        hidden: int | Sequence[int] = (),
        activation: str = "tanh",
        optimiser: str = "adam",
        learning_rate: float | str = "auto",
        schedule: str = "linear",
        n_epochs: int = 100,
        n_rankings: int = 100,
        around: str = "scores",
        spread: float = 1.0,
        redraw: bool = True,
        alpha: float = 1.0,
        measure_share: float = 1.0,
        temperature: float = 1.0,
        l2: float = 0.0,
        early_stopping: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.hidden = hidden
        self.activation = activation
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.n_epochs = n_epochs
        self.n_rankings = n_rankings
        self.around = around
        self.spread = spread
        self.redraw = redraw
        self.alpha = alpha
        self.measure_share = measure_share
        self.temperature = temperature
        self.l2 = l2
        self.early_stopping = early_stopping
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        target_measure(self.measure)
        check_integer("n_rankings", owner, self.n_rankings, low=2, high=1_000_000)
        check_choice("around", owner, self.around, AROUND)
        if not isinstance(self.redraw, bool):
            refuse("redraw", owner, "True or False", self.redraw)
        for name in ("spread", "alpha", "temperature"):
            check_real(name, owner, getattr(self, name), above=0.0)
        check_real("measure_share", owner, self.measure_share, low=0.0, high=1.0)

    def _task(self, data: QueryDataset, inputs: Inputs) -> BoltzmannTask:
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

    def _auto_rate(self) -> float:
        return 0.003 if self.optimiser == "adam" else 0.1
