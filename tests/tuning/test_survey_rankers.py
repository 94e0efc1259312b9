"""The rankers of a survey: valid at both scales, and what their names say."""

from __future__ import annotations

import pytest

from rankgrove.tuning.survey_rankers import RANKERS, size_at


@pytest.mark.parametrize("scale", ["small", "full"])
def test_every_ranker_has_valid_parameters(scale):
    for ranker in RANKERS.values():
        ranker(size_at(scale)).check_parameters()


def test_rankers_are_what_their_names_say():
    rankers = {name: ranker(size_at("full")) for name, ranker in RANKERS.items()}
    assert rankers["RankBoost"].n_thresholds is None
    assert rankers["RankBoost, 10 thresholds"].n_thresholds == 10
    for measure in ("map", "ndcg"):
        default = rankers[f"AdaRank-{measure.upper()}"]
        paper = rankers[f"AdaRank-{measure.upper()}, paper's loop"]
        assert default.get_params() == type(default)(measure).get_params()
        assert (paper.update, paper.tolerance, paper.most_in_a_row) == ("latest", 0.002, 5)
    assert rankers["CRR"].l2 == type(rankers["CRR"])().l2
    assert rankers["CRR, L2 .0001"].l2 == 1e-4
