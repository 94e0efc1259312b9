"""The boosting loop: it is independent of the objective and of the trees.

Every round has four steps: `gradients` of the objective at the current scores; `grow` a tree that
follows them (one per class, where there are classes); `step`, which gives the tree its weight;
`add` it to the scores. Then the validation data is measured. All random draws of a round depend on
the seed and the round's number, so a run that is resumed from a checkpoint, or starts from the
trees of a submodel, is the same as one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rankgrove.boosting.step import Grown, Step
from rankgrove.model.tree import Tree
from rankgrove.training import progress as training
from rankgrove.training.watch import Watch


class Objective(Protocol):
    """The interface of an objective.

    Attributes
    ----------
    n_columns : number of scores per row: 1, or one per class
    varies_by_round : whether gradients differ between rounds at the same scores. If they do, a
        round whose trees have no split does not end training

    Notes
    -----
    An objective may have a ``bias``, a :class:`~rankgrove.objectives.position_bias.PositionBias`,
    and ``sums``, those of its newest gradients. They change its state: after every round the
    training rows call ``bias.advance(objective.sums)``.
    """

    n_columns: int
    varies_by_round: bool

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill the direction in which every score should go, and the curvature there.

        Parameters
        ----------
        scores : the current scores, rows in query order; of shape (rows,), or (columns, rows) if
            there are several columns
        gradient : filled with the negative gradient of the loss; same shape as `scores`
        hessian : filled with the second derivative, which must not be negative; 1 in all rows where
            the loss has none. Same shape as `scores`
        queries : the numbers of the queries to compute, ascending; None: all. The rows of other
            queries are not read afterwards, so they may be left as they are
        round : number of the round; an objective that draws random numbers derives them from its
            seed and this number
        """


class TrainingRows(Protocol):
    """The interface of the training rows, in this process or in others.

    ``n_columns`` is the objective's; ``grows_alike`` says that rounds only differ in scores, so
    after a tree without a split all later trees have none either.
    """

    n_columns: int
    grows_alike: bool

    def gradients(self, round: int) -> None:
        """Draw a round's queries and rows, and compute its gradients."""

    def grow(self, column: int, number: int) -> Grown:
        """Return a tree that follows the gradients of a column; `number` counts all trees."""

    def add(self, column: int, grown: Grown) -> None:
        """Add a weighted tree to the scores of a column."""


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """The state of boosting after a round, passed to every callback.

    Attributes
    ----------
    trees : the trees so far, one per round (one per class and round, where there are classes)
    steps : the weight of every tree, learning rate included
    """

    trees: list[Tree]
    steps: list[float] = field(default_factory=list)


Callback = Callable[[Progress], bool | None]


def boost(
    rows: TrainingRows,
    *,
    rounds: int,
    step: Step,
    watch: Watch,
    trees: Sequence[Tree] = (),
    steps: Sequence[float] = (),
    rounds_before: int = 0,
    callbacks: Sequence[Callback] = (),
) -> Progress:
    """Add trees until there are `rounds` of them, patience ends, or a callback returns True.

    Parameters
    ----------
    rows : the training rows, with the scores of the `trees` so far
    step : gives a tree its weight
    watch : measures validation data and decides when to stop
    trees, steps : the trees of the rounds already done, and their weights
    rounds_before : number of rounds of a submodel: random draws continue from there
    callbacks : called after every round

    Notes
    -----
    Ctrl-C ends the loop as early stopping does; the trees of complete rounds are kept.
    """
    n_columns = rows.n_columns
    done = len(trees) // n_columns
    progress = Progress(
        round=done, rounds=rounds, watch=watch, first=done, trees=list(trees), steps=list(steps)
    )
    try:
        for round in range(done, rounds):
            rows.gradients(rounds_before + round)
            trees_of_round: list[Tree] = []
            for column in range(n_columns):
                number = (rounds_before + round) * n_columns + column
                grown, weight = step(rows.grow(column, number))
                rows.add(column, grown)
                trees_of_round.append(grown.tree)
                progress.steps.append(weight)
            watch.look(trees_of_round)
            progress.trees += trees_of_round
            progress.round = round + 1
            stopped = [bool(callback(progress)) for callback in callbacks]
            stuck = rows.grows_alike and all(tree.n_nodes == 0 for tree in trees_of_round)
            if any(stopped) or watch.out_of_patience or stuck:
                break
    except KeyboardInterrupt:
        progress.interrupted = True
        del progress.steps[len(progress.trees) :]
    return progress
