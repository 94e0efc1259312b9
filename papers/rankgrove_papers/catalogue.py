"""All experiments by name and by paper."""

from __future__ import annotations

from rankgrove import ParameterError
from rankgrove.validation import nearest
from rankgrove_papers import classical, yue2007
from rankgrove_papers.burges2010 import nets, theory
from rankgrove_papers.chen2008 import generated_domains, letor, methods
from rankgrove_papers.ganjisaffar2011 import bags, nested, repeated, tuning_and_pruning
from rankgrove_papers.study import Experiment
from rankgrove_papers.wu2010 import adaptation, artificial, figure1, label_shares, web

EXPERIMENTS: tuple[Experiment, ...] = (
    # wu2010
    *artificial.EXPERIMENTS,
    *label_shares.EXPERIMENTS,
    *web.EXPERIMENTS,
    *adaptation.EXPERIMENTS,
    *figure1.EXPERIMENTS,
    # burges2010
    *nets.EXPERIMENTS,
    *theory.EXPERIMENTS,
    *yue2007.EXPERIMENTS,
    # chen2008
    *generated_domains.EXPERIMENTS,
    *methods.EXPERIMENTS,
    *letor.EXPERIMENTS,
    # ganjisaffar2011
    *bags.EXPERIMENTS,
    *nested.EXPERIMENTS,
    *repeated.EXPERIMENTS,
    *tuning_and_pruning.EXPERIMENTS,
    *classical.EXPERIMENTS,
)


def chosen(which: str) -> list[Experiment]:
    """Return the experiment of a name, or all of a paper; ``"all"`` returns all."""
    experiments = [
        experiment
        for experiment in EXPERIMENTS
        if which in (experiment.name, experiment.paper, "all")
    ]
    if not experiments:
        names = [experiment.name for experiment in EXPERIMENTS]
        names += sorted({experiment.paper for experiment in EXPERIMENTS})
        raise ParameterError(
            f"There is no experiment {which!r}{nearest(which, names)}. There are: "
            f"{', '.join(names)}, all."
        )
    return experiments
