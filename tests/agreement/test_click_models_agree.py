"""Click models against PyClick's, where it is installed or in the folder $PYCLICK."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

if "PYCLICK" in os.environ:
    sys.path.insert(0, os.environ["PYCLICK"])
pytest.importorskip("pyclick")
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")

from benchmarks import click_models  # noqa: E402


@pytest.mark.parametrize("name", ["PBM", "UBM", "CM", "DCM", "SDBN"])
def test_attractiveness(name):
    log = click_models.simulated(300)
    model = click_models.theirs(name, click_models.pyclick_sessions(log), 5)
    np.testing.assert_allclose(
        click_models.ours(name, log, 5),
        click_models.their_attractiveness(model, log),
        rtol=1e-9,
    )
