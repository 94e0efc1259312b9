"""ListNet: a linear function or a net that learns whole lists at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.nets.inputs import Inputs, ListTask
from rankgrove.rankers.net_ranker import NetRanker


class ListNet(NetRanker):
    """A linear function, or a net, that learns the labels' probabilities of standing on top.

    Cao and others (2007): labels y make every document's probability of being first, exp(y_i) over
    the sum of exp(y) of its query, and so do scores; the cost is the cross entropy of the two. One
    query makes one update. Queries whose labels are all equal have none. Training runs on one
    thread; it gives the same bits whatever the order of queries in the file.

    Parameters
    ----------
    hidden : units of every hidden layer; ``()``: none, a linear function
    activation : of hidden units: ``"tanh"`` or ``"relu"``
    optimiser : ``"adam"``, or ``"sgd"``: plain gradient steps, as in the paper
    learning_rate : size of a step; ``"auto"``: 0.001 for adam, 0.01 for sgd
    schedule : ``"linear"`` and ``"cosine"`` bring the rate down to 0 over n_epochs, which takes the
        noise of single queries out of the last epochs; ``"constant"`` does not
    n_epochs : passes over the queries at the most
    l2 : weights (not biases) shrink by learning_rate * l2 at every update
    measure : what is looked at on validation data
    early_stopping : stop when so many epochs have not bettered the validation measure
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : epochs between two checkpoints
    random_state : seed of the first weights and of the order of queries
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
    >>> model = rg.ListNet().fit(train)
    >>> rg.evaluate(model, test, "ndcg@5").mean["ndcg@5"] > 0.4
    True
    """

    kind: ClassVar[str] = "listnet"
    sigma: ClassVar[float] = 1.0  # type: ignore[misc]  # scores are taken as they are

    def __init__(
        self,
        hidden: int | Sequence[int] = (),
        activation: str = "tanh",
        optimiser: str = "adam",
        learning_rate: float | str = "auto",
        schedule: str = "linear",
        n_epochs: int = 100,
        l2: float = 0.0,
        measure: str | Measure = "ndcg@10",
        early_stopping: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.n_epochs = n_epochs
        self.l2 = l2
        self.measure = measure
        self.early_stopping = early_stopping
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        parse_measure(self.measure)

    def _task(self, data: QueryDataset, inputs: Inputs) -> ListTask:
        owner = type(self).__name__
        if data.weight is not None:
            raise DataError(
                f"{owner}: weights of rows have no meaning for a loss of whole lists. Give the "
                "data weights of queries (query_weight), or none."
            )
        task = ListTask(
            inputs, data.grouped(data.y), data.query_ptr, data.query_keys, data.query_weight
        )
        if task.is_empty:
            raise DataError(
                f"{owner}: no query has documents of different labels: there is nothing to learn "
                "an order from. Check the labels."
            )
        return task

    def _auto_rate(self) -> float:
        return 0.001 if self.optimiser == "adam" else 0.01
