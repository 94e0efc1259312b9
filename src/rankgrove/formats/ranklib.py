"""RankLib's ensembles (LambdaMART, MART): its XML in and out.

Lines that begin with ``##`` come first. Features count from 1; a value goes left where
x <= threshold, in float32, and a missing one counts as 0. The sum is float32, to which every tree
adds its weight times its output, a product that is not rounded before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.parsers import expat

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import MOST_FEATURES, Foreign, TreeParts, joined, whole_number
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

TREES = ("LambdaMART", "MART")
# Which elements may stand in which.
_INSIDE = {
    "ensemble": ("",),
    "tree": ("ensemble",),
    "split": ("tree", "split"),
    "feature": ("split",),
    "threshold": ("split",),
    "output": ("split",),
}


# -- reading --------------------------------------------------------------------------------------


def read_text(text: str) -> Foreign:
    """Read a model file of RankLib."""
    lines = text.splitlines()
    header = [line.lstrip("#").strip() for line in lines if line.lstrip().startswith("##")]
    body = "\n".join(line for line in lines if not line.lstrip().startswith("##"))
    kind = header[0] if header else ""
    if kind and kind not in TREES:
        raise ModelFileError(
            f"it is RankLib's {kind!r}; of RankLib's models LambdaMART and MART can be read."
        )
    trees = _Parser().parse(body.strip())
    highest = max((int(tree.feature.max()) for tree in trees if tree.n_nodes), default=0)
    return Foreign(
        joined(trees, highest + 1, 0.0, 1, single=True),
        "RankLib",
        kind or None,
        least_features=True,
    )


class _Open:
    """An element that has not ended yet."""

    def __init__(self, name: str, attributes: Mapping[str, str], place: Any) -> None:
        self.name = name
        self.attributes = attributes
        self.place = place  # of a split: where in the tree it hangs
        self.text: list[str] = []
        self.values: dict[str, float] = {}
        self.node: int | None = None
        self.n_children = 0


class _Parser:
    """Builds trees as elements begin and end, without recursion and without entities."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        self.open: list[_Open] = []
        self.parts = TreeParts()
        self.weight = 1.0

    def parse(self, text: str) -> list[Tree]:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self.begin
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.buffer_text = True
        try:
            parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            raise ModelFileError(
                f"its XML is damaged or cut short ({expat.ErrorString(error.code)})."
            ) from None
        return self.trees

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        above = self.open[-1] if self.open else None
        if name not in _INSIDE or (above.name if above else "") not in _INSIDE[name]:
            where = f"in <{above.name}>" if above else "first"
            raise ModelFileError(f"<{name}> cannot stand {where}: it is damaged, or not RankLib's.")
        if name == "tree":
            self.parts = TreeParts()
            self.weight = float(np.float32(attributes.get("weight", "1")))
        self.open.append(_Open(name, attributes, self._place(name, above, attributes)))

    def _place(self, name: str, above: _Open | None, attributes: Mapping[str, str]) -> Any:
        """Return where in the tree a split hangs."""
        if name != "split" or above is None:
            return None
        above.n_children += 1
        if above.name == "tree":
            if above.n_children > 1:
                raise ModelFileError("a tree has two roots: it is damaged.")
            return None
        if above.node is None:
            if set(above.values) != {"feature", "threshold"}:
                raise ModelFileError("a split has children before its feature: it is damaged.")
            column = int(above.values["feature"]) - 1
            threshold = above.values["threshold"]
            above.node = self.parts.split(above.place, column, threshold, threshold >= 0.0)
        expected = "left" if above.n_children == 1 else "right"
        if above.n_children > 2 or attributes.get("pos", expected) != expected:
            raise ModelFileError("a split must have a left and then a right child: it is damaged.")
        return above.node, above.n_children == 1

    def characters(self, text: str) -> None:
        if self.open:
            self.open[-1].text.append(text)

    def end(self, name: str) -> None:
        done = self.open.pop()
        text = "".join(done.text).strip()
        if name == "feature":
            self.open[-1].values[name] = whole_number(text, "feature", 1, MOST_FEATURES)
        elif name in ("threshold", "output"):
            with np.errstate(over="ignore"):
                self.open[-1].values[name] = float(np.float32(text))
        elif name == "split" and done.node is None:
            if set(done.values) != {"output"}:
                raise ModelFileError("a split has neither children nor an output: it is damaged.")
            self.parts.leaf(done.place, self.weight * done.values["output"])
        elif name == "split" and (done.n_children != 2 or "output" in done.values):
            raise ModelFileError("a split must have two children: it is damaged.")
        elif name == "tree":
            if done.n_children != 1:
                raise ModelFileError("a tree has no root: it is damaged.")
            self.trees.append(self.parts.tree(np.float32))


def _refuse_doctype(*_: Any) -> None:
    raise ModelFileError("it has a document type, which no RankLib model has: it is not read.")


# -- writing --------------------------------------------------------------------------------------


def write_text(ensemble: Ensemble) -> str:
    """Return the text of a LambdaMART model that RankLib loads.

    Missing values go where 0 goes, whatever the ensemble says. Thresholds and outputs are float32;
    the base is a tree of one leaf.
    """
    single = ensemble.for_float32()
    trees = [single.tree(t) for t in range(single.n_trees)]
    if ensemble.base or not trees:
        trees.insert(0, Tree.constant(ensemble.base))
    n_leaves = max(tree.n_leaves for tree in trees)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {len(trees)}",
        f"## No. of leaves = {n_leaves}",
        "",
        "<ensemble>",
    ]
    for number, tree in enumerate(trees, 1):
        lines.append(f'\t<tree id="{number}" weight="1.0">')
        lines += _split_lines(tree)
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""])


def _split_lines(tree: Tree) -> list[str]:
    """Return the lines of a tree, by a walk without recursion."""
    lines: list[str] = []
    # (node, its element, depth); an element of None: the end of the element at that depth
    todo: list[tuple[int, str | None, int]] = [(0 if tree.n_nodes else -1, "<split>", 2)]
    while todo:
        child, element, depth = todo.pop()
        indent = "\t" * depth
        if element is None:
            lines.append(f"{indent}</split>")
            continue
        lines.append(f"{indent}{element}")
        todo.append((child, None, depth))
        if child < 0:
            lines.append(f"{indent}\t<output> {java_float(tree.value[~child])} </output>")
            continue
        lines.append(f"{indent}\t<feature> {tree.feature[child] + 1} </feature>")
        lines.append(f"{indent}\t<threshold> {java_float(tree.threshold[child])} </threshold>")
        todo.append((int(tree.right[child]), '<split pos="right">', depth + 1))
        todo.append((int(tree.left[child]), '<split pos="left">', depth + 1))
    return lines


def java_float(value: Any) -> str:
    """Return the shortest text of a float32, in words that Java reads too."""
    text = str(np.float32(value))
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
