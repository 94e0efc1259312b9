"""RankNet and LambdaRank: nets that follow the lambdas of pairs, or of a measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rankgrove.measures.base import Measure
from rankgrove.nets.inputs import FORMS, GroupTask
from rankgrove.nets.train import Callback
from rankgrove.objectives.lambdas import NETS_BEYOND_CUTOFF, default_truncation
from rankgrove.objectives.pairs import MOST_PAIRS, pair_groups
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.net_ranker import NetRanker
from rankgrove.rankers.preferences import PairProbabilities, preference_data
from rankgrove.validation import check_choice, check_flag, check_integer

if TYPE_CHECKING:
    from typing import Self


class RankNet(PairProbabilities, NetRanker):
    """A net that learns which document of a pair is to be preferred (overview paper, section 2).

    The net's scores s make the probability P = 1 / (1 + exp(-sigma (s_i - s_j))) that document i
    is preferred to j, and its cost is the cross entropy of P and the target. All pairs of unequal
    labels of a query count 1. One query makes one update, with the accumulated lambdas of its
    documents (section 2.1). Training runs on one thread; it gives the same bits whatever the order
    of queries in the file.

    Parameters
    ----------
    hidden : units of every hidden layer; ``()``: none, a linear function
    activation : of hidden units: ``"tanh"`` or ``"relu"``
    optimiser : ``"adam"``, or ``"sgd"``: plain gradient steps, as in the papers
    learning_rate : size of a step; ``"auto"``: 0.001 for adam, 0.0003 for sgd
    schedule : ``"constant"``; ``"linear"`` and ``"cosine"`` bring the rate down to 0 over n_epochs
    n_epochs : passes over the queries at the most
    sigma : slope of the sigmoid
    l2 : weights (not biases) shrink by learning_rate * l2 at every update
    form : ``"factorised"``: one update a query; ``"pairs"``: one a pair, as RankNet was first,
        which takes far longer
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
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.RankNet(n_epochs=10).fit(train)
    >>> rg.evaluate(model, test, "pairs").mean["pairs"] > 0.6
    True
    """

    kind: ClassVar[str] = "ranknet"
    measure: ClassVar[str] = "pairs"  # type: ignore[misc]  # what it learns is no choice

    def __init__(
        self,
        hidden: int | Sequence[int] = (10,),
        activation: str = "tanh",
        optimiser: str = "adam",
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        n_epochs: int = 100,
        sigma: float = 1.0,
        l2: float = 0.0,
        form: str = "factorised",
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
        self.sigma = sigma
        self.l2 = l2
        self.form = form
        self.early_stopping = early_stopping
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        check_choice("form", type(self).__name__, self.form, FORMS)

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        probability: Any = 1.0,
        *,
        qid: Any = None,
        weight: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train on preferences: no labels, and judgements may contradict each other.

        Parameters
        ----------
        X : features, one row a document; or a QueryDataset, whose labels are not looked at
        pairs : array of two columns: rows of X, the preferred document's first
        probability : that the first is preferred, between 0 and 1; one number, or one a pair
        qid : the query of every row, where documents were judged by query: one update a query.
            None: documents that pairs connect make one update, at most 1,000 pairs at a time
        weight : what a pair counts; None: 1
        valid, valid_measures, callbacks : as in ``fit``

        Examples
        --------
        >>> import rankgrove as rg
        >>> model = rg.RankNet(hidden=(), n_epochs=300, learning_rate=0.05)
        >>> _ = model.fit_pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 1]], [0.9, 0.9])
        >>> model.predict_pairs([[0.0], [1.0]], [[1, 0]]).round(2)
        array([0.9])
        """
        owner = f"{type(self).__name__}.fit_pairs"
        look = self._prepared(valid_datasets(valid, owner), valid_measures, callbacks, owner)
        given = preference_data(X, pairs, probability, weight, qid, owner)
        inputs = self._inputs(given.data, owner)
        groups = pair_groups(
            given.preferences,
            given.data.grouped(given.data.query_of_row),
            given.data.query_keys,
            None if given.by_query else MOST_PAIRS,
        )
        documents = inputs._replace(rows=inputs.rows[groups.rows])
        task = GroupTask(documents, groups, self.sigma, self.form)
        self._train(given.data, inputs, task, look, pairs=given.digest())
        return self

    def _auto_rate(self) -> float:
        return 0.001 if self.optimiser == "adam" else 0.0003


class LambdaRank(NetRanker):
    """A net that follows the lambdas of a measure (overview paper, section 4).

    The lambda of a pair is RankNet's times |dZ|, the change of the measure when the two documents
    change places in the ranking (equation 6). One query makes one update, with the accumulated
    lambdas of its documents. Training runs on one thread; it gives the same bits whatever the
    order of queries in the file.

    Parameters
    ----------
    measure : what to maximise: a measure or its name
    hidden : units of every hidden layer; ``()``: none, a linear function
    activation : of hidden units: ``"tanh"`` or ``"relu"``
    optimiser : ``"adam"``, or ``"sgd"``: plain gradient steps, as in the papers
    learning_rate : size of a step; ``"auto"``: 0.001 for adam, 0.01 for sgd
    schedule : ``"constant"``; ``"linear"`` and ``"cosine"`` bring the rate down to 0 over n_epochs
    n_epochs : passes over the queries at the most
    truncation : pairs count whose better-ranked document is among so many top ranks; ``"auto"``:
        the measure's cutoff plus 5, all pairs where it has none; None: all pairs
    beyond_cutoff : whether documents that both stand below the measure's cutoff are ordered too, by
        rank weights that continue below it (see ``LambdaObjective``); False: a pair counts by
        exactly the change of the measure, the papers' own
    sigma : slope of the sigmoid
    normalise : even out pairs far apart, and queries (see ``LambdaObjective``); False is the
        papers' own
    l2 : weights (not biases) shrink by learning_rate * l2 at every update
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
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.LambdaRank("ndcg@10", n_epochs=10).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.4
    True
    """

    kind: ClassVar[str] = "lambdarank"

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        hidden: int | Sequence[int] = (10,),
        activation: str = "tanh",
        optimiser: str = "adam",
        learning_rate: float | str = "auto",
        schedule: str = "constant",
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
        self.measure = measure
        self.hidden = hidden
        self.activation = activation
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.n_epochs = n_epochs
        self.truncation = truncation
        self.beyond_cutoff = beyond_cutoff
        self.sigma = sigma
        self.normalise = normalise
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
        if self.truncation not in (None, "auto"):
            check_integer("truncation", owner, self.truncation, low=1)
        check_flag("beyond_cutoff", owner, self.beyond_cutoff)
        check_flag("normalise", owner, self.normalise)

    def _truncation(self, target: Measure) -> int | None:
        if self.truncation == "auto":
            return default_truncation(target, NETS_BEYOND_CUTOFF)
        return None if self.truncation is None else int(self.truncation)

    def _beyond_cutoff(self) -> bool:
        return self.beyond_cutoff

    def _normalise(self) -> bool:
        return self.normalise

    def _auto_rate(self) -> float:
        return 0.001 if self.optimiser == "adam" else 0.01
