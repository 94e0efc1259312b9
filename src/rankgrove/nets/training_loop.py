"""The training loop of nets: epochs of updates, each followed by an evaluation.

The order of an epoch depends on the seed, the epoch and the keys of queries, not on the file. An
update needs the one before it, so a net is trained on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankgrove.errors import DataError, ParameterError
from rankgrove.model import sense
from rankgrove.model.mlp import ACTIVATIONS, Network, factors, filled_widths, gathered, spread
from rankgrove.nets.tasks import Inputs, State, Step, Task
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.random import derive_seed, generator, mix64
from rankgrove.training import progress as training
from rankgrove.training.checkpoint import Checkpoint
from rankgrove.training.watch import History, Watch

OPTIMISERS = ("sgd", "adam")  # in the order of the kernels' codes
SCHEDULES = ("constant", "linear", "cosine")
DOCUMENTS_AT_ONCE = 1 << 16  # between two checks for Ctrl-C


def drawn_network(
    n_features: int,
    hidden: Sequence[int],
    activation: str,
    mean: np.ndarray,
    scale: np.ndarray,
    seed: int,
) -> Network:
    """Return a net with random weights, small enough that no unit starts saturated.

    Weights into a layer are uniform with variance 1 / inputs (2 / inputs for relu), so that a
    unit's input has about variance 1; biases are 0.
    """
    sizes = (n_features, *hidden)
    parts: list[np.ndarray] = []
    for layer, n_in in enumerate(sizes):
        n_out = sizes[layer + 1] if layer + 1 < len(sizes) else 1
        gain = 2.0 if activation == "relu" and layer + 1 < len(sizes) else 1.0
        reach = math.sqrt(3.0 * gain / n_in)
        parts.append(generator(seed, "net", layer).uniform(-reach, reach, n_in * n_out))
        if layer + 1 < len(sizes):
            parts.append(np.zeros(n_out))
    return Network(sizes, np.concatenate(parts), mean, scale, activation)


class Optimiser(NamedTuple):
    """How a net learns: ``sgd`` or ``adam``, the learning rate and its schedule, weight decay."""

    name: str
    rate: float
    schedule: str = "constant"
    l2: float = 0.0

    def rate_at(self, epoch: int, n_epochs: int) -> float:
        """Return the rate of an epoch, counted from 0."""
        gone = epoch / n_epochs
        if self.schedule == "linear":
            return self.rate * (1.0 - gone)
        if self.schedule == "cosine":
            return self.rate * 0.5 * (1.0 + math.cos(math.pi * gone))
        return self.rate


@dataclass
class Trained:
    """A net in training: its weights in the form of kernels, the optimiser's state, the best.

    ``positions`` has what is learned about positions, as the bias's ``room``; ``best_positions``
    has the bias's state in the best epoch. Both are empty where nothing is learned about them.
    """

    parameters: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    powers: np.ndarray
    best: np.ndarray
    positions: np.ndarray = field(default_factory=lambda: np.empty(0))
    best_positions: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_network(cls, network: Network, bias: PositionBias | None = None) -> Trained:
        """Start with the weights of a net, and with a bias."""
        parameters = spread(network.flat, network.sizes)
        zeros = np.zeros_like(parameters)
        trained = cls(parameters, zeros, zeros.copy(), np.ones(2), parameters.copy())
        if bias is not None and bias.moves:
            trained.positions, trained.best_positions = bias.room(), bias.start.copy()
        return trained

    @property
    def bias_state(self) -> np.ndarray:
        """The state of the bias."""
        return self.positions[: self.best_positions.size]

    def copy(self) -> Trained:
        """Return a copy that shares only the best weights."""
        return Trained(
            self.parameters.copy(),
            self.mean.copy(),
            self.square.copy(),
            self.powers.copy(),
            self.best,
            self.positions.copy(),
            self.best_positions,
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        return {name: array for name, array in vars(self).items() if array.size}


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """The state of training after an epoch, which is passed to every callback.

    Attributes
    ----------
    start : the net with which training started
    trained : the weights, and the state of the optimiser
    """

    start: Network
    trained: Trained = field(repr=False)

    @property
    def network(self) -> Network:
        """The net after the newest epoch."""
        return self._with(self.trained.parameters)

    @property
    def best_network(self) -> Network:
        """The net after the best epoch; without validation data, after the newest."""
        best = self.watch.best_round
        return self.network if best is None else self._with(self.trained.best)

    @property
    def best_bias_state(self) -> np.ndarray:
        """The state of the bias that belongs to the best network."""
        newest = self.watch.best_round is None
        return self.trained.bias_state if newest else self.trained.best_positions

    def _with(self, parameters: np.ndarray) -> Network:
        return self.start.with_flat(gathered(parameters, self.start.sizes))


Callback = Callable[[Progress], bool | None]


def train(
    task: Task,
    network: Network,
    *,
    optimiser: Optimiser,
    n_epochs: int,
    watch: Watch,
    shown: Mapping[str, Inputs],
    seed: int,
    trained: Trained | None = None,
    done: int = 0,
    callbacks: Sequence[Callback] = (),
    n_threads: int | None = None,
) -> Progress:
    """Run epochs until there are `n_epochs`, patience ends, or a callback returns True.

    Parameters
    ----------
    task : the units, and how they make updates
    network : the net with which training starts
    watch, shown : the validation data by name: measures and patience, and the documents
    trained, done : the state after `done` epochs, from a checkpoint
    callbacks : called after every epoch

    Notes
    -----
    Ctrl-C ends the loop like patience; the results of complete epochs are kept.
    """
    state = Trained.from_network(network, task.bias) if trained is None else trained
    if task.bias is not None and task.bias.moves:
        task.bias.resume([state.bias_state])
    progress = Progress(
        round=done, rounds=n_epochs, watch=watch, first=done, start=network, trained=state
    )
    try:
        for epoch in range(done, n_epochs):
            state = progress.trained.copy()
            rate = optimiser.rate_at(epoch, n_epochs)
            _run_epoch(task, network, state, optimiser._replace(rate=rate), seed, epoch)
            now = network.with_flat(gathered(state.parameters, network.sizes))
            for name, watched in watch.watched.items():
                documents = shown[name]
                watched.scores[0] = now.scores(documents.features, documents.rows, n_threads)
            watch.record()
            if watch.best_round == epoch + 1:
                state.best = state.parameters.copy()
                state.best_positions = state.bias_state.copy()
            progress.trained, progress.round = state, epoch + 1
            stopped = [bool(callback(progress)) for callback in callbacks]
            if any(stopped) or watch.out_of_patience:
                break
    except KeyboardInterrupt:
        progress.interrupted = True
    return progress


def _run_epoch(
    task: Task, network: Network, state: Trained, optimiser: Optimiser, seed: int, epoch: int
) -> None:
    """Make the updates of all units, in an order drawn for this epoch."""
    step = Step(
        filled_widths(network.sizes),
        ACTIVATIONS.index(network.activation),
        OPTIMISERS.index(optimiser.name),
        float(optimiser.rate),
        float(optimiser.l2),
    )
    arrays: State = (
        state.parameters,
        factors(network.sizes),
        state.mean,
        state.square,
        state.powers,
    )
    task.begin_epoch(epoch)
    order = epoch_order(task.keys, seed, epoch)
    sizes = np.diff(task.ptr)[order]
    turns = (np.cumsum(sizes) - 1) // DOCUMENTS_AT_ONCE
    for part in np.split(order, np.flatnonzero(np.diff(turns)) + 1):
        if task.run(part, step, arrays, state.positions) >= 0:
            _refuse_divergence(optimiser, epoch)
    if not np.isfinite(state.parameters).all():
        _refuse_divergence(optimiser, epoch)
    task.end_epoch(state.positions)


def epoch_order(keys: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """Return the order of units in an epoch: by a hash of seed, epoch and key."""
    return np.argsort(mix64(keys ^ np.uint64(derive_seed(seed, "epoch", epoch))), kind="stable")


def _refuse_divergence(optimiser: Optimiser, epoch: int) -> None:
    raise ParameterError(
        f"Training diverged in epoch {epoch + 1}: the scores grew without bound. Lower the "
        f"learning_rate (it was {optimiser.rate:g})"
        + (", or use optimiser='adam'." if optimiser.name == "sgd" else ".")
    )


class NetCheckpoint(Checkpoint):
    """A callback that writes the state every ``every`` epochs, and reads it back."""

    def __call__(self, progress: Progress) -> None:
        if progress.round % self.every == 0:
            self.write(progress)

    def write(self, progress: Progress) -> None:
        """Write the weights, the state of the optimiser and the history."""
        content = {"epoch": progress.round, "history": progress.watch.history}
        self.write_state(content, progress.trained.to_arrays())

    def read(
        self, n_epochs: int, network: Network, history: History, bias: PositionBias | None = None
    ) -> tuple[Trained, int, History] | None:
        """Return the state, the number of epochs and the history, or None without a checkpoint.

        The state must fit `network` and `bias`; `history` has the names of the data sets and
        measures.
        """
        state = self.read_state(history)
        if state is None:
            return None
        content, arrays = state
        with self.reading():
            epoch = sense.whole(content["epoch"], "the epoch")
            for name, array in Trained.from_network(network, bias).to_arrays().items():
                sense.numbers(sense.typed(arrays[name], np.float64, name), name)
                if arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                    raise ValueError(f"the array {name!r} does not fit the net")
            trained = Trained(**arrays)
        if epoch > n_epochs:
            raise DataError(
                f"{self.path} holds {epoch} epochs, and n_epochs is {n_epochs}: a net cannot "
                "return to an earlier epoch. Set n_epochs to at least as many, or remove the file."
            )
        return trained, epoch, content["history"]
