"""The changes made by adaptation, by tree and by feature, as tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankgrove.adapt.adapted_trees import Adapted
from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import SourceStatistics
from rankgrove.errors import ModelFileError
from rankgrove.files import write_atomically
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.store import needed
from rankgrove.validation import check_choice, check_integer

_ARRAYS = (
    "node_ptr", "leaf_ptr", "feature", "left", "right", "reached", "threshold_before",
    "threshold_after", "response_before", "response_after", "spread",
)  # fmt: skip
_WHOLE = ("node_ptr", "leaf_ptr", "feature", "left", "right")
Row = dict[str, str | int | float]


@dataclass(frozen=True, eq=False)
class AdaptationReport:
    """The changes made by adaptation.

    A place is a node or a leaf; a tree's nodes come before its leaves. The trees are not trimmed.

    Attributes
    ----------
    node_ptr, leaf_ptr, feature, left, right : the trees, as in an ensemble
    reached : number of target rows that reach every place
    threshold_before, threshold_after : thresholds of the nodes; 0 where a node tests a set of
        categories, which is kept
    response_before, response_after : responses of the places, learning rate included; the response
        of a leaf is its value
    spread : standard deviation of every feature in the target's data
    feature_names : names of the features in the target's data
    """

    node_ptr: np.ndarray
    leaf_ptr: np.ndarray
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    reached: np.ndarray
    threshold_before: np.ndarray
    threshold_after: np.ndarray
    response_before: np.ndarray
    response_after: np.ndarray
    spread: np.ndarray
    feature_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        base: Ensemble,
        source: SourceStatistics,
        adapted: Adapted,
        target: TargetRows,
        feature_names: Sequence[str],
    ) -> AdaptationReport:
        """Compare a base model with its adapted trees."""
        spread = np.zeros(base.n_features)
        spread[target.features] = target.spread()
        return cls(
            base.node_ptr, base.leaf_ptr, base.feature, base.left, base.right,
            adapted.reached, base.threshold, adapted.ensemble.threshold,
            source.response, adapted.response, spread, tuple(feature_names),
        )  # fmt: skip

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything but the names as arrays, for the model file."""
        return {name: np.asarray(getattr(self, name)) for name in _ARRAYS}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], feature_names: Sequence[str]
    ) -> AdaptationReport:
        """Build the report from the arrays of a model file; refuse arrays that do not fit."""
        report = cls(**needed(arrays, _ARRAYS), feature_names=tuple(feature_names))
        n_nodes, n_features = report.feature.size, len(report.feature_names)
        n_leaves = report.response_before.size - n_nodes
        shapes = {
            **dict.fromkeys(("reached", "response_before", "response_after"), n_nodes + n_leaves),
            "threshold_after": n_nodes,
            "spread": n_features,
        }
        for name in _ARRAYS:
            array = getattr(report, name)
            is_number = array.dtype.kind in ("iu" if name in _WHOLE else "fiu")
            if not is_number or array.shape != (shapes.get(name, array.size),):
                raise ModelFileError(f"The report's array {name!r} does not fit its trees.")
        trees = {name: arrays[name] for name in _ARRAYS[:5]}
        trees["threshold"] = report.threshold_before
        trees["missing_left"] = np.zeros(n_nodes, np.bool_)
        trees |= {"gain": np.zeros(n_nodes), "value": np.zeros(n_leaves), "base": np.array(0.0)}
        trees |= {"n_features": np.array(n_features), "n_columns": np.array(1)}
        Ensemble.from_arrays(trees)  # refuses arrays that do not fit
        return report

    # -- the whole, by tree, by feature -----------------------------------------------------------

    @property
    def unreached_share(self) -> float:
        """Share of all branches that no target row reaches."""
        parts = [self._places(t) for t in range(self.n_trees)]
        branches = sum(part.stop - part.start - 1 for part in parts)
        empty = sum(int((self.reached[part] == 0).sum()) for part in parts)
        return empty / branches if branches else 0.0

    @property
    def n_trees(self) -> int:
        """Number of trees that were adapted."""
        return int(self.node_ptr.size - 1)

    def by_tree(self) -> list[Row]:
        """Return one row per tree.

        The columns: numbers of nodes and leaves, and of those reached; ``unreached``, the share of
        branches without a target row; ``moved``, the number of nodes whose threshold moved, and
        ``movement``, its mean in standard deviations of their features; ``response`` and
        ``response_change``, the mean absolute values of the leaves and of their changes, weighted
        by target rows.
        """
        rows = []
        for t in range(self.n_trees):
            part, n_nodes = self._places(t), int(self.node_ptr[t + 1] - self.node_ptr[t])
            reached = self.reached[part]
            nodes = slice(self.node_ptr[t], self.node_ptr[t + 1])
            moved = self._movement(nodes)
            before = self.response_before[part][n_nodes:]
            change = self.response_after[part][n_nodes:] - before
            rows.append(
                Row(
                    tree=t + 1,
                    nodes=n_nodes,
                    nodes_reached=int((reached[:n_nodes] > 0).sum()),
                    leaves=n_nodes + 1,
                    leaves_reached=int((reached[n_nodes:] > 0).sum()),
                    unreached=float((reached[1:] == 0).mean()) if n_nodes else 0.0,
                    moved=int((moved > 0).sum()),
                    movement=_mean(moved[moved > 0]),
                    response=_mean(np.abs(before), reached[n_nodes:]),
                    response_change=_mean(np.abs(change), reached[n_nodes:]),
                )
            )
        return rows

    def by_feature(self) -> list[Row]:
        """Return one row per feature that the trees use, most changed first.

        The columns: numbers of nodes, and of those reached and moved; ``movement`` and ``largest``,
        mean and largest movement of thresholds in standard deviations; ``effect`` and
        ``effect_change``: the difference of the responses of a node's two sides, and its change,
        as means over nodes weighted by target rows.
        """
        moved = self._movement(slice(None))
        reached, effect, change = self._effects()
        rows = []
        for j in np.unique(self.feature).tolist():
            on_feature = self.feature == j
            far = moved[on_feature & (moved > 0)]
            rows.append(
                Row(
                    feature=self.feature_names[j],
                    nodes=int(on_feature.sum()),
                    nodes_reached=int((reached[on_feature] > 0).sum()),
                    moved=int(far.size),
                    movement=_mean(far),
                    largest=float(far.max(initial=0.0)),
                    effect=_mean(effect[on_feature], reached[on_feature]),
                    effect_change=_mean(change[on_feature], reached[on_feature]),
                )
            )
        weight = {str(row["feature"]): float(row["effect_change"]) for row in rows}
        return sorted(rows, key=lambda row: -weight[str(row["feature"])])

    def _places(self, t: int) -> slice:
        return slice(
            int(self.node_ptr[t] + self.leaf_ptr[t]),
            int(self.node_ptr[t + 1] + self.leaf_ptr[t + 1]),
        )

    def _movement(self, nodes: slice) -> np.ndarray:
        """Return how far thresholds moved, in standard deviations of their features."""
        before, after = (
            a[nodes].astype(np.float64) for a in (self.threshold_before, self.threshold_after)
        )
        far = np.where(before == after, 0.0, np.abs(after - np.where(before == after, 0, before)))
        spread = self.spread[self.feature[nodes]]
        return np.divide(far, spread, out=np.zeros(far.size), where=spread > 0)

    def _effects(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return target rows, difference of the two sides' responses and its change, by node."""
        n_nodes = np.diff(self.node_ptr)
        tree = np.repeat(np.arange(self.n_trees), n_nodes)
        first = (self.node_ptr + self.leaf_ptr)[:-1][tree]
        in_tree = np.arange(self.feature.size) - self.node_ptr[tree]

        def place(child: np.ndarray) -> np.ndarray:
            return first + np.where(child >= 0, child, n_nodes[tree] + ~child)

        a, b = place(self.left), place(self.right)
        before = self.response_before[b] - self.response_before[a]
        after = self.response_after[b] - self.response_after[a]
        return self.reached[first + in_tree], np.abs(before), np.abs(after - before)

    # -- as text ----------------------------------------------------------------------------------

    def table(self, by: str = "feature", n_rows: int | None = None) -> str:
        """Return the rows by ``"tree"`` or by ``"feature"`` as text, the first `n_rows` of them."""
        if n_rows is not None:
            check_integer("n_rows", "table", n_rows, low=1)
        rows = self._rows(by)[:n_rows]
        if not rows:
            return ""
        cells = [list(rows[0]), *([_text(v) for v in row.values()] for row in rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        )

    def to_csv(self, path: str | Path | None = None, by: str = "tree") -> str:
        """Return the rows by ``"tree"`` or by ``"feature"`` as CSV; also write them to `path`."""
        rows = self._rows(by)
        out = io.StringIO()
        if rows:
            writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        if path is not None:
            write_atomically(path, out.getvalue())
        return out.getvalue()

    def _rows(self, by: str) -> list[Row]:
        check_choice("by", "AdaptationReport", by, ["tree", "feature"])
        return self.by_tree() if by == "tree" else self.by_feature()

    def __str__(self) -> str:
        moved = self._movement(slice(None))
        head = (
            f"{self.n_trees:,} trees adapted; {self.unreached_share:.1%} of their branches have no "
            f"target row; {(moved > 0).sum():,} of {moved.size:,} thresholds moved"
        )
        return f"{head}\n{self.table('feature', 10)}"

    def __repr__(self) -> str:
        return str(self)


def _mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    total = values.size if weight is None else weight.sum()
    if not total:
        return 0.0
    return float(values.mean() if weight is None else values @ weight / total)


def _text(value: str | int | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
