"""Draw the layers of the package as import-linter enforces them: ``python -m tools.layers``.

The boxes have their own colours, so that the picture is readable on white and on black.
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "assets" / "layers.svg"
WIDTH, HEIGHT, GAP, LEFT = 760, 40, 10, 64
LETTER, PADDING = 8.43, 8  # of a letter in the font below; of a box
# From the top layer to the lowest, light to dark.
TOP, BOTTOM = (214, 240, 228), (122, 190, 160)


def layers() -> list[list[str]]:
    """Return the existing modules of every layer, the highest layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["type"] == "layers")
    names = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    return [[name for name in layer if path_of(name).exists()] for layer in names]


def path_of(name: str) -> Path:
    """Return the file of a module, or of a package's ``__init__``."""
    source = ROOT / "src" / "rankgrove"
    package = source / name
    return package / "__init__.py" if package.is_dir() else source / f"{name}.py"


def sentence_of(name: str) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path_of(name).read_text())) or "").split("\n")[0]


def widths_of(layer: list[str]) -> list[float]:
    """Return the widths of a layer's boxes: equal, or by the names where one would not fit."""
    room = WIDTH - LEFT - GAP * len(layer)
    equal = room / len(layer)
    if max(map(len, layer)) * LETTER + PADDING <= equal:
        return [equal] * len(layer)
    spare = (room - LETTER * sum(map(len, layer))) / len(layer)
    return [LETTER * len(name) + spare for name in layer]


def drawn() -> str:
    """Return the picture as SVG."""
    rows = [layer for layer in layers() if layer]
    total = len(rows) * (HEIGHT + GAP) + GAP
    end = total - 2 * GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" role="img" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
        f"<title>The layers of rankgrove, from {rows[0][0]} down to {rows[-1][0]}</title>",
        '<g stroke="#7d8a84" stroke-width="2" fill="none">'
        f'<path d="M30 {2 * GAP} V{end}"/>'
        f'<path d="M23 {end - 9} L30 {end} L37 {end - 9}"/></g>',
        f'<text x="16" y="{total / 2}" fill="#7d8a84" text-anchor="middle" '
        f'transform="rotate(-90 16 {total / 2})">may import</text>',
    ]
    for i, layer in enumerate(rows):
        share = i / max(1, len(rows) - 1)
        colour = "#" + "".join(
            f"{round(a + share * (b - a)):02x}" for a, b in zip(TOP, BOTTOM, strict=True)
        )
        y = GAP + i * (HEIGHT + GAP)
        x = float(LEFT)
        for name, width in zip(layer, widths_of(layer), strict=True):
            parts.append(
                f"<g><title>{escape(f'{name}: {sentence_of(name)}')}</title>"
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" rx="6" '
                f'fill="{colour}" stroke="#2f7d5f"/>'
                f'<text x="{x + width / 2:.1f}" y="{y + 25}" fill="#10281f" '
                f'text-anchor="middle">{name}</text></g>'
            )
            x += width + GAP
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn())
    print(f"written to {PICTURE.relative_to(ROOT)}")
