"""The examples of the documentation run."""

from __future__ import annotations

import re

import rankgrove as rg
from tests.conftest import ROOT


def test_the_example_of_callbacks(capsys):
    text = (ROOT / "docs" / "lambdamart.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "log" in block]
    names = {"rg": rg, "train": rg.make_artificial(60, seed=1), "vali": rg.make_artificial(30)}
    exec(code, names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        f"Progress(round {n} of 40" for n in (10, 20, 30, 40)
    ]
    assert list(names["model"].history_["valid"]) == ["ndcg@10", "map"]
