"""A ranker on the scores of trained rankers: a small LambdaRank net (overview paper, 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.nets.train import Callback, Progress
from rankgrove.rankers.given import check_names, valid_datasets
from rankgrove.rankers.nested import loaded_members, member_scores, pack_members, unpack_members
from rankgrove.rankers.nets import LambdaRank
from rankgrove.validation import counted

if TYPE_CHECKING:
    from typing import Self


class StackedRanker(LambdaRank):
    """A LambdaRank net whose inputs are the scores of trained rankers.

    Section 7.1 of the overview paper: in place of the exact best combination of two rankers, a
    linear function (or a net) of any number of them, trained by lambdas on queries that the
    rankers were not trained on. The rankers themselves stay as they are.

    Parameters
    ----------
    rankers : the trained rankers, their model files, or any models with ``predict`` (those cannot
        be saved)
    measure : what to maximise
    hidden : units of every hidden layer; ``()``, the default: a linear function
    activation, optimiser, learning_rate, schedule, n_epochs : as :class:`LambdaRank`'s;
        ``learning_rate="auto"`` is 0.01
    truncation, beyond_cutoff, sigma, normalise, l2 : as :class:`LambdaRank`'s
    early_stopping, checkpoint, checkpoint_every, random_state, n_threads, progress :
        as :class:`LambdaRank`'s

    Attributes
    ----------
    rankers_ : the rankers; those given by files have been read
    network_ : the net; its inputs are the rankers' scores, standardised
    best_epoch_, history_, n_epochs_, interrupted_ : as :class:`LambdaRank`'s
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

    def __init__(
        self,
        rankers: Sequence[Any] = (),
        measure: str | Measure = "ndcg@10",
        hidden: int | Sequence[int] = (),
        activation: str = "tanh",
        optimiser: str = "adam",
        learning_rate: float | str = "auto",
        schedule: str = "linear",
        n_epochs: int = 100,
        truncation: int | str | None = "auto",
        beyond_cutoff: bool = True,
        sigma: float = 1.0,
        normalise: bool = False,
        l2: float = 0.0,
        early_stopping: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            measure=measure,
            hidden=hidden,
            activation=activation,
            optimiser=optimiser,
            learning_rate=learning_rate,
            schedule=schedule,
            n_epochs=n_epochs,
            truncation=truncation,
            beyond_cutoff=beyond_cutoff,
            sigma=sigma,
            normalise=normalise,
            l2=l2,
            early_stopping=early_stopping,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
        self.rankers = rankers

    def __sklearn_clone__(self) -> StackedRanker:
        # The rankers are what this one is made of, and trained: they are not cloned.
        return type(self)(**self.get_params(deep=False))

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
        """Train the net on the rankers' scores; as :meth:`LambdaRank.fit`.

        Parameters
        ----------
        X : held-out queries, which no ranker was trained on: their scores for training queries
            are better than they will ever be again
        """
        owner = f"{type(self).__name__}.fit"
        rankers = loaded_members(self.rankers, 1, type(self).__name__)
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        data = self._training_data(X, y, qid, group, owner, **weights)
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        for name, one in watched.items():
            if one.n_features != data.n_features:
                raise DataError(
                    f"{owner}: the {name} data has {counted(one.n_features, 'feature')}, the "
                    f"training data {data.n_features}."
                )
            if one.has_feature_names and data.has_feature_names:
                check_names(data.feature_names, one.feature_names, owner)
        super().fit(
            self._stacked(rankers, data),
            valid={name: self._stacked(rankers, one) for name, one in watched.items()} or None,
            valid_measures=valid_measures,
            callbacks=callbacks,
            start=start,
        )
        # what rankers are given, where _keep saw what they made of it
        self.rankers_ = rankers
        self._keep_features(data)
        return self

    def stacked(self, data: QueryDataset) -> QueryDataset:
        """Return the data with the rankers' scores in the place of its features."""
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

    def predict(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score a row, in the caller's order: the higher, the better."""
        self._check_is_fitted()
        threads = self.n_threads if n_threads is None else n_threads
        return self.network_.scores(self._columns(self.rankers_, X, threads), None, threads)

    def _columns(self, rankers: Sequence[Any], X: Any, n_threads: int | None) -> np.ndarray:
        """Return the rankers' scores, one column each, in the caller's order of rows."""
        columns = [member_scores(one, X, n_threads) for one in rankers]
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
        """What every ranker's score counts; only a linear function has such weights."""
        self._check_is_fitted()
        if self.network_.hidden:
            raise AttributeError("A net with hidden units has no single weight a ranker.")
        return np.asarray(self.network_.output * self.network_.scale)

    def summary(self) -> str:
        """Return a text about the model: its net, its rankers, and their weights."""
        lines = [super().summary()]
        weights = None if self.network_.hidden else self.weights_.tolist()
        for i, one in enumerate(self.rankers_):
            text = f"ranker {i + 1}: {type(one).__name__}"
            own = getattr(one, "measure", None)
            text += "" if own is None else f" for {own}"
            lines.append(text if weights is None else f"{text}, weight {weights[i]:.4g}")
        return "\n".join(lines)

    def _keep(self, data: QueryDataset, end: Progress) -> None:
        if hasattr(self, "feature_names_"):
            del self.feature_names_
        super()._keep(data, end)

    def _auto_rate(self) -> float:
        return 0.01

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = super()._state()
        content["rankers"], inside = pack_members(self.rankers_, "a stack")
        return content, arrays | inside

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(content, arrays)
        self.rankers = self.rankers_ = unpack_members(content["rankers"], arrays)
        if self.network_.n_features != len(self.rankers):
            raise ModelFileError("The net of the stack does not fit its rankers.")
