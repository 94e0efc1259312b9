"""A small engine for tests: the plugin of Elasticsearch, as its documentation describes it.

Trees in nested JSON; x < t goes to "yes", in float32; a missing value goes to "missing", to the
right, or counts as 0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from rankgrove.parity.engine import Engine


@dataclass(frozen=True)
class Plugin:
    features: tuple[str, ...]
    trees: list
    missing: str = "node"

    def scores(self, values):
        x = np.asarray(values, np.float32)
        if self.missing == "zero":
            x = np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)
        place = {name: j for j, name in enumerate(self.features)}
        total = np.zeros(len(x), np.float32)
        for tree in self.trees:
            total += self._tree(tree, x, place)
        return total.astype(np.float64)

    def _tree(self, node, x, place):
        out = np.zeros(len(x), np.float32)
        todo = [(node, np.arange(len(x)))]
        while todo:
            at, rows = todo.pop()
            if "leaf" in at:
                out[rows] = np.float32(at["leaf"])
                continue
            column = x[rows, place[at["split"]]]
            left = column < np.float32(at["split_condition"])
            if self.missing == "node":
                left = np.where(np.isnan(column), at["missing"] == at["yes"], left)
            for child in at["children"]:
                todo.append((child, rows[left == (child["nodeid"] == at["yes"])]))
        return out


def reader(missing):
    def read(content):
        trees = json.loads(json.loads(content)["model"]["model"]["definition"])
        names, todo = {}, list(trees)
        while todo:
            node = todo.pop()
            if "split" in node:
                names[node["split"]] = None
                todo += node["children"]
        return Plugin(tuple(names), trees, missing)

    return read


NODE = Engine("plugin", "test plugin", "elasticsearch", (), reader("node"))
RIGHT = Engine("plugin-right", "test plugin, missing right", "elasticsearch", (), reader("right"))
ZERO = Engine("plugin-zero", "test plugin, missing is 0", "elasticsearch", (), reader("zero"))
