"""Files that cannot be read or written: one clear line, whatever the system says."""

from __future__ import annotations

import os
import sys

import pytest

import rankgrove as rg
from rankgrove.files import atomic_output
from tests.command import run_here


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data, a model, and a link that leads back to itself for every kind of file."""
    monkeypatch.chdir(tmp_path)
    data = rg.make_web(10, n_docs=8, n_features=4, seed=1)
    rg.write_letor(data, "data.txt")
    rg.LambdaMART(n_trees=1, min_leaf=2).fit(data).save("model.rg")
    for name in ("loop.txt", "loop.csv", "loop.rg"):
        os.symlink(f"other-{name}", name)
        os.symlink(name, f"other-{name}")
    return tmp_path


LOOPS = {
    "train": ["train", "loop.txt", "--model", "m.rg"],
    "train table": ["train", "loop.csv", "--model", "m.rg"],
    "train valid": ["train", "data.txt", "--valid", "loop.txt", "--model", "m.rg"],
    "train output": ["train", "data.txt", "--model", "loop.rg", "--set", "n_trees=1"],
    "evaluate data": ["evaluate", "loop.txt", "--model", "model.rg"],
    "evaluate model": ["evaluate", "data.txt", "--model", "loop.rg"],
    "rank data": ["rank", "loop.txt", "--model", "model.rg"],
    "rank model": ["rank", "data.txt", "--model", "loop.rg"],
    "rank output": ["rank", "data.txt", "--model", "model.rg", "--out", "loop.txt"],
    "convert": ["convert", "loop.rg", "x.txt"],
    "generate": ["generate", "artificial", "--queries", "3", "--out", "loop.txt"],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_link_that_leads_back_to_itself(folder, name):
    _, complaints = run_here(*LOOPS[name], cwd=folder, status=2)
    assert "leads back to itself" in complaints.replace("\n", " ")
    assert os.path.islink("loop.txt")
    assert os.path.islink("loop.rg")


def test_such_a_link_in_python(folder):
    with pytest.raises(rg.ParseError, match=r"loop\.txt.*leads back to itself"):
        rg.read_letor("loop.txt")
    with pytest.raises(rg.ParseError, match=r"loop\.txt.*leads back to itself"):
        rg.read_letor("loop.txt", cache=True)
    with pytest.raises(rg.ParseError, match=r"loop\.txt.*leads back to itself"):
        rg.read_run("loop.txt")
    with pytest.raises(rg.ParseError, match=r"loop\.csv.*leads back to itself"):
        rg.read_table("loop.csv")
    with pytest.raises(rg.ModelFileError, match=r"loop\.rg.*leads back to itself"):
        rg.load("loop.rg")
    with (
        pytest.raises(rg.DataError, match=r"loop\.txt cannot be written.*leads back to itself"),
        atomic_output("loop.txt"),
    ):
        pass
    assert os.path.islink("loop.txt")


def test_an_install_that_may_not_be_read(monkeypatch, capsys):
    from rankgrove.cli import start

    class Closed:
        def find_spec(self, name, *_):
            if name == "rankgrove.cli.main":
                raise PermissionError(13, "Permission denied", "/opt/rankgrove/cli/main.py")

    monkeypatch.delitem(sys.modules, "rankgrove.cli.main", raising=False)
    monkeypatch.delattr("rankgrove.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Closed(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        start.run()
    assert end.value.code == 2
    assert "/opt/rankgrove/cli/main.py: permission denied" in capsys.readouterr().err
