"""RankNet and LambdaRank: nets that follow the lambdas of pairs, or of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.nets.tasks import FORMS, GroupTask, Inputs, Task
from rankgrove.objectives.lambdas import NETS_BEYOND_CUTOFF, default_truncation
from rankgrove.objectives.preference_pairs import MOST_PAIRS, pair_groups
from rankgrove.rankers import parameters as shared
from rankgrove.rankers import positions
from rankgrove.rankers.declaring import choice, declares_parameters, parameter
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.nets import parameters as nets
from rankgrove.rankers.nets.net import NetRanker, lambda_task
from rankgrove.rankers.preferences import FitsPairs

if TYPE_CHECKING:
    pass


@declares_parameters
class RankNet(FitsPairs, NetRanker):
    """A net that learns which document of a pair is preferred (overview paper, section 2).

    The net's scores s give the probability P = 1 / (1 + exp(-sigma (s_i - s_j))) that document i is
    preferred to j, and the cost is the cross entropy of P and the target. All pairs of unequal
    labels of a query have weight 1. There is one update per query, with the accumulated lambdas of
    its documents (section 2.1). Training runs on one thread; the model is the same to the bit for
    any order of queries in the file.

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
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.RankNet(n_epochs=10).fit(train)
    >>> rg.evaluate(model, test, "pairs").mean["pairs"] > 0.6
    True
    """

    kind: ClassVar[str] = "ranknet"
    measure: ClassVar[str] = "pairs"  # type: ignore[misc]  # not a parameter
    auto_rates: ClassVar[Mapping[str, float]] = {"adam": 0.001, "sgd": 0.0003}

    hidden: int | Sequence[int] = nets.HIDDEN
    activation: str = nets.ACTIVATION
    optimiser: str = nets.OPTIMISER
    learning_rate: float | str = nets.LEARNING_RATE(
        "auto", 'size of a step; ``"auto"``: 0.001 for adam, 0.0003 for sgd'
    )
    schedule: str = nets.SCHEDULE
    n_epochs: int = nets.N_EPOCHS
    sigma: float = nets.SIGMA
    l2: float = nets.L2
    form: str = parameter(
        "factorised",
        '``"factorised"``: one update per query; ``"pairs"``: one per pair, as in the first '
        "RankNet, which takes far longer",
        choice(FORMS),
    )
    early_stopping: int | None = nets.EARLY_STOPPING
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = nets.CHECKPOINT_EVERY
    random_state: int = nets.RANDOM_STATE
    n_threads: int | None = shared.N_SCORING_THREADS
    progress: bool = shared.PROGRESS
    position_bias: str | None = positions.OF_NETS
    propensities: Any = positions.PROPENSITIES
    n_positions: int | None = positions.N_POSITIONS
    position_clip: float = positions.POSITION_CLIP
    position_norm: float = positions.POSITION_NORM

    def _check_together(self) -> None:
        super()._check_together()
        positions.check_unused(self)

    def _task(self, training: Training, inputs: Inputs) -> Task:
        if training.preferences is None:
            return lambda_task(self, training, inputs, sigma=self.sigma, form=self.form)
        if self.position_bias is not None:
            raise ParameterError(
                f"{training.owner} learns from pairs, which have no positions: leave "
                "position_bias out."
            )
        data = training.train
        groups = pair_groups(
            training.preferences,
            data.grouped(data.query_of_row),
            data.query_keys,
            None if training.by_query else MOST_PAIRS,
        )
        documents = inputs._replace(rows=inputs.rows[groups.rows])
        return GroupTask(documents, groups, self.sigma, self.form)


@declares_parameters
class LambdaRank(NetRanker):
    """A net that follows the lambdas of a measure (overview paper, section 4).

    The lambda of a pair is RankNet's times |dZ|, the change of the measure when the two documents
    change places in the ranking (equation 6). There is one update per query, with the accumulated
    lambdas of its documents. Training runs on one thread; the model is the same to the bit for any
    order of queries in the file.

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
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.LambdaRank("ndcg@10", n_epochs=10).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.4
    True
    """

    kind: ClassVar[str] = "lambdarank"

    measure: str | Measure = nets.MEASURE
    hidden: int | Sequence[int] = nets.HIDDEN
    activation: str = nets.ACTIVATION
    optimiser: str = nets.OPTIMISER
    learning_rate: float | str = nets.LEARNING_RATE
    schedule: str = nets.SCHEDULE
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
    smoothing: float = shared.SMOOTHING
    draws: int = shared.DRAWS
    position_bias: str | None = positions.OF_NETS
    propensities: Any = positions.PROPENSITIES
    n_positions: int | None = positions.N_POSITIONS
    position_clip: float = positions.POSITION_CLIP
    position_norm: float = positions.POSITION_NORM

    def _check_together(self) -> None:
        super()._check_together()
        positions.check_unused(self)

    def _task(self, training: Training, inputs: Inputs) -> Task:
        return lambda_rank_task(self, training, inputs, self.smoothing, self.draws)


def lambda_rank_task(
    ranker: Any, training: Training, inputs: Inputs, smoothing: float = 0.0, draws: int = 1
) -> Task:
    """Return the lambdas of a ranker with LambdaRank's parameters."""
    truncation = ranker.truncation
    if truncation == "auto":
        truncation = default_truncation(target_measure(ranker.measure), NETS_BEYOND_CUTOFF)
    return lambda_task(
        ranker,
        training,
        inputs,
        sigma=ranker.sigma,
        truncation=None if truncation is None else int(truncation),
        beyond_cutoff=ranker.beyond_cutoff,
        normalise=ranker.normalise,
        smoothing=smoothing,
        draws=draws,
    )
