"""All experiments by name and by paper."""

from __future__ import annotations

from rankgrove.errors import ParameterError
from rankgrove.experiments import (
    burges2010,
    burges2010_theory,
    chen2008,
    chen2008_letor,
    chen2008_methods,
    classical,
    ganjisaffar2011,
    ganjisaffar2011_nested,
    ganjisaffar2011_repeated,
    ganjisaffar2011_tuning,
    wu2010,
    wu2010_adaptation,
    wu2010_figure1,
    wu2010_labels,
    wu2010_web,
    yue2007,
)
from rankgrove.experiments.study import Experiment
from rankgrove.validation import nearest

EXPERIMENTS: tuple[Experiment, ...] = (
    *wu2010.EXPERIMENTS,
    *wu2010_labels.EXPERIMENTS,
    *wu2010_web.EXPERIMENTS,
    *wu2010_adaptation.EXPERIMENTS,
    *wu2010_figure1.EXPERIMENTS,
    *burges2010.EXPERIMENTS,
    *burges2010_theory.EXPERIMENTS,
    *yue2007.EXPERIMENTS,
    *chen2008.EXPERIMENTS,
    *chen2008_methods.EXPERIMENTS,
    *chen2008_letor.EXPERIMENTS,
    *ganjisaffar2011.EXPERIMENTS,
    *ganjisaffar2011_nested.EXPERIMENTS,
    *ganjisaffar2011_repeated.EXPERIMENTS,
    *ganjisaffar2011_tuning.EXPERIMENTS,
    *classical.EXPERIMENTS,
)


def chosen(which: str) -> list[Experiment]:
    """Return the experiments of a name, or of a paper; ``"all"`` gives all."""
    found = [one for one in EXPERIMENTS if which in (one.name, one.paper, "all")]
    if not found:
        names = [one.name for one in EXPERIMENTS]
        names += sorted({one.paper for one in EXPERIMENTS})
        raise ParameterError(
            f"There is no experiment {which!r}{nearest(which, names)}. There are: "
            f"{', '.join(names)}, all."
        )
    return found
