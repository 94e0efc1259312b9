"""The boosting loop: it knows nothing of what it boosts.

Every round: gradients of the objective at the current scores, a tree (one a class, where there are
classes) that follows them, a step, and a look at the validation data. All random draws of a round
hang on the seed and the round's number, so a run that goes on from a checkpoint, or from the trees
of a submodel, is the run that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rankgrove.boosting.step import Step
from rankgrove.model.tree import Tree
from rankgrove.training import progress as training
from rankgrove.training.watch import Watch


class Objective(Protocol):
    """What the loop asks of an objective.

    ``n_columns`` is the number of scores a row has: 1, or one a class. The arrays of a single
    column have the shape (rows,), those of several (columns, rows).
    """

    n_columns: int

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        """Fill the direction in which every score should go, and the curvature there."""


class TrainingRows(Protocol):
    """What the loop asks of the training rows, wherever they are.

    ``n_columns`` is the objective's; ``grows_alike`` says that rounds differ in scores alone, so
    that after a tree without a split there is no other.
    """

    n_columns: int
    grows_alike: bool

    def follow(self, round: int) -> None:
        """Draw what a round sees, and compute its gradients."""

    def advance(self, column: int, number: int, step: Step, watch: Watch) -> tuple[Tree, float]:
        """Grow a tree, weigh it and add it to the scores; return it and its weight."""


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """Where boosting stands after a round; handed to every callback.

    Attributes
    ----------
    trees : the trees so far, one a round (one a class and round, where there are classes)
    steps : the weight that every tree was given, learning rate included
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
    rows : what is trained on, with the scores of the `trees` so far
    step : how far to go along a tree
    watch : looks at validation data and says when to stop
    trees, steps : the trees of the rounds already done, and their weights
    rounds_before : number of rounds a submodel had: random draws go on from there
    callbacks : called after every round

    Notes
    -----
    Ctrl-C ends the loop as patience would; the trees of whole rounds are kept.
    """
    n_columns = rows.n_columns
    done = len(trees) // n_columns
    progress = Progress(
        round=done, rounds=rounds, watch=watch, first=done, trees=list(trees), steps=list(steps)
    )
    try:
        for round in range(done, rounds):
            rows.follow(rounds_before + round)
            grown: list[Tree] = []
            for c in range(n_columns):
                number = (rounds_before + round) * n_columns + c
                tree, weight = rows.advance(c, number, step, watch)
                grown.append(tree)
                progress.steps.append(weight)
            watch.look(grown)
            progress.trees += grown
            progress.round = round + 1
            stopped = [bool(callback(progress)) for callback in callbacks]
            stuck = rows.grows_alike and all(tree.n_nodes == 0 for tree in grown)
            if any(stopped) or watch.out_of_patience or stuck:
                break
    except KeyboardInterrupt:
        progress.interrupted = True
        del progress.steps[len(progress.trees) :]
    return progress
