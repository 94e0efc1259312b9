"""RankLib: reads its trees, forests, weights and stumps, writes LambdaMART; reads QuickRank.

Lines that begin with ``##`` come first. Features count from 1 and are float32; a missing value
counts as 0.

- LambdaMART, MART: XML. A value goes left if x <= threshold. Every tree adds its weight times its
  output to a float32 sum; the product is not rounded first.
- Random Forests: several such ensembles; their sums are added in float64 and divided by their
  number.
- Coordinate Ascent, AdaRank, Linear Regression: a line of ``feature:weight``, added in float64 in
  their order; feature 0 is the start value of the sum.
- RankBoost: a line of ``feature:threshold:weight``; a weight is added if x > threshold.

QuickRank has the XML of an ensemble in a ``<ranker>``; outputs, weights and sums are float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any
from xml.parsers import expat

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import (
    MOST_FEATURES,
    Averaged,
    Foreign,
    ForeignWeights,
    TreeParts,
    joined,
    whole_number,
)
from rankgrove.model.ensemble import Ensemble, floor_float32
from rankgrove.model.tree import Tree

TREES = ("LambdaMART", "MART")
WEIGHTS = ("Coordinate Ascent", "AdaRank", "Linear Regression")
FOREST, STUMPS = "Random Forests", "RankBoost"
NETS = ("RankNet", "LambdaRank", "ListNet")
MOST_WEIGHTS = 1 << 20  # of a linear model; a higher number means that the file is damaged
# Element -> the elements that may contain it.
_INSIDE = {
    "bags": ("",),
    "ranker": ("",),
    "info": ("ranker",),
    "ensemble": ("", "bags", "ranker"),
    "tree": ("ensemble",),
    "split": ("tree", "split"),
    "feature": ("split",),
    "threshold": ("split",),
    "output": ("split",),
}


# -- reading --------------------------------------------------------------------------------------


def model_name(line: str) -> str | None:
    """Return the name of the RankLib model in a file, given its first line; None: no such model."""
    name = line.strip("# \t").casefold()
    known = {model.casefold(): model for model in (*TREES, FOREST, *WEIGHTS, STUMPS, *NETS)}
    return known.get(name)


def read_text(text: str) -> Foreign | ForeignWeights:
    """Read a model file of RankLib or QuickRank."""
    lines = text.splitlines()
    header = [line for line in lines if line.lstrip().startswith("##")]
    body = "\n".join(line for line in lines if not line.lstrip().startswith("##")).strip()
    kind = (model_name(header[0]) or header[0].strip("# \t")) if header else ""
    if kind in WEIGHTS:
        return _weights(body, kind)
    if kind == STUMPS:
        return _stumps(body)
    if kind == FOREST:
        return _forest(body)
    if kind and kind not in TREES:
        why = "a net, which cannot be read" if kind in NETS else "which is unknown"
        raise ModelFileError(
            f"it is RankLib's {kind!r}, {why}. RankLib's models that can be read are "
            f"{', '.join((*TREES, FOREST, *WEIGHTS))} and {STUMPS}."
        )
    parser = _Parser()
    ensembles = parser.parse(body)
    if len(ensembles) != 1:
        raise ModelFileError(f"it has {len(ensembles)} <ensemble> instead of one: it is damaged.")
    (trees,) = ensembles
    return Foreign(
        _ensemble(trees, single=not parser.wide),
        "QuickRank" if parser.wide else "RankLib",
        parser.kind or kind or None,
        least_features=True,
    )


def _ensemble(trees: Sequence[Tree], n_columns: int = 1, *, single: bool) -> Ensemble:
    highest = max((int(tree.feature.max()) for tree in trees if tree.n_nodes), default=0)
    return joined(trees, highest + 1, 0.0, n_columns, single=single)


def _forest(body: str) -> Foreign:
    """Read several ensembles: a column is the sum of one bag."""
    bags = _Parser().parse(f"<bags>{body}</bags>")
    if not any(bags):
        raise ModelFileError("it is a random forest without trees: it is damaged.")
    # bags with fewer trees are padded with trees that add 0
    rounds = zip_longest(*bags, fillvalue=Tree.constant(0.0))
    sums = _ensemble([tree for trees in rounds for tree in trees], len(bags), single=True)
    averaged = Averaged(sums, len(bags), bags=True)
    return Foreign(averaged.flat(), "RankLib", FOREST, least_features=True, averaged=averaged)


def _terms(body: str, kind: str, n_parts: int) -> list[list[str]]:
    """Return the terms of the first line, each split at its colons."""
    line = body.partition("\n")[0].rpartition("#")
    terms = [word.split(":") for word in (line[0] if line[1] else line[2]).split()]
    if not terms or any(len(term) != n_parts for term in terms):
        form = "feature:threshold:weight" if n_parts == 3 else "feature:weight"
        raise ModelFileError(f"it has no line of {form!r}, as {kind} models have: it is damaged.")
    return terms


def _weights(body: str, kind: str) -> ForeignWeights:
    least = 0 if kind == "Linear Regression" else 1
    terms = [
        (whole_number(feature, "feature", least, MOST_WEIGHTS), _finite(weight))
        for feature, weight in _terms(body, kind, 2)
    ]
    intercept = [weight for feature, weight in terms if feature == 0]
    kept = [(feature, weight) for feature, weight in terms if feature > 0]
    return ForeignWeights(
        np.array([feature - 1 for feature, _ in kept], np.int64),
        np.array([weight for _, weight in kept], np.float64),
        intercept[-1] if intercept else 0.0,
        "RankLib",
        kind,
    )


def _stumps(body: str) -> Foreign:
    trees = []
    for feature, threshold, weight in _terms(body, STUMPS, 3):
        at = float(floor_float32(np.array([float(threshold)]))[0])
        parts = TreeParts()
        column = whole_number(feature, "feature", 1, MOST_FEATURES) - 1
        node = parts.split(None, column, at, at >= 0.0)
        parts.leaf((node, True), 0.0)
        parts.leaf((node, False), _finite(weight))
        trees.append(parts.tree(np.float32))
    return Foreign(_ensemble(trees, single=False), "RankLib", STUMPS, least_features=True)


def _finite(text: str) -> float:
    number = float(text)
    if not np.isfinite(number):
        raise ModelFileError(f"a weight is {text[:40]!r}: it is damaged.")
    return number


class _Open:
    """An element that has not ended yet."""

    def __init__(self, name: str, attributes: Mapping[str, str], place: Any) -> None:
        self.name = name
        self.attributes = attributes
        self.place = place  # of a split: its place in the tree
        self.text: list[str] = []
        self.values: dict[str, float] = {}
        self.node: int | None = None
        self.n_children = 0


class _Parser:
    """Builds trees as elements begin and end, without recursion and without entities."""

    def __init__(self) -> None:
        self.ensembles: list[list[Tree]] = []
        self.open: list[_Open] = []
        self.parts = TreeParts()
        self.weight = 1.0
        self.wide = False  # QuickRank's: float64 outputs and weights
        self.kind = ""  # QuickRank's name of the model

    def parse(self, text: str) -> list[list[Tree]]:
        """Return the trees of every ensemble."""
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
                f"its XML is damaged or truncated: it cannot be read beyond line {error.lineno}, "
                f"column {error.offset + 1}."
            ) from None
        return self.ensembles

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        above = self.open[-1] if self.open else None
        if any(element.name == "info" for element in self.open):  # the parameters of training
            self.open.append(_Open(name, attributes, None))
            return
        if above and above.name == "ranker" and name not in ("info", "ensemble"):
            raise ModelFileError(
                f"it is QuickRank's {self.kind or 'model'} with <{name}>; only QuickRank's models "
                "that are one <ensemble> of trees can be read (MART, LAMBDAMART, DART, ...)."
            )
        if name not in _INSIDE or (above.name if above else "") not in _INSIDE[name]:
            where = f"in <{above.name}>" if above else "first"
            raise ModelFileError(f"<{name}> cannot be {where}: it is damaged, or not RankLib's.")
        if name == "ranker":
            self.wide = True
        elif name == "ensemble":
            self.ensembles.append([])
        elif name == "tree":
            self.parts = TreeParts()
            self.weight = self._number(attributes.get("weight", "1"))
        self.open.append(_Open(name, attributes, self._place(name, above, attributes)))

    def _place(self, name: str, above: _Open | None, attributes: Mapping[str, str]) -> Any:
        """Return the place of a split in the tree."""
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

    def _number(self, text: str) -> float:
        with np.errstate(over="ignore"):
            return float(text) if self.wide else float(np.float32(text))

    def characters(self, text: str) -> None:
        if self.open:
            self.open[-1].text.append(text)

    def end(self, name: str) -> None:
        element = self.open.pop()
        text = "".join(element.text).strip()
        if any(outer.name == "info" for outer in self.open):
            self.kind = text if name == "type" else self.kind
        elif name == "feature":
            self.open[-1].values[name] = whole_number(text, "feature", 1, MOST_FEATURES)
        elif name in ("threshold", "output"):
            self.open[-1].values[name] = self._number(text)
        elif name == "split" and element.node is None:
            if set(element.values) != {"output"}:
                raise ModelFileError("a split has neither children nor an output: it is damaged.")
            self.parts.leaf(element.place, self.weight * element.values["output"])
        elif name == "split" and (element.n_children != 2 or "output" in element.values):
            raise ModelFileError("a split must have two children: it is damaged.")
        elif name == "tree":
            if element.n_children != 1:
                raise ModelFileError("a tree has no root: it is damaged.")
            self.ensembles[-1].append(self.parts.tree(np.float32))


def _refuse_doctype(*_: Any) -> None:
    raise ModelFileError("it has a document type, which no RankLib model has: it cannot be read.")


# -- writing --------------------------------------------------------------------------------------


def write_text(ensemble: Ensemble, names: Sequence[str] = ()) -> str:
    """Return the text of a LambdaMART model that RankLib loads; `names` become comments.

    Missing values go where 0 goes, even if the ensemble sends them elsewhere. Thresholds and
    outputs are float32; the base is a tree with a single leaf.
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
        *(f"## Feature {j} = {' '.join(name.split())}" for j, name in enumerate(names, 1)),
        "",
        "<ensemble>",
    ]
    for number, tree in enumerate(trees, 1):
        lines.append(f'\t<tree id="{number}" weight="1.0">')
        lines += _split_lines(tree)
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""])


def _split_lines(tree: Tree) -> list[str]:
    """Return the lines of a tree, without recursion."""
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


def java_float(value: float | np.floating[Any]) -> str:
    """Return the shortest text of a float32, in a form that Java reads too."""
    text = str(np.float32(value))
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
