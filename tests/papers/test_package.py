"""The package of the experiments: found in a checkout, by workers too; one line if it is absent."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tomllib

import rankgrove as rg
from rankgrove.cli import reproduce
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.study import Study
from tests.command import run_here
from tests.conftest import ROOT

# A checkout where only rankgrove is on the path.
NOT_INSTALLED = f"""\
import sys
sys.path = [{str(ROOT / "src")!r}, *(path for path in sys.path if not path.endswith("papers"))]
"""


def run_not_installed(script, *words, cwd):
    command = [sys.executable, "-c", NOT_INSTALLED + script, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_packages_have_one_version():
    project = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text())["project"]
    assert project["version"] == rg.__version__
    assert project["dependencies"] == [f"rankgrove=={rg.__version__}"]


def test_a_checkout_has_it(tmp_path):
    script = "from rankgrove.cli.start import run; run()"
    assert "wu2010-table1 " in run_not_installed(script, "reproduce", cwd=tmp_path)


def test_a_worker_in_a_checkout_has_it(tmp_path):
    study = pickle.dumps(Study("small", ResultStore(None, {})))
    task = pickle.dumps((getattr, "scale"))
    script = (
        "from rankgrove.cli.reproduce import run_on_worker\n"
        f"print(run_on_worker({study!r}, {task!r}, 1))"
    )
    assert run_not_installed(script, cwd=tmp_path) == "small\n"


def test_where_it_is_absent_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(reproduce, "PACKAGE", "rankgrove_papers_that_are_absent")
    for words in (["reproduce"], ["reproduce", "wu2010-table1"]):
        out, complaint = run_here(*words, status=2)
        assert out == ""
        assert complaint.count("\n") == 1
        assert "clone the project" in complaint
        assert "pip install ./papers" in complaint
    out, _ = run_here("reproduce", "--help")
    assert "rankgrove reproduce wu2010-table1" in out
