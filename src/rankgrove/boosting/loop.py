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

from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.step import Step
from rankgrove.growth.grower import Grower
from rankgrove.growth.leaves import add_leaf_values
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
    objective: Objective,
    grower: Grower,
    scores: np.ndarray,
    *,
    rounds: int,
    step: Step,
    sampler: Sampler,
    watch: Watch,
    trees: Sequence[Tree] = (),
    steps: Sequence[float] = (),
    rounds_before: int = 0,
    callbacks: Sequence[Callback] = (),
    n_threads: int | None = None,
) -> Progress:
    """Add trees until there are `rounds` of them, patience ends, or a callback returns True.

    Parameters
    ----------
    objective, grower : what to follow, and what follows it
    scores : of shape (columns, rows), of the `trees` so far; brought up to date in place
    step : how far to go along a tree
    sampler : which queries and rows a round sees
    watch : looks at validation data and says when to stop
    trees, steps : the trees of the rounds already done, and their weights
    rounds_before : number of rounds a submodel had: random draws go on from there
    callbacks : called after every round

    Notes
    -----
    Ctrl-C ends the loop as patience would; the trees of whole rounds are kept.
    """
    n_columns = objective.n_columns
    done = len(trees) // n_columns
    progress = Progress(
        round=done, rounds=rounds, watch=watch, first=done, trees=list(trees), steps=list(steps)
    )
    gradient, hessian = np.zeros(scores.shape), np.zeros(scores.shape)
    one = 0 if n_columns == 1 else slice(None)
    grows_alike = not sampler.is_random and grower.rules.feature_fraction == 1.0
    try:
        for round in range(done, rounds):
            queries, rows = sampler.draw(rounds_before + round)
            objective.gradients(scores[one], gradient[one], hessian[one], queries, n_threads)
            grown: list[Tree] = []
            for c in range(n_columns):
                number = (rounds_before + round) * n_columns + c
                tree, leaf_of = grower.grow(gradient[c], hessian[c], number, rows)
                tree, weight = step(tree, leaf_of, scores[c], watch)
                add_leaf_values(scores[c], tree.value, leaf_of, n_threads=n_threads)
                grown.append(tree)
                progress.steps.append(weight)
            watch.look(grown)
            progress.trees += grown
            progress.round = round + 1
            stopped = [bool(callback(progress)) for callback in callbacks]
            stuck = grows_alike and all(tree.n_nodes == 0 for tree in grown)
            if any(stopped) or watch.out_of_patience or stuck:
                break
    except KeyboardInterrupt:
        progress.interrupted = True
        del progress.steps[len(progress.trees) :]
    return progress
