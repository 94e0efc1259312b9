"""Trees as source code without dependencies: a Python file or a C file.

Both hold the trees as tables and add as the model does: in the order of the trees, in float64 or
float32. Features are rounded to float32 first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove._version import __version__
from rankgrove.model.ensemble import Ensemble

_PYTHON = '''"""{about}"""

from array import array

N_FEATURES = {n_features}

# The root of every tree, or ~leaf where it is one.
_ROOT = {root}
# A node looks at a feature: up to the threshold it goes left, else right; ~leaf ends it.
_FEATURE = {feature}
_THRESHOLD = {threshold}
_LEFT = {left}
_RIGHT = {right}
_MISSING_LEFT = {missing}
_VALUE = {value}


def score(features):
    """Return the score of one document: a list of N_FEATURES numbers, NaN where one is missing."""
    if len(features) != N_FEATURES:
        raise ValueError(f"expected {{N_FEATURES}} features, got {{len(features)}}")
    features = array("f", features)
    total = array("{total}", [{base}])
    for node in _ROOT:
        while node >= 0:
            x = features[_FEATURE[node]]
            left = x <= _THRESHOLD[node] if x == x else _MISSING_LEFT[node]
            node = _LEFT[node] if left else _RIGHT[node]
        total[0] += _VALUE[~node]
    return total[0]
'''

_C = """/* {about} */

#include <math.h>
#include <stddef.h>

#define N_FEATURES {n_features}
#define N_TREES {n_trees}

double score(const float *x);
void score_batch(const float *x, size_t rows, double *scores);

/* The root of every tree, or ~leaf where it is one. */
static const int root[] = {{{root}}};
/* A node looks at a feature: up to the threshold it goes left, else right; ~leaf ends it. */
static const int feature[] = {{{feature}}};
static const float threshold[] = {{{threshold}}};
static const int left[] = {{{left}}};
static const int right[] = {{{right}}};
static const char missing_left[] = {{{missing}}};
static const double value[] = {{{value}}};

/* The score of one document: N_FEATURES numbers, NAN where one is missing. */
double score(const float *x)
{{
    {total} total = {base};
    for (int t = 0; t < N_TREES; t++) {{
        int node = root[t];
        while (node >= 0) {{
            float v = x[feature[node]];
            int goes_left = v == v ? v <= threshold[node] : missing_left[node];
            node = goes_left ? left[node] : right[node];
        }}
        total = ({total})(total + value[~node]);
    }}
    return total;
}}

/* The scores of documents that stand one after the other. */
void score_batch(const float *x, size_t rows, double *scores)
{{
    for (size_t i = 0; i < rows; i++)
        scores[i] = score(x + i * N_FEATURES);
}}
"""


def write_python(ensemble: Ensemble, name: str) -> str:
    """Return a Python file with a function ``score``."""
    tables = {
        key: f'array("{_CODES[key]}", [{_wrapped(_numbers(array))}])' if array.size else "()"
        for key, array in _tables(ensemble).items()
    }
    tables = {key: text.replace("inf", 'float("inf")') for key, text in tables.items()}
    return _PYTHON.format(
        about=_about(ensemble, name),
        n_features=ensemble.n_features,
        total="f" if ensemble.single else "d",
        base=repr(float(ensemble.base)),
        **tables,
    )


def write_c(ensemble: Ensemble, name: str) -> str:
    """Return a C file with ``score`` and ``score_batch``."""
    tables = {}
    for key, array in _tables(ensemble).items():
        numbers = _numbers(array)
        if key == "threshold":
            numbers = [_c_float(v) for v in array]
        tables[key] = _wrapped(numbers or ["0"])  # C has no empty arrays
    return _C.format(
        about=_about(ensemble, name),
        n_features=ensemble.n_features,
        n_trees=ensemble.n_trees,
        total="float" if ensemble.single else "double",
        base=repr(float(ensemble.base)),
        **tables,
    )


# Type codes of array: double holds thresholds and values exactly; long has at least 32 bits.
_CODES = {
    "root": "l", "feature": "l", "threshold": "d", "left": "l", "right": "l", "missing": "b",
    "value": "d",
}  # fmt: skip


def _tables(ensemble: Ensemble) -> dict[str, np.ndarray]:
    """Return the trees, with nodes and leaves numbered over all of them."""
    trees = ensemble.for_float32()
    of_node = np.repeat(np.arange(trees.n_trees), np.diff(trees.node_ptr))

    def through(child: np.ndarray, tree: np.ndarray) -> np.ndarray:
        leaf = trees.leaf_ptr[tree] + ~child
        return np.where(child >= 0, trees.node_ptr[tree] + child, ~leaf)

    all_trees = np.arange(trees.n_trees)
    is_leaf = np.diff(trees.node_ptr) == 0
    return {
        "root": through(np.where(is_leaf, -1, 0), all_trees),
        "feature": trees.feature,
        "threshold": trees.threshold,
        "left": through(trees.left, of_node),
        "right": through(trees.right, of_node),
        "missing": trees.missing_left.astype(np.int64),
        "value": trees.value,
    }


def _numbers(array: np.ndarray) -> list[str]:
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array
    return [repr(v) for v in wide.tolist()]


def _c_float(value: float | np.floating[Any]) -> str:
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = str(np.float32(value))
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def _wrapped(words: list[str]) -> str:
    """Return words separated by commas, in lines of readable length."""
    lines, length = [""], 0
    for word in words:
        if length + len(word) > 96:
            lines.append("")
            length = 0
        lines[-1] += f"{word}, "
        length += len(word) + 2
    return "\n    ".join(line.rstrip() for line in lines).rstrip(",")


def _about(ensemble: Ensemble, name: str) -> str:
    safe = "".join(c for c in name if c.isalnum() or c in " ._-")
    return f"{safe}: {ensemble.size_text()}, written by rankgrove {__version__}."
