"""A ranker on the scores of trained rankers: a small LambdaRank net (overview paper, 7.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.nets.tasks import Inputs, Task
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.declaring import declares_parameters, learned, parameter
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.inner_rankers import (
    loaded_members,
    member_scores,
    pack_members,
    unpack_members,
)
from rankgrove.rankers.nets import parameters as nets
from rankgrove.rankers.nets.lambda_nets import lambda_rank_task
from rankgrove.rankers.nets.net import NetRanker

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents


@declares_parameters
class StackedRanker(NetRanker):
    """A LambdaRank net whose inputs are the scores of trained rankers.

    Section 7.1 of the overview paper: instead of the exact best combination of two rankers, a
    linear function (or a net) of any number of rankers, trained with lambdas on queries that the
    rankers were not trained on. ``fit`` does not change the rankers.

    Attributes
    ----------
    rankers_ : the rankers, loaded where they were given as files
    network_ : the net; its inputs are the rankers' standardised scores
    best_epoch_, history_, n_epochs_, interrupted_ : as in :class:`LambdaRank`
    n_features_in_, feature_names_ : of the data that the rankers score

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, held_out = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> rankers = [rg.LambdaMART(m, n_trees=5).fit(train) for m in ("ndcg@10", "map", "err")]
    >>> model = rg.StackedRanker(rankers, "ndcg@10").fit(held_out)
    >>> model.weights_.shape
    (3,)
    """

    kind: ClassVar[str] = "stacked"
    held: ClassVar[frozenset[str]] = frozenset({"rankers"})
    trainable: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = True  # its rankers know what they were trained on
    auto_rates: ClassVar[Mapping[str, float]] = {"adam": 0.01, "sgd": 0.01}
    rankers_: Sequence[Any] = learned()

    rankers: Sequence[Any] = parameter(
        (),
        "the trained rankers, their model files, or any models with ``predict`` (those cannot be "
        "saved)",
    )
    measure: str | Measure = nets.MEASURE
    hidden: int | Sequence[int] = nets.HIDDEN(
        (), "units of every hidden layer; ``()``, the default: a linear function"
    )
    activation: str = nets.ACTIVATION
    optimiser: str = nets.OPTIMISER
    learning_rate: float | str = nets.LEARNING_RATE("auto", 'size of a step; ``"auto"``: 0.01')
    schedule: str = nets.SCHEDULE("linear")
    n_epochs: int = nets.N_EPOCHS
    truncation: int | str | None = nets.TRUNCATION
    beyond_cutoff: bool = nets.BEYOND_CUTOFF
    sigma: float = nets.SIGMA
    normalise: bool = nets.NORMALISE
    l2: float = nets.L2
    early_stopping: int | None = nets.EARLY_STOPPING
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = nets.CHECKPOINT_EVERY
    random_state: int = nets.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS
    progress: bool = shared.PROGRESS

    def __sklearn_clone__(self) -> StackedRanker:
        # The rankers are already trained: they are not cloned.
        return type(self)(**self.get_params(deep=False))

    def members(self) -> list[Any]:
        """Return the rankers whose scores the net sees."""
        return list(self.rankers_)

    def combined(self) -> list[tuple[Any, float | None]]:
        """Return the rankers, whose scores a net combines."""
        return [(ranker, None) for ranker in self.rankers_]

    def _fit(self, training: Training) -> Learned:
        rankers = loaded_members(self.rankers, 1, type(self).__name__)
        stacked = replace(
            training,
            train=self._stacked(rankers, training.train),
            valid={name: self._stacked(rankers, data) for name, data in training.valid.items()},
        )
        return super()._fit(stacked) | {"rankers_": rankers}

    def _task(self, training: Training, inputs: Inputs) -> Task:
        return lambda_rank_task(self, training, inputs)

    def stacked(self, data: QueryDataset) -> QueryDataset:
        """Return the data with the rankers' scores as its features."""
        return self.prepared(data)

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return the data as the net sees it: with the rankers' scores as its features."""
        self._check_is_fitted()
        return self._stacked(self.rankers_, data)

    def _stacked(self, rankers: Sequence[Any], data: QueryDataset) -> QueryDataset:
        return QueryDataset.from_parts(
            self._columns(rankers, data, self.n_threads),
            data.y,
            data.query_ids,
            data.query_of_row,
            weight=data.weight,
            query_weight=data.query_weight,
        )

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better."""
        self._check_is_fitted()
        threads = self.n_threads if n_threads is None else n_threads
        return self.network_.scores(self._columns(self.rankers_, X, threads), None, threads)

    def _columns(self, rankers: Sequence[Any], X: Documents, n_threads: int | None) -> np.ndarray:
        """Return the rankers' scores, one column each, in the caller's order of rows."""
        columns = [member_scores(ranker, X, n_threads) for ranker in rankers]
        for i, column in enumerate(columns):
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                raise DataError(
                    f"{type(self).__name__}: the scores of its rankers must be finite. Ranker "
                    f"{i + 1} ({type(rankers[i]).__name__}) has {column[bad[0]]} at row "
                    f"{bad[0]}."
                )
        return np.stack(columns, axis=1).astype(np.float32)

    @property
    def weights_(self) -> np.ndarray:
        """The weight of every ranker's score, if the net is a linear function."""
        self._check_is_fitted()
        if self.network_.hidden:
            raise AttributeError("A net with hidden units has no single weight per ranker.")
        return np.asarray(self.network_.output * self.network_.scale)

    def summary(self) -> str:
        """Return a text about the model: its net, its rankers, and their weights."""
        lines = [super().summary()]
        weights = None if self.network_.hidden else self.weights_.tolist()
        for i, ranker in enumerate(self.rankers_):
            text = f"ranker {i + 1}: {type(ranker).__name__}"
            measure = getattr(ranker, "measure", None)
            text += "" if measure is None else f" for {measure}"
            lines.append(text if weights is None else f"{text}, weight {weights[i]:.4g}")
        return "\n".join(lines)

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = super()._state()
        content["rankers"], inside = pack_members(self.rankers_, "a stack")
        return content, arrays | inside

    def _restore(self, content: Content, arrays: Arrays) -> None:
        super()._restore(content, arrays)
        self.rankers = self.rankers_ = unpack_members(content["rankers"], arrays)
        if self.network_.n_features != len(self.rankers):
            raise ModelFileError("The net of the stack does not fit its rankers.")
