"""Parameters that several nets share, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove.model.mlp import ACTIVATIONS
from rankgrove.nets.training_loop import OPTIMISERS, SCHEDULES
from rankgrove.rankers.declaring import (
    Parameter,
    choice,
    flag,
    integer,
    optional,
    real,
    word_or,
)
from rankgrove.validation import check_integer, refuse


def layer_sizes(name: str, owner: str, value: object) -> tuple[int, ...]:
    """Return the sizes of layers, given as one number or several."""
    if isinstance(value, str) or (isinstance(value, np.ndarray) and value.ndim != 1):
        refuse(name, owner, "a whole number, or a list with one per layer", value)
    listed = value if isinstance(value, Sequence | np.ndarray) else [value]
    return tuple(check_integer(name, owner, n, low=1) for n in listed)


MEASURE: Any = Parameter("ndcg@10", "measure to maximise, or its name")
HIDDEN: Any = Parameter(
    (10,), "units of every hidden layer; ``()``: none, a linear function", layer_sizes
)
ACTIVATION: Any = Parameter(
    "tanh", 'function of hidden units: ``"tanh"`` or ``"relu"``', choice(ACTIVATIONS)
)
OPTIMISER: Any = Parameter(
    "adam", '``"adam"``, or ``"sgd"``: plain gradient steps, as in the papers', choice(OPTIMISERS)
)
LEARNING_RATE: Any = Parameter(
    "auto",
    'size of a step; ``"auto"``: 0.001 for adam, 0.01 for sgd',
    word_or(["auto"], real(above=0.0)),
)
SCHEDULE: Any = Parameter(
    "constant",
    '``"constant"``; ``"linear"`` and ``"cosine"`` lower the rate to 0 over n_epochs',
    choice(SCHEDULES),
)
FALLING_SCHEDULE: Any = Parameter(
    "linear",
    '``"linear"`` and ``"cosine"`` lower the rate to 0 over n_epochs, which removes the noise of '
    'single queries from the last epochs; ``"constant"`` does not',
    choice(SCHEDULES),
)
N_EPOCHS: Any = Parameter(100, "maximum number of passes over the queries", integer(low=1))
TRUNCATION: Any = Parameter(
    "auto",
    "only pairs count whose better-ranked document is among this many top ranks; "
    '``"auto"``: the measure\'s cutoff plus 5, or all pairs if it has none; None: all pairs',
    optional(word_or(["auto"], integer(low=1))),
)
BEYOND_CUTOFF: Any = Parameter(
    True,
    "whether documents that are both below the measure's cutoff are ordered too, by rank weights "
    "that continue below it (see ``LambdaObjective``); False: the weight of a pair is exactly the "
    "change of the measure, as in the papers",
    flag,
)
SIGMA: Any = Parameter(1.0, "slope of the sigmoid", real(above=0.0))
NORMALISE: Any = Parameter(
    False,
    "normalise pairs far apart, and queries (see ``LambdaObjective``); False: as in the papers",
    flag,
)
L2: Any = Parameter(
    0.0,
    "weight decay: weights (not biases) shrink by learning_rate * l2 at every update",
    real(low=0.0),
)
EARLY_STOPPING: Any = Parameter(
    None,
    "stop when this many epochs have not improved the validation measure",
    optional(integer(low=1)),
)
CHECKPOINT_EVERY: Any = Parameter(5, "epochs between two checkpoints", integer(low=1))
RANDOM_STATE: Any = Parameter(
    0, "seed of the first weights and of the order of queries", integer(low=0)
)
