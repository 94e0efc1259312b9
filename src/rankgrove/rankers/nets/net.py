"""The base class of nets: training by epochs, validation, checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.dataset_checks import has_missing
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.model.mlp import Network, chosen_rows
from rankgrove.nets.tasks import (
    FORMS,
    ClickTask,
    Inputs,
    QueryTask,
    Task,
    Tower,
    TowerTask,
    moments,
)
from rankgrove.nets.training_loop import (
    Callback,
    NetCheckpoint,
    Optimiser,
    Progress,
    drawn_network,
    train,
)
from rankgrove.objectives.clicks import ClickLambdaObjective, PairBias
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.position_bias import PositionBias, TowerBias
from rankgrove.random import row_keys
from rankgrove.rankers import positions
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker, plain_parameters
from rankgrove.rankers.fitting import (
    Training,
    digest_of,
    fingerprint,
    history_lines,
    validation_of_run,
    watch_of,
)
from rankgrove.rankers.inner_rankers import loaded
from rankgrove.rankers.nets.parameters import layer_sizes
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

# Parameters in which a checkpoint of the same run may differ.
_FREE = {"early_stopping", "checkpoint", "checkpoint_every", "n_threads", "progress"}


class NetRanker(Ranker):
    """Base of the rankers that are nets.

    A subclass declares its parameters and has a ``measure``, a ``_task``, and the learning rates
    that ``"auto"`` stands for.
    """

    measure: str | Measure
    hidden: int | Sequence[int]
    activation: str
    optimiser: str
    learning_rate: float | str
    schedule: str
    n_epochs: int
    l2: float
    early_stopping: int | None
    checkpoint: str | Path | None
    checkpoint_every: int
    random_state: int
    n_threads: int | None
    progress: bool
    # learning rates that "auto" stands for, by optimiser
    auto_rates: ClassVar[Mapping[str, float]] = {"adam": 0.001, "sgd": 0.01}

    network_: Network
    history_: History
    best_epoch_: int | None
    n_epochs_: int
    interrupted_: bool

    trainable: ClassVar[bool] = True
    fit_takes: ClassVar[frozenset[str]] = Ranker.fit_takes | {"start"}
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_epoch": "best_epoch_",
        "epochs": "n_epochs_",
        "interrupted": "interrupted_",
    }

    # -- methods that a subclass defines ----------------------------------------------------------

    def _task(self, training: Training, inputs: Inputs) -> Task:
        """Return the task that the net learns."""
        raise NotImplementedError

    # -- training ---------------------------------------------------------------------------------

    def _check_together(self) -> None:
        if self._rate() * self.l2 > 1.0:
            raise ParameterError(
                f"{type(self).__name__}: at every update weights shrink by learning_rate * l2, "
                f"which must be at most 1. Got {self._rate():g} * {self.l2:g}: lower l2."
            )

    def _target(self) -> Measure:
        return target_measure(self.measure)

    def _rate(self) -> float:
        if self.learning_rate == "auto":
            return self.auto_rates[self.optimiser]
        return float(self.learning_rate)

    def _hidden(self) -> tuple[int, ...]:
        """Return the hidden layers' sizes."""
        return layer_sizes("hidden", type(self).__name__, self.hidden)

    def _fit(self, training: Training) -> Learned:
        data = training.train
        inputs = self._inputs(data, training.owner)
        depends_on = dict(training.depends_on)
        network = None
        if training.start is not None:
            network = self._checked_start(training.start, data.n_features, training.owner)
            inputs = inputs._replace(mean=network.mean, scale=network.scale)
            depends_on["first weights"] = hashlib.blake2b(
                network.flat.tobytes(), digest_size=16
            ).hexdigest()
        task = self._task(training, inputs)
        network = network or drawn_network(
            data.n_features,
            self._hidden(),
            self.activation,
            inputs.mean,
            inputs.scale,
            self.random_state,
        )
        end = self._train(training, inputs, task, network, depends_on)
        learned: Learned = {}
        bias, state = task.bias, end.best_bias_state
        if bias is not None:
            learned["position_bias_"] = bias.described(state if bias.moves else bias.start)
        return learned | {
            "network_": end.best_network,
            "history_": end.watch.history,
            "best_epoch_": end.watch.best_round,
            "n_epochs_": end.round,
            "interrupted_": end.interrupted,
            "saw_missing_": has_missing(data.features),
        }

    def _checked_start(self, start: Any, n_features: int, owner: str) -> Network:
        """Return the net that training starts from."""
        rule = "a trained net (RankNet, LambdaRank, ListNet, BoltzRank) or its model file"
        start = loaded(start, "start", owner, rule)
        network = getattr(start, "network_", start)
        if not isinstance(network, Network):
            refuse("start", owner, rule, start)
        wanted = (n_features, *self._hidden())
        if network.sizes != wanted or network.activation != self.activation:
            raise ParameterError(
                f"{owner}: start must be a net of the same sizes: {' x '.join(map(str, wanted))} "
                f"{self.activation} units. Got {' x '.join(map(str, network.sizes))} "
                f"{network.activation} units."
            )
        return network

    def _inputs(self, data: QueryDataset, owner: str) -> Inputs:
        """Return the rows in query order, and how to standardise them."""
        if data.n_features == 0:
            raise DataError(f"{owner} needs data with at least one feature.")
        rows = chosen_rows(data.features, query_order_rows(data))
        # The order of sums depends on the queries' keys, not on the order of the file.
        turn = np.empty(data.n_queries, np.int64)
        turn[np.argsort(data.query_keys, kind="stable")] = np.arange(data.n_queries)
        by_key = np.argsort(np.repeat(turn, np.diff(data.query_ptr)), kind="stable")
        mean, scale = moments(data.features, rows[by_key])
        if not scale.any():
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to learn from."
            )
        return Inputs(data.features, rows, mean, scale)

    def _train(
        self,
        training: Training,
        inputs: Inputs,
        task: Task,
        network: Network,
        depends_on: Mapping[str, str],
    ) -> Progress:
        """Train a net on a task; `depends_on`: values that a checkpoint must agree with."""
        bias = task.bias
        watch = watch_of(training, self.early_stopping, self.n_threads, bias=bias)
        if bias is not None:
            depends_on = {**depends_on, "position bias": digest_of([bias.start])}
        saver = self._saver(training, depends_on)
        state = None
        if saver is not None:
            state = saver.read(self.n_epochs, network, watch.history, bias)
        trained, done, watch.history = state or (None, 0, watch.history)
        bar = ProgressBar(type(self).__name__, "epochs") if self.progress else None
        called: list[Callback] = [*([saver] if saver else []), *([bar] if bar else [])]
        try:
            end = train(
                task,
                network,
                optimiser=Optimiser(self.optimiser, self._rate(), self.schedule, self.l2),
                n_epochs=self.n_epochs,
                watch=watch,
                shown={name: _shown(data, inputs) for name, data in training.valid.items()},
                seed=self.random_state,
                trained=trained,
                done=done,
                callbacks=[*called, *training.callbacks],
                n_threads=self.n_threads,
            )
        finally:
            if bar:
                bar.close()
        if end.interrupted and end.round == 0:
            raise KeyboardInterrupt
        if saver is not None:
            saver.write(end)
        return end

    def _saver(self, training: Training, depends_on: Mapping[str, str]) -> NetCheckpoint | None:
        if self.checkpoint is None:
            return None
        # A schedule other than the constant one depends on the number of epochs.
        free = _FREE | ({"n_epochs"} if self.schedule == "constant" else set())
        run = {k: v for k, v in plain_parameters(self).items() if k not in free}
        run["kind"] = self.kind
        run["hidden"] = list(self._hidden())
        run["training data"] = fingerprint(training.train)
        run |= validation_of_run(self.measure, training.valid, training.measures)
        return NetCheckpoint(self.checkpoint, self.checkpoint_every, run | dict(depends_on))

    # -- the trained net --------------------------------------------------------------------------

    def summary(self) -> str:
        """Return a text about the model: its size and its validation."""
        self._check_is_fitted()
        net = self.network_
        units = " and ".join(f"{n:,}" for n in net.hidden)
        inside = f"{units} {net.activation} units" if net.hidden else "a linear function"
        lines = [
            f"{type(self).__name__} for {self.measure}: {counted(net.n_features, 'input')}, "
            f"{inside}, {counted(net.flat.size, 'weight')}, {counted(self.n_epochs_, 'epoch')}"
        ]
        if self.position_bias_ is not None:
            lines += self.position_bias_.lines()
        lines += history_lines(self.history_, self.best_epoch_, "epoch")
        return "\n".join(lines)

    # -- for the base class -----------------------------------------------------------------------

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        return self.network_.scores(features, rows, n_threads)

    def _state(self) -> tuple[Content, Arrays]:
        return self._content(), self.network_.to_arrays()

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self._take(content)
        self.network_ = Network.from_arrays(arrays)


def lambda_task(
    ranker: NetRanker,
    training: Training,
    inputs: Inputs,
    *,
    sigma: float,
    form: str = FORMS[0],
    truncation: int | None = None,
    beyond_cutoff: bool = True,
    normalise: bool = False,
    smoothing: float = 0.0,
    draws: int = 1,
) -> Task:
    """Return the lambdas of a ranker's measure on the training queries."""
    data = training.train
    rows = target_measure(ranker.measure), data.grouped(data.y), data.query_ptr
    others: dict[str, Any] = {
        "row_keys": row_keys(data.query_keys, data.query_ptr),
        "truncation": truncation,
        "beyond_cutoff": beyond_cutoff,
        "sigma": sigma,
        "normalise": normalise,
        "row_weight": None if data.weight is None else data.grouped(data.weight),
        "query_weight": data.query_weight,
        "n_threads": ranker.n_threads,
        "smoothing": smoothing,
        "draws": draws,
        "seed": ranker.random_state,
    }
    bias = positions_of(ranker, training)
    if bias is not None and form != FORMS[0]:
        raise ParameterError(f"{training.owner}: position_bias needs form={FORMS[0]!r}.")
    if bias is None:
        return QueryTask(inputs, LambdaObjective(*rows, **others), data.query_keys, form)
    if isinstance(bias, TowerBias):
        objective = LambdaObjective(*rows, **others)
        if objective.measure.own_swaps:
            raise ParameterError(
                f"{training.owner}: position_bias='two_tower' cannot follow a measure of your "
                "own: use one of rankgrove's."
            )
        return TowerTask(inputs, objective, data.query_keys, tower_of(bias, data))
    cell = positions.cells_of_rows(bias, data)
    assert isinstance(bias, PairBias)
    weighed = ClickLambdaObjective(*rows, bias=bias, cell=cell, **others)
    return ClickTask(inputs, weighed, data.query_keys)


def positions_of(ranker: Any, training: Training) -> PositionBias | None:
    """Return the position bias of a fit, or None."""
    if getattr(ranker, "position_bias", None) is None:
        return None
    return positions.bias_of(ranker, training.train, training.owner, TowerBias)


def tower_of(bias: TowerBias, data: QueryDataset) -> Tower:
    """Return the second tower of a net."""
    return Tower(bias, positions.cells_of_rows(bias, data))


def _shown(data: QueryDataset, like: Inputs) -> Inputs:
    """Return the rows of validation data in query order."""
    rows = chosen_rows(data.features, query_order_rows(data))
    return Inputs(data.features, rows, like.mean, like.scale)
