"""What the nets share: training epoch by epoch, validation, checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from rankgrove.compiling import announce
from rankgrove.data.inputs import has_missing
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.model.mlp import ACTIVATIONS, Network, chosen_rows
from rankgrove.nets.inputs import FORMS, Inputs, QueryTask, Task, moments
from rankgrove.nets.train import (
    OPTIMISERS,
    SCHEDULES,
    Callback,
    NetCheckpoint,
    Optimiser,
    Progress,
    drawn_network,
    train,
)
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.parallel import thread_count
from rankgrove.random import row_keys
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.rankers.boosted_data import (
    fingerprint,
    listed_callbacks,
    looked_at_of,
    named_measures,
)
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.nested import loaded
from rankgrove.rankers.watching import check_alike, check_defined, check_valid_given, history_lines
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch, Watched
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    counted,
    refuse,
)

if TYPE_CHECKING:
    from typing import Self

# What a checkpoint may differ in and still be of the same run.
_FREE = {"early_stopping", "checkpoint", "checkpoint_every", "n_threads", "progress"}


class _Look(NamedTuple):
    """What is looked at while training: validation data, measures there, and who is told."""

    valid: dict[str, QueryDataset]
    measures: dict[str, Measure]
    callbacks: list[Callback]


class NetRanker(Ranker):
    """Base of the rankers that are nets.

    A subclass names its parameters in ``__init__``, has a ``measure``, gives ``_task``, and the
    learning rates that ``"auto"`` stands for.
    """

    measure: str | Measure
    hidden: int | Sequence[int]
    activation: str
    optimiser: str
    learning_rate: float | str
    schedule: str
    n_epochs: int
    sigma: float
    l2: float
    early_stopping: int | None
    checkpoint: str | Path | None
    checkpoint_every: int
    random_state: int
    n_threads: int | None
    progress: bool
    form: str = FORMS[0]

    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_epoch": "best_epoch_",
        "epochs": "n_epochs_",
        "interrupted": "interrupted_",
    }

    # -- training -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        weight: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        callbacks: Callback | Iterable[Callback] | None = None,
        start: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at after every
            epoch; the model keeps the best epoch of the first
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight : where `X` is not a data set
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called after every epoch with a ``Progress``;
            returning True ends training
        start : a trained net of the same sizes, or its model file, whose weights (and
            standardising) training begins with; None: random weights. LambdaRank that begins with
            RankNet's finds better optima
        """
        owner = f"{type(self).__name__}.fit"
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        look = self._prepared(watched, valid_measures, callbacks, owner)
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        data = self._training_data(X, y, qid, group, owner, **weights)
        inputs = self._inputs(data, owner)
        depends_on = {}
        if start is not None:
            start = self._checked_start(start, data.n_features, owner)
            inputs = inputs._replace(mean=start.mean, scale=start.scale)
            depends_on["first weights"] = hashlib.blake2b(
                start.flat.tobytes(), digest_size=16
            ).hexdigest()
        task = self._task(data, inputs)
        self._train(data, inputs, task, look, start, **depends_on)
        return self

    def _checked_start(self, start: Any, n_features: int, owner: str) -> Network:
        """Return the net that training is to begin with."""
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

    def _prepared(
        self, watched: dict[str, QueryDataset], measures: Any, callbacks: Any, owner: str
    ) -> _Look:
        """Check parameters and what is to be looked at, before any work."""
        announce()
        self.check_parameters()
        self.check_valid(bool(watched))
        return _Look(
            watched,
            named_measures(measures, target_measure(self.measure), bool(watched)),
            listed_callbacks(callbacks, owner),
        )

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        self._hidden()
        check_choice("activation", owner, self.activation, ACTIVATIONS)
        check_choice("optimiser", owner, self.optimiser, OPTIMISERS)
        if self.learning_rate != "auto":
            check_real("learning_rate", owner, self.learning_rate, above=0.0)
        check_choice("schedule", owner, self.schedule, SCHEDULES)
        check_integer("n_epochs", owner, self.n_epochs, low=1)
        check_real("sigma", owner, self.sigma, above=0.0)
        check_real("l2", owner, self.l2, low=0.0)
        if self._rate() * self.l2 > 1.0:
            raise ParameterError(
                f"{owner}: at every update weights shrink by learning_rate * l2, which must be at "
                f"most 1. Got {self._rate():g} * {self.l2:g}: lower l2."
            )
        if self.early_stopping is not None:
            check_integer("early_stopping", owner, self.early_stopping, low=1)
        if self.checkpoint is not None:
            check_output_file("checkpoint", owner, self.checkpoint)
        check_integer("checkpoint_every", owner, self.checkpoint_every, low=1)
        check_integer("random_state", owner, self.random_state, low=0)
        thread_count(self.n_threads)

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter asks for it."""
        asked = None if self.early_stopping is None else "early_stopping"
        check_valid_given(given, asked, type(self).__name__)

    def _rate(self) -> float:
        return self._auto_rate() if self.learning_rate == "auto" else float(self.learning_rate)

    def _hidden(self) -> tuple[int, ...]:
        """Return the hidden layers' sizes, of one number or several."""
        owner, given = type(self).__name__, cast(Any, self.hidden)
        if isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim != 1):
            refuse("hidden", owner, "a whole number, or several in a list, one a layer", given)
        listed = given if isinstance(given, Sequence | np.ndarray) else [given]
        return tuple(check_integer("hidden", owner, n, low=1) for n in listed)

    def _inputs(self, data: QueryDataset, owner: str) -> Inputs:
        """Return the rows in query order, and how to standardise them."""
        if data.n_features == 0:
            raise DataError(f"{owner} needs data with at least one feature.")
        rows = chosen_rows(data.features, query_order_rows(data))
        # The order of sums hangs on queries' keys: another order of the file changes no bit.
        turn = np.empty(data.n_queries, np.int64)
        turn[np.argsort(data.query_keys, kind="stable")] = np.arange(data.n_queries)
        by_key = np.argsort(np.repeat(turn, np.diff(data.query_ptr)), kind="stable")
        mean, scale = moments(data.features, rows[by_key])
        if not scale.any():
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to learn from."
            )
        return Inputs(data.features, rows, mean, scale)

    # -- what a subclass defines or may change ----------------------------------------------------

    def _truncation(self, target: Measure) -> int | None:
        return None

    def _beyond_cutoff(self) -> bool:
        return True

    def _normalise(self) -> bool:
        return False

    def _auto_rate(self) -> float:
        raise NotImplementedError

    def _task(self, data: QueryDataset, inputs: Inputs) -> Task:
        return QueryTask(inputs, self._objective(data), data.query_keys, self.form)

    def _objective(self, data: QueryDataset) -> LambdaObjective:
        target = target_measure(self.measure)
        return LambdaObjective(
            target,
            data.grouped(data.y),
            data.query_ptr,
            row_keys=row_keys(data.query_keys, data.query_ptr),
            truncation=self._truncation(target),
            beyond_cutoff=self._beyond_cutoff(),
            sigma=self.sigma,
            normalise=self._normalise(),
            row_weight=None if data.weight is None else data.grouped(data.weight),
            query_weight=data.query_weight,
            n_threads=self.n_threads,
        )

    # -- the loop ---------------------------------------------------------------------------------

    def _train(
        self,
        data: QueryDataset,
        inputs: Inputs,
        task: Task,
        look: _Look,
        start: Network | None = None,
        **depends_on: str,
    ) -> None:
        """Train on a task and put what was learned into the attributes.

        start : the net to begin with; None: one with random weights
        depends_on : what the run depends on beside parameters and data
        """
        watch = self._watch(look, data)
        saver = self._saver(data, look, depends_on)
        network = start or drawn_network(
            data.n_features,
            self._hidden(),
            self.activation,
            inputs.mean,
            inputs.scale,
            self.random_state,
        )
        found = saver.read(self.n_epochs, network, watch.history) if saver is not None else None
        trained, done, watch.history = found or (None, 0, watch.history)
        bar = ProgressBar(type(self).__name__, "epochs") if self.progress else None
        wanted: list[Callback] = [*([saver] if saver else []), *([bar] if bar else [])]
        try:
            end = train(
                task,
                network,
                optimiser=Optimiser(self.optimiser, self._rate(), self.schedule, self.l2),
                n_epochs=self.n_epochs,
                watch=watch,
                shown={name: _shown(one, inputs) for name, one in look.valid.items()},
                seed=self.random_state,
                trained=trained,
                done=done,
                callbacks=[*wanted, *look.callbacks],
                n_threads=self.n_threads,
            )
        finally:
            if bar:
                bar.close()
        if end.interrupted and end.round == 0:
            raise KeyboardInterrupt
        if saver is not None:
            saver.write(end)
        self.saw_missing_ = has_missing(data.features)
        self._keep(data, end)

    def _watch(self, look: _Look, train: QueryDataset) -> Watch:
        owner = type(self).__name__
        names = train.given_names
        looked_at = {}
        for name, data in look.valid.items():
            check_alike(data, name, train.n_features, names, owner)
            scores = np.zeros((1, data.n_rows))
            one = Watched(
                None,
                data.grouped(data.y),
                data.query_ptr,
                look.measures,
                scores,
                n_threads=self.n_threads,
            )
            check_defined(one, name, owner)
            looked_at[name] = one
        return Watch(looked_at, self.early_stopping)

    def _saver(
        self,
        train: QueryDataset,
        look: _Look,
        depends_on: dict[str, str],
    ) -> NetCheckpoint | None:
        if self.checkpoint is None:
            return None
        # A schedule other than the constant one hangs on the number of epochs.
        free = _FREE | ({"n_epochs"} if self.schedule == "constant" else set())
        run = {k: v for k, v in plain_parameters(self).items() if k not in free}
        run["kind"] = self.kind
        run["hidden"] = list(self._hidden())
        run["training data"] = fingerprint(train)
        run |= looked_at_of(self, look.valid, look.measures)
        return NetCheckpoint(self.checkpoint, self.checkpoint_every, run | depends_on)

    def _keep(self, data: QueryDataset, end: Progress) -> None:
        """Put what was learned into the attributes."""
        self.network_ = end.best_network
        self.history_: History = end.watch.history
        self.best_epoch_ = end.watch.best_round
        self.n_epochs_ = end.round
        self.interrupted_ = end.interrupted
        self._keep_features(data)

    # -- what was learned -------------------------------------------------------------------------

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
        lines += history_lines(self.history_, self.best_epoch_, "epoch")
        return "\n".join(lines)

    # -- for the base class -----------------------------------------------------------------------

    def _scores(
        self, features: Any, rows: np.ndarray | slice | None, n_threads: int | None
    ) -> np.ndarray:
        return self.network_.scores(features, rows, n_threads)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._content(), self.network_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._take(content)
        self.network_ = Network.from_arrays(arrays)


def _shown(data: QueryDataset, like: Inputs) -> Inputs:
    """Return the rows of validation data in query order."""
    rows = chosen_rows(data.features, query_order_rows(data))
    return Inputs(data.features, rows, like.mean, like.scale)
