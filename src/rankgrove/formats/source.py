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
{sets}

def score(features):
    """Return the score of one document: a list of N_FEATURES numbers, NaN where one is missing."""
    if len(features) != N_FEATURES:
        raise ValueError(f"expected {{N_FEATURES}} features, got {{len(features)}}")
    features = array("f", features)
    total = array("{total}", [{base}])
    for node in _ROOT:
        while node >= 0:
            x = features[_FEATURE[node]]
            {test}
            node = _LEFT[node] if left else _RIGHT[node]
        total[0] += _VALUE[~node]
    return total[0]
'''

_PYTHON_TEST = "left = x <= _THRESHOLD[node] if x == x else _MISSING_LEFT[node]"
_PYTHON_SETS = """\
# A node with a set of categories asks whether a code is in it; its threshold means nothing.
# Code c is bit c % 32 of the set's word c // 32; set s has the words _PTR[s] to _PTR[s + 1].
_SET = {set}
_PTR = {ptr}
_WORDS = {words}


def _holds(number, x):
    first, last = _PTR[number], _PTR[number + 1]
    if not 0 <= x < 32 * (last - first):
        return False
    return _WORDS[first + int(x) // 32] >> int(x) % 32 & 1

"""
_PYTHON_SET_TEST = """if x != x:
                left = _MISSING_LEFT[node]
            elif _SET[node] >= 0:
                left = _holds(_SET[node], x)
            else:
                left = x <= _THRESHOLD[node]"""

_C = """/* {about} */

#include <math.h>
#include <stddef.h>{include}

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
{sets}
/* The score of one document: N_FEATURES numbers, NAN where one is missing. */
double score(const float *x)
{{
    {total} total = {base};
    for (int t = 0; t < N_TREES; t++) {{
        int node = root[t];
        while (node >= 0) {{
            float v = x[feature[node]];
            {test}
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


_C_TEST = "int goes_left = v == v ? v <= threshold[node] : missing_left[node];"
_C_SETS = """\
/* A node with a set of categories asks whether a code is in it; its threshold means nothing.
 * Code c is bit c % 32 of the set's word c / 32; set s has the words ptr[s] to ptr[s + 1]. */
static const int set_of[] = {{{set}}};
static const long ptr[] = {{{ptr}}};
static const uint32_t words[] = {{{words}}};

static int in_set(int set, float v)
{{
    long first = ptr[set];
    if (!(v >= 0.0f && v < 32.0f * (float)(ptr[set + 1] - first)))
        return 0;
    uint32_t code = (uint32_t)v;
    return (int)(words[first + (long)(code / 32)] >> (code % 32) & 1u);
}}

"""
_C_SET_TEST = """int goes_left = v != v ? missing_left[node]
                : set_of[node] >= 0 ? in_set(set_of[node], v) : v <= threshold[node];"""


def write_python(ensemble: Ensemble, name: str) -> str:
    """Return a Python file with a function ``score``."""
    tables = {
        key: f'array("{_CODES[key]}", [{_wrapped(_numbers(array))}])' if array.size else "()"
        for key, array in _tables(ensemble).items()
    }
    tables = {key: text.replace("inf", 'float("inf")') for key, text in tables.items()}
    sets = {key: tables.pop(key) for key in _SET_TABLES}
    return _PYTHON.format(
        sets=_PYTHON_SETS.format(**sets) if ensemble.has_sets else "",
        test=_PYTHON_SET_TEST if ensemble.has_sets else _PYTHON_TEST,
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
    sets = {key: tables.pop(key) for key in _SET_TABLES}
    return _C.format(
        include="\n#include <stdint.h>" if ensemble.has_sets else "",
        sets=_C_SETS.format(**sets) if ensemble.has_sets else "",
        test=_C_SET_TEST if ensemble.has_sets else _C_TEST,
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
    "value": "d", "set": "l", "ptr": "l", "words": "L",
}  # fmt: skip
_SET_TABLES = ("set", "ptr", "words")


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
        "set": trees.set_of,
        "ptr": trees.sets.ptr,
        "words": trees.sets.words,
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
