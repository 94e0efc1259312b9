"""Not a bit changes: what every ranker learns, and models that earlier versions wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tools import bits
from tools.damaging_subjects import some_data

import rankgrove as rg

SAVED = Path(__file__).parent / "saved_models"


def test_digests_are_those_recorded():
    recorded = json.loads(bits.RECORD.read_text()).get(bits.platform())
    if recorded is None:
        pytest.skip(f"no digests are recorded for {bits.platform()}")
    # two threads train the same bits as one, which other tests check: the tool has both
    digests = bits.all_digests(cluster=False, threads=(2,))
    assert bits.differences(recorded, digests) == []
    assert len(recorded.keys() & digests.keys()) > 60


@pytest.mark.parametrize("path", sorted(SAVED.glob("*.rg")), ids=lambda path: path.stem)
def test_models_of_earlier_versions_score_the_same(path):
    expected = json.loads((SAVED / "scores.json").read_text())[path.stem]
    scores = rg.load(path).predict(some_data(5), n_threads=1)
    # the data and nets use elementary functions, whose last bit is the platform's
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)
