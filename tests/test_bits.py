"""Not a bit changes: what every ranker learns, and models that earlier versions wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tools import bits, saved_models

import rankgrove as rg
from rankgrove.rankers import load  # noqa: F401  (registers all kinds)
from rankgrove.rankers.base import KINDS

SAVED = sorted(saved_models.FOLDER.glob("*.rg"))


def test_digests_are_those_recorded():
    recorded = json.loads(bits.RECORD.read_text()).get(bits.platform())
    if recorded is None:
        pytest.skip(f"no digests are recorded for {bits.platform()}")
    # two threads train the same bits as one, which other tests check: the tool has both
    digests = bits.all_digests(cluster=False, threads=(2,))
    assert bits.differences(recorded, digests) == []
    assert len(recorded.keys() & digests.keys()) > 60


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_models_of_earlier_versions_score_the_same(path):
    expected = json.loads(saved_models.SCORES.read_text())[path.stem]
    scores = rg.load(path).predict(saved_models.scored_data(path.stem), n_threads=1)
    # the data and nets use elementary functions, whose last bit is the platform's
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


def test_every_kind_has_a_file_of_the_version_in_which_it_began():
    headers = {path.stem: saved_models.header_of(path) for path in SAVED}
    ours = {  # other tests define rankers of their own
        kind for kind, ranker in KINDS.items() if ranker.__module__.startswith("rankgrove.")
    }
    assert {header["kind"] for header in headers.values()} == ours, (
        "a new kind: python -m tools.saved_models add"
    )
    assert headers.keys() == json.loads(saved_models.SCORES.read_text()).keys()
    first = {name for name, header in headers.items() if header["rankgrove"] == "0.1.0"}
    assert len(first) >= 45, "files of 0.1 are never written again"
