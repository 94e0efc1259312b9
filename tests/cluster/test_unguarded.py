"""A script that starts workers without a guard, which import it and would start workers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rankgrove as rg

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")

SCRIPT = """\
import sys
from rankgrove.cli.main import run
sys.argv = "rankgrove train t.txt --cluster local --set n_trees=2 --quiet --model m.rg".split()
run()
"""


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path):
    rg.write_letor(rg.make_web(6, n_docs=5, n_features=3, seed=1), tmp_path / "t.txt")
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1  # and none of the workers
    assert "Traceback" not in done.stderr
    assert f"import {script}" in errors[0]
    assert 'if __name__ == "__main__":' in errors[0]
