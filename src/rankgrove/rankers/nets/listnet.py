"""ListNet: a linear function or a net that learns from whole lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.nets.tasks import Inputs, ListTask
from rankgrove.objectives.clicks import check_clicks
from rankgrove.objectives.position_bias import TowerBias
from rankgrove.rankers import parameters as shared
from rankgrove.rankers import positions
from rankgrove.rankers.declaring import declares_parameters
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.nets import parameters as nets
from rankgrove.rankers.nets.net import NetRanker, positions_of, tower_of


@declares_parameters
class ListNet(NetRanker):
    """A linear function, or a net, that learns the probability of every document to be first.

    Cao and others (2007): labels y give every document's probability to be first, exp(y_i) over the
    sum of exp(y) of its query, and so do scores; the cost is the cross entropy of the two. There is
    one update per query, and none for queries whose labels are all equal. Training runs on one
    thread; the model is the same to the bit for any order of queries in the file.

    Attributes
    ----------
    network_ : the net, of the best epoch where there was validation data
    best_epoch_ : the epoch with the best validation value, or None
    history_ : validation data set -> measure -> its value after every epoch
    n_epochs_ : number of epochs that were run
    n_features_in_, feature_names_ : of the training data
    interrupted_ : whether Ctrl-C ended training
    position_bias_ : a table of what was learned about positions; None without `position_bias`

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.ListNet().fit(train)
    >>> rg.evaluate(model, test, "ndcg@5").mean["ndcg@5"] > 0.4
    True
    """

    kind: ClassVar[str] = "listnet"
    takes_row_weights: ClassVar[bool] = False

    hidden: int | Sequence[int] = nets.HIDDEN(())
    activation: str = nets.ACTIVATION
    optimiser: str = nets.OPTIMISER
    learning_rate: float | str = nets.LEARNING_RATE
    schedule: str = nets.FALLING_SCHEDULE
    n_epochs: int = nets.N_EPOCHS
    l2: float = nets.L2
    measure: str | Measure = shared.MEASURE("ndcg@10", "measure on validation data, or its name")
    early_stopping: int | None = nets.EARLY_STOPPING
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = nets.CHECKPOINT_EVERY
    random_state: int = nets.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS
    progress: bool = shared.PROGRESS
    position_bias: str | None = positions.OF_LISTNET
    n_positions: int | None = positions.N_POSITIONS

    def _task(self, training: Training, inputs: Inputs) -> ListTask:
        data = training.train
        owner = type(self).__name__
        if data.weight is not None:
            raise DataError(
                f"{owner}: weights of rows have no meaning for a loss of whole lists. Give the "
                "data weights of queries (query_weight), or none."
            )
        bias = positions_of(self, training)
        if bias is not None:
            check_clicks(data.y, training.owner, bias.method)
        task = ListTask(
            inputs,
            data.grouped(data.y),
            data.query_ptr,
            data.query_keys,
            data.query_weight,
            tower_of(bias, data) if isinstance(bias, TowerBias) else None,
        )
        if task.is_empty:
            raise DataError(
                f"{owner}: in every query all labels are equal, so no order can be learned. Check "
                "the labels."
            )
        return task
