"""The boosting loop: it knows nothing of what it boosts.

Every round: gradients of the objective at the current scores, a tree that follows them, a step,
and a look at the validation data. All random draws of a round hang on the seed and the round's
number, so a run that goes on from a checkpoint is the run that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.watch import Watch
from rankgrove.growth.grower import Grower
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.model.tree import Tree


class Objective(Protocol):
    """What the loop asks of an objective."""

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        """Fill the direction in which every score should go, and the curvature there."""


@dataclass(repr=False)
class Progress:
    """Where training stands after a round; handed to every callback.

    Attributes
    ----------
    round : number of rounds done, those of a checkpoint included
    first : number of rounds that were already done when training began
    rounds : number of rounds wanted
    trees : the trees so far
    watch : the validation data's history, best round and patience
    seconds : time since training began
    interrupted : whether Ctrl-C ended it
    """

    round: int
    rounds: int
    trees: list[Tree]
    watch: Watch
    first: int = 0
    started: float = field(default_factory=time.monotonic)
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since training began."""
        return time.monotonic() - self.started

    def __repr__(self) -> str:
        """Return the round, and the newest value of what decides."""
        text = f"round {self.round} of {self.rounds}"
        values = self.watch.deciding
        if values:
            name, measures = next(iter(self.watch.history.items()))
            text += f", {name} {next(iter(measures))} {values[-1]:.4f}"
        return f"Progress({text})"


Callback = Callable[[Progress], bool | None]


def boost(
    objective: Objective,
    grower: Grower,
    scores: np.ndarray,
    *,
    rounds: int,
    learning_rate: float,
    sampler: Sampler,
    watch: Watch,
    trees: Sequence[Tree] = (),
    callbacks: Sequence[Callback] = (),
    n_threads: int | None = None,
) -> Progress:
    """Add trees until there are `rounds` of them, patience ends, or a callback returns True.

    Parameters
    ----------
    objective, grower : what to follow, and what follows it
    scores : one a row, of the `trees` so far; they are brought up to date in place
    sampler : which queries and rows a round sees
    watch : looks at validation data and says when to stop
    trees : the trees of the rounds already done
    callbacks : called after every round

    Notes
    -----
    Ctrl-C ends the loop as patience would; the trees of whole rounds are kept.
    """
    progress = Progress(len(trees), rounds, list(trees), watch, first=len(trees))
    gradient, hessian = np.zeros(scores.size), np.zeros(scores.size)
    try:
        for round in range(len(trees), rounds):
            queries, rows = sampler.draw(round)
            objective.gradients(scores, gradient, hessian, queries, n_threads)
            tree, leaf_of = grower.grow(gradient, hessian, round, rows)
            tree = replace(tree, value=learning_rate * tree.value)
            add_leaf_values(scores, tree.value, leaf_of, n_threads=n_threads)
            watch.look(tree)
            progress.trees.append(tree)
            progress.round = round + 1
            stopped = [bool(callback(progress)) for callback in callbacks]
            all_seen = not sampler.is_random and grower.rules.feature_fraction == 1.0
            if any(stopped) or watch.out_of_patience or (all_seen and tree.n_nodes == 0):
                break
    except KeyboardInterrupt:
        progress.interrupted = True
    return progress
