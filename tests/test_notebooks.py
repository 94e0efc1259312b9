"""The notebooks: every cell runs, and pages and .ipynb files have the outputs."""

from __future__ import annotations

import ast
import json

import pytest
from tools import notebooks

from tests.documentation import smaller

pytest.importorskip("matplotlib")
PAGES = sorted(notebooks.FOLDER.glob("*.md"))
TEXT = """# Title

Begin [there](../data.md).

```python
x = 2
print("printed")
x + 1
```

```python
# Figure: A line from the lower left
# to the upper right.
from matplotlib.figure import Figure

picture = Figure(figsize=(8, 2))
picture.subplots().plot([1, x])
picture
```

```python
from pathlib import Path

Path("made.html").write_text("<p>made</p>");
```
"""


def after_clicks(names):
    assert "ips" in names["check"].safe


def after_engine(names):
    assert [cause.name for cause in names["found"].causes] == ["missing-right"]
    assert abs(names["answered"] - names["expected"] - names["constant"]).max() < 1e-5
    shifts = names["corrected"] - names["expected"]
    assert shifts.max() - shifts.min() < 1e-5


def after_first_model(names):
    assert (names["loaded"].predict(names["test"]) == names["model"].predict(names["test"])).all()


AFTER = {"clicks": after_clicks, "engine": after_engine, "first-model": after_first_model}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_run(page):
    names = {}
    cells = notebooks.run(page.read_text(), page.stem, names, change=smaller)
    assert any(output.kind == "figure" for cell in cells for output in cell.outputs)
    AFTER.get(page.stem, lambda _: None)(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_notebooks_are_short_and_say_what_they_are_for(page):
    text = page.read_text()
    cells = notebooks.cells_of(text)
    code = [cell.source for cell in cells if cell.is_code]
    assert 8 <= len(code) <= 20
    assert "\nAfter this notebook you can " in text[:300]
    assert text.count("```") == 2 * len(code)
    assert any("# Figure: " in source for source in code)
    for source in code:
        imported = [
            node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        inner = {name for name in imported if name.startswith("rankgrove.")}
        assert inner <= {"rankgrove.parity.engines"}  # documented in docs/howto/parity.md


def test_outputs_are_those_of_jupyter():
    names = {}
    _, first, second, third = notebooks.run(TEXT, "toy", names)
    assert names["x"] == 2
    assert [(one.kind, one.text) for one in first.outputs] == [
        ("stream", "printed\n"),
        ("value", "3"),
    ]
    (drawn,) = second.outputs
    assert (drawn.kind, drawn.data[:4], drawn.width) == ("figure", b"\x89PNG", 8.0)
    assert second.figure == "A line from the lower left to the upper right."
    assert third.outputs[-1].data == b"<p>made</p>"


def test_a_page_of_the_site():
    page, pictures, others = notebooks.site_page(notebooks.run(TEXT, "toy"), "toy")
    assert page.startswith("# Title\n")
    assert list(pictures) == ["toy-1.png"]
    assert others["toy-made.html"] == b"<p>made</p>"
    assert ":alt: A line from the lower left to the upper right." in page
    assert "# Figure" not in page
    assert 'src="toy-made.html"' in page
    assert "printed" in page
    assert json.loads(others["toy.ipynb"])["nbformat"] == 4


def test_a_file_of_jupyter():
    whole = json.loads(notebooks.ipynb(notebooks.run(TEXT, "toy")))
    kinds = [cell["cell_type"] for cell in whole["cells"]]
    assert kinds == ["markdown", "code", "code", "code"]
    assert "Begin *there*." in "".join(whole["cells"][0]["source"])
    assert whole["cells"][1]["outputs"][0]["text"] == ["printed\n"]
    assert set(whole["cells"][2]["outputs"][0]["data"]) == {"image/png", "text/plain"}
    checked = pytest.importorskip("nbformat", reason="checks the form of the file")
    checked.validate(checked.from_dict(whole))


def test_a_failing_cell_is_an_error_that_names_it():
    text = "# Title\n\n```python\nx = 1\n```\n\n```python\nx / 0\n```\n"
    with pytest.raises(ZeroDivisionError) as caught:
        notebooks.run(text, "toy")
    assert caught.value.__notes__ == ["in toy, cell 2:\nx / 0\n"]


@pytest.mark.parametrize(
    "code",
    [
        "from matplotlib.figure import Figure\nFigure()\n",
        "# Figure: something\n1\n",
    ],
    ids=["not described", "not drawn"],
)
def test_figures_are_described(code):
    with pytest.raises(ValueError, match=r"toy, cell 1: .* begins with a comment"):
        notebooks.run(f"# Title\n\n```python\n{code}```\n", "toy")
