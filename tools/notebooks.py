"""Notebooks: Markdown in docs/notebooks whose Python blocks are cells, run to show their outputs.

``python -m tools.notebooks [FOLDER]`` runs all and writes them as .ipynb, with outputs, into a
folder (build/notebooks). The site has them as pages, and the same .ipynb files to download.

A cell that draws a figure begins with a comment, ``# Figure: ...``, that says what is to be seen.
It is the alternative text of the figure.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
CELL = re.compile(r"^```python\n(.*?)^```\n?", re.S | re.M)
FIGURE = re.compile(r"\A# Figure: (.*\n(?:# .*\n)*)")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
DPI = 150


class Output(NamedTuple):
    """What a cell gave: texts by MIME type, and the bytes of pictures and of written pages."""

    kind: str  # "stream", "value", "figure" or "page"
    text: str
    html: str = ""
    data: bytes = b""
    width: float = 0.0


class Cell(NamedTuple):
    """A part of a notebook: text, or code with its outputs."""

    source: str
    is_code: bool
    outputs: tuple[Output, ...] = ()

    @property
    def figure(self) -> str:
        """The text that describes the cell's figure, on one line; empty without one."""
        found = FIGURE.match(self.source)
        return " ".join(re.sub(r"^# ", "", found[1], flags=re.M).split()) if found else ""


def cells_of(text: str) -> list[Cell]:
    """Return the cells of a notebook, not yet run."""
    parts = CELL.split(text)
    cells = [Cell(part, k % 2 == 1) for k, part in enumerate(parts)]
    return [cell for cell in cells if cell.source.strip()]


def run(
    text: str, name: str, names: dict[str, Any] | None = None, change: Callable[[str], str] = str
) -> list[Cell]:
    """Return the cells of a notebook with their outputs, run in order in an empty folder.

    name : the notebook's name, for tracebacks
    names : a dict that receives the variables of the cells
    change : changes the code that is run, such as to a smaller size
    """
    names = {} if names is None else names
    names["__name__"] = "__main__"
    done, number = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in cells_of(text):
            if cell.is_code:
                number += 1
                where = f"{name}, cell {number}"
                try:
                    outputs = run_code(change(cell.source), where, names)
                except Exception as error:
                    error.add_note(f"in {where}:\n{cell.source}")
                    raise
                drawn = [output for output in outputs if output.kind == "figure"]
                if bool(drawn) != bool(cell.figure):
                    raise ValueError(
                        f"{where}: a cell whose value is a figure begins with a comment "
                        f"'# Figure: ...' that describes it, and no other cell does."
                    )
                cell = cell._replace(outputs=tuple(outputs))
            done.append(cell)
    return done


def run_code(code: str, where: str, names: dict[str, Any]) -> list[Output]:
    """Run a cell as Jupyter does; return what was printed, the last value, and written pages."""
    before = {path: path.stat().st_mtime_ns for path in Path().glob("*.html")}
    body = ast.parse(code, where).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    with io.StringIO() as printed:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            exec(compile(ast.Module(body, []), where, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
        text = printed.getvalue()
    outputs = [Output("stream", text)] if text else []
    if value is not None:
        outputs.append(shown(value))
    for path in sorted(Path().glob("*.html")):
        if path.stat().st_mtime_ns != before.get(path):
            outputs.append(Output("page", path.name, data=path.read_bytes()))
    return outputs


def shown(value: Any) -> Output:
    """Return the value of a cell as Jupyter shows it."""
    figures = sys.modules.get("matplotlib.figure")
    if figures is not None and isinstance(value, figures.Figure):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=DPI)
        width = float(value.get_size_inches()[0])
        return Output("figure", "<Figure>", data=picture.getvalue(), width=width)
    html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    return Output("value", repr(value), html or "")


# -- the site -------------------------------------------------------------------------------------


def site_page(cells: list[Cell], stem: str) -> tuple[str, dict[str, bytes], dict[str, bytes]]:
    """Return a notebook as a page of the site.

    Returns
    -------
    the page; its pictures by name, for the folder of the page; other files of that folder
    """
    parts, pictures, others = [], {}, {}
    for cell in cells:
        if not cell.is_code:
            parts.append(cell.source.strip("\n"))
            continue
        parts.append(f"````{{code-block}} python\n{FIGURE.sub('', cell.source)}````")
        for output in cell.outputs:
            name = f"{stem}-{len(pictures) + 1}.png"
            if output.kind == "figure":
                pictures[name] = output.data
                parts.append(_picture(name, cell.figure, output.width))
            elif output.kind == "page":
                file = f"{stem}-{output.text}"
                others[file] = output.data
                parts.append(_page_in_page(file, output.text))
            elif output.html:
                parts.append(f'````{{raw}} html\n<div class="cell-table">{output.html}</div>\n````')
            else:
                body = output.text.rstrip("\n")
                parts.append(f"````{{code-block}} text\n:class: cell-output\n\n{body}\n````")
    others[f"{stem}.ipynb"] = ipynb(cells).encode()
    title, *rest = parts[0].split("\n", 1)
    download = (
        f'````{{raw}} html\n<p class="cell-download"><a href="{stem}.ipynb" download>'
        "This page as a Jupyter notebook</a>, with the outputs below</p>\n````"
    )
    return "\n\n".join([title, download, *rest, *parts[1:]]) + "\n", pictures, others


def _picture(name: str, text: str, inches: float) -> str:
    size = "wide" if inches > 9 else "normal" if inches > 7 else "narrow"
    return f"`````{{container}} cell-figure {size}\n````{{image}} {name}\n:alt: {text}\n````\n`````"


def _page_in_page(file: str, name: str) -> str:
    return (
        f'````{{raw}} html\n<p><a href="{file}">Open {name} as a page of its own</a></p>\n'
        f'<iframe class="cell-page" src="{file}" title="{name}, as the cell wrote it" '
        'loading="lazy"></iframe>\n````'
    )


# -- Jupyter's files ------------------------------------------------------------------------------


def ipynb(cells: list[Cell]) -> str:
    """Return a notebook as Jupyter's JSON (nbformat 4.5), with outputs."""
    written: list[dict[str, Any]] = []
    count = 0
    for k, cell in enumerate(cells):
        one: dict[str, Any] = {"id": f"cell-{k + 1}", "metadata": {}}
        if cell.is_code:
            count += 1
            one |= {"cell_type": "code", "execution_count": count}
            one["outputs"] = [
                _jupyter_output(output, count, cell.figure)
                for output in cell.outputs
                if output.kind != "page"
            ]
        else:
            one["cell_type"] = "markdown"
        source = cell.source if cell.is_code else LINK.sub(r"*\1*", cell.source)
        one["source"] = source.strip("\n").splitlines(keepends=True)
        written.append(dict(sorted(one.items())))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _jupyter_output(output: Output, count: int, figure: str) -> dict[str, Any]:
    if output.kind == "stream":
        lines = output.text.splitlines(keepends=True)
        return {"name": "stdout", "output_type": "stream", "text": lines}
    data: dict[str, Any] = {"text/plain": output.text}
    if output.kind == "figure":
        data = {"image/png": base64.b64encode(output.data).decode(), "text/plain": figure}
    elif output.html:
        data["text/html"] = output.html
    return {
        "data": data,
        "execution_count": count,
        "metadata": {},
        "output_type": "execute_result",
    }


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/notebooks").resolve()
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.md")):
        (target / f"{path.stem}.ipynb").write_text(ipynb(run(path.read_text(), path.stem)))
        print(target / f"{path.stem}.ipynb")
