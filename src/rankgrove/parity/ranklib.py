"""RankLib: trees and forests, as its own classes score them.

A value is float32 and goes left if it is at most the float32 threshold; an unknown value is 0. A
leaf's float32 output times the tree's float32 weight is a double, which is added to a float32 sum,
rounded after every tree. A random forest adds its bags' sums up in double, and divides by their
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.parity.descent import leaves_reached

_FOLDER = "src/main/java/ciir/umass/edu/learning"
SOURCES = tuple(
    f"codelibs/ranklib e43f605f {_FOLDER}/{path}"
    for path in ("tree/Ensemble.java", "tree/Split.java", "tree/RFRanker.java",
                 "DenseDataPoint.java", "SparseDataPoint.java")
)  # fmt: skip


@dataclass(frozen=True)
class _Tree:
    weight: float
    root: int
    column: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    output: np.ndarray


@dataclass(frozen=True)
class RankLibModel:
    """Ensembles of trees.

    Attributes
    ----------
    features : its features' numbers as words, ``"1"`` and so on
    bags : the ensembles; more than one of a random forest
    """

    features: tuple[str, ...]
    bags: tuple[tuple[_Tree, ...], ...]
    forest: bool

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return RankLib's scores of documents; NaN where a document lacks a feature."""
        with np.errstate(over="ignore"):
            rows = np.asarray(values, np.float64).astype(np.float32)
        rows = np.where(np.isnan(rows), np.float32(0.0), rows)
        sums = [_sum(trees, rows) for trees in self.bags]
        if not self.forest:
            return sums[0].astype(np.float64)
        total = np.zeros(len(rows))
        for bag in sums:
            total = total + bag
        return total / len(sums)


def _sum(trees: tuple[_Tree, ...], rows: np.ndarray) -> np.ndarray:
    total = np.zeros(len(rows), np.float32)
    for tree in trees:

        def goes_left(nodes: np.ndarray, at: np.ndarray, tree: _Tree = tree) -> np.ndarray:
            return np.asarray(rows[at, tree.column[nodes]] <= tree.threshold[nodes])

        leaf = leaves_reached(len(rows), tree.root, tree.left, tree.right, goes_left)
        with np.errstate(over="ignore", invalid="ignore"):
            total = (total + tree.output[leaf] * tree.weight).astype(np.float32)
    return total


def read(data: bytes) -> RankLibModel:
    """Parse a model file of LambdaMART, MART or Random Forests."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ModelFileError("RankLib cannot read the model: it is not text.") from None
    kind = next((line.strip("# \t") for line in lines if line.startswith("##")), "")
    if kind not in ("LambdaMART", "MART", "Random Forests"):
        raise ModelFileError(f"RankLib's {kind!r} is not emulated; its tree models are.")
    body = "".join(line.strip() for line in lines if not line.startswith("##"))
    if "<!" in body:  # no document type, no entities
        raise ModelFileError("the model has a document type: it is damaged.")
    columns: dict[int, int] = {}
    try:
        ensembles = ElementTree.fromstring(f"<all>{body}</all>").findall("ensemble")
        bags = tuple(
            tuple(_tree(node, columns) for node in ensemble.findall("tree"))
            for ensemble in ensembles
        )
    except ModelFileError:
        raise
    except (ElementTree.ParseError, ValueError, IndexError, TypeError) as error:
        raise ModelFileError(f"RankLib cannot read the model: {error!r}.") from None
    forest = kind == "Random Forests"
    if not bags or (len(bags) > 1 and not forest):
        raise ModelFileError(f"RankLib's {kind} has one <ensemble>; this file has {len(bags)}.")
    return RankLibModel(tuple(map(str, columns)), bags, forest)


def _tree(element: ElementTree.Element, columns: dict[int, int]) -> _Tree:
    """Read one tree; children are found by position, as in RankLib."""
    column: list[int] = []
    threshold: list[np.float32] = []
    sides: tuple[list[int], list[int]] = ([], [])
    output: list[float] = []
    root = -1
    todo: list[tuple[ElementTree.Element, int, int]] = [(element[0], -1, 0)]
    while todo:
        node, parent, side = todo.pop()
        if node[0].tag.lower() == "feature":
            here = len(column)
            number = int((node[0].text or "").strip())
            column.append(columns.setdefault(number, len(columns)))
            threshold.append(_float(node[1]))
            sides[0].append(0)
            sides[1].append(0)
            todo += [(node[3], here, 1), (node[2], here, 0)]
        else:
            here = ~len(output)
            output.append(float(_float(node[0])))  # a float, kept in a double
        if parent < 0:
            root = here
        else:
            sides[side][parent] = here
    return _Tree(
        float(np.float32(element.get("weight", ""))),
        root,
        np.array(column, np.int64),
        np.array(threshold, np.float32),
        np.array(sides[0], np.int64),
        np.array(sides[1], np.int64),
        np.array(output, np.float64),
    )


def _float(element: ElementTree.Element) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32((element.text or "").strip())
