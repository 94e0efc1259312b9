"""Parameters that rankers of all kinds share, each declared once."""

from __future__ import annotations

from typing import Any

from rankgrove.model.linear import SCALINGS
from rankgrove.parallel import thread_count
from rankgrove.rankers.declaring import Parameter, choice, integer, optional, output_file, real


def _threads(name: str, owner: str, value: Any) -> None:
    thread_count(value)


MEASURE: Any = Parameter("ndcg@10", "measure that decides on validation data, or its name")
EARLY_STOPPING: Any = Parameter(
    None,
    "stop when this many rounds have not improved the validation measure",
    optional(integer(low=1)),
)
SCALING: Any = Parameter(
    "standard",
    'scaling of features: ``"standard"`` (mean 0 and standard deviation 1 over the training data; '
    'sparse features are only divided), ``"query"`` (to [0, 1] within every query), '
    '``"percentile"`` (the share of the query\'s documents with a lower value), or None',
    optional(choice(SCALINGS)),
)
SMOOTHING: Any = Parameter(
    0.0,
    "scale of the noise of stochastic lambdas: every round, lambdas are computed from the scores "
    "plus `smoothing` (over sigma) times a Gumbel variable, so that a document counts at all ranks "
    "that it might have; 1 helps where judgements are noisy, 0 is the papers' own",
    real(low=0.0),
)
DRAWS: Any = Parameter(
    2,
    "number of draws of that noise per query and round, whose lambdas are averaged",
    integer(low=1),
)
CHECKPOINT: Any = Parameter(
    None,
    "file that holds the state, from which an interrupted run is resumed",
    optional(output_file),
)
RANDOM_STATE: Any = Parameter(0, "seed of all random draws", integer(low=0))
N_THREADS: Any = Parameter(None, "number of threads; None: all cores", _threads)
N_SCORING_THREADS: Any = Parameter(
    None,
    "number of threads that score validation data; None: all cores. Training itself runs on one",
    _threads,
)
PROGRESS: Any = Parameter(False, "show a progress bar")
