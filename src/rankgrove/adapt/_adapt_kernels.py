"""Kernels of adaptation: send the target's rows down one tree, move its thresholds and values.

``order`` lists the target's rows place by place; a place is a node, or (after all nodes) a leaf.
Sums are sums of whole numbers, so they do not depend on the order of the rows.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankgrove.data.binning import MISSING
from rankgrove.growth._kernel_tools import unsigned
from rankgrove.jit import njit
from rankgrove.scoring._walk_kernels import in_set

# Which responses of a tree are mixed: those of leaves, or of all nodes on the way down; or none:
# the target's own responses are computed.
LEAF, LAYER, OBSERVE = 0, 1, 2


class Trees(NamedTuple):
    """The nodes of all trees, and the source's statistics of all places.

    slot : the target's column that a node tests
    set_of, set_ptr, set_words : the sets of categories that nodes test, as in an ensemble
    count, response : source rows of a place, and their response (times the rate of the tree)
    rate : by tree
    """

    node_ptr: np.ndarray
    leaf_ptr: np.ndarray
    slot: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    set_of: np.ndarray
    set_ptr: np.ndarray
    set_words: np.ndarray
    count: np.ndarray
    response: np.ndarray
    rate: np.ndarray


class Nodes(NamedTuple):
    """The nodes of one tree; count : source rows, of nodes and then of leaves."""

    slot: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    set_of: np.ndarray
    set_ptr: np.ndarray
    set_words: np.ndarray
    count: np.ndarray


class Target(NamedTuple):
    """Values and bins of the target's rows: see :class:`~rankgrove.adapt.target.TargetRows`."""

    columns: np.ndarray
    codes: np.ndarray
    code_of: np.ndarray
    tables: np.ndarray
    n_thresholds: np.ndarray


class Mixing(NamedTuple):
    """How trees are adapted: see :class:`~rankgrove.adapt.walking.Rules`.

    tune : whether thresholds are moved
    level : LEAF, LAYER or OBSERVE
    """

    tune: bool
    level: int
    beta: float
    l2: float
    min_leaf: int


class Numbers(NamedTuple):
    """Gradients and hessians of the rows as whole numbers: see :func:`to_whole`.

    unit, unit_h : the values of one unit of `whole` and of `whole_h`
    """

    whole: np.ndarray
    packed: np.ndarray
    whole_h: np.ndarray
    unit: float
    unit_h: float
    shift: int


class Work(NamedTuple):
    """Work arrays.

    order, rights : by row; histogram : by bin
    places : by place, where its rows begin and end in `order`; sums, change, means : by place
    """

    order: np.ndarray
    rights: np.ndarray
    histogram: np.ndarray
    places: np.ndarray
    sums: np.ndarray
    change: np.ndarray
    means: np.ndarray


class Results(NamedTuple):
    """The adapted trees.

    threshold : by node; reached, weight, response : by place: target rows, their hessians, response
    """

    threshold: np.ndarray
    reached: np.ndarray
    weight: np.ndarray
    response: np.ndarray


@njit(cache=True, nogil=True)
def source_share(n_source, n_target, beta):
    """Return p0 = n0 / (n0 + beta * n1) (equation 3); 1 where no target row arrives."""
    if n_target == 0 or beta == 0.0:
        return 1.0
    if math.isinf(beta):
        return 0.0
    return n_source / (n_source + beta * n_target)


@njit(cache=True, nogil=True)
def to_whole(gradient, hessian, scale, scale_h, whole, packed, whole_h, shift):
    """Fill the whole numbers of every row: gradient, hessian, and `packed`, for histograms.

    `packed` is a gradient in units that are 2**shift times as large, above `shift` bits for a
    count, which is 1. `whole_h` is empty where all hessians are equal.
    """
    coarse = scale / 2.0**shift
    for i in range(gradient.size):
        whole[i] = np.int64(np.rint(gradient[i] * scale))
        packed[i] = (np.int64(np.rint(gradient[i] * coarse)) << np.int64(shift)) + 1
    for i in range(whole_h.size):
        whole_h[i] = np.int64(np.rint(hessian[i] * scale_h))


@njit(cache=True, nogil=True)
def largest(values):
    """Return the largest magnitude, NaN where a value is NaN; in four lanes, for speed."""
    a = b = c = d = 0.0
    wrong = 0.0
    n = values.size - values.size % 4
    for i in range(0, n, 4):
        a = max(a, abs(values[i]))
        b = max(b, abs(values[i + 1]))
        c = max(c, abs(values[i + 2]))
        d = max(d, abs(values[i + 3]))
        wrong += 0.0 * (values[i] + values[i + 1] + values[i + 2] + values[i + 3])
    for i in range(n, values.size):
        a = max(a, abs(values[i]))
        wrong += 0.0 * values[i]
    return max(max(a, b), max(c, d)) + wrong


@njit(cache=True, nogil=True)
def least_and_largest(values):
    """Return the least and the largest value, neither below 0; NaN where one is NaN."""
    if values.size == 0:
        return 0.0, 0.0
    least = most = values[0]
    for i in range(values.size):
        if values[i] != least:  # mostly never, or early
            return 0.0, largest(values)
    return least, most


@njit(cache=True, nogil=True)
def divide(column, threshold, missing_left, order, start, end, rights):
    """Move the rows of ``order[start:end]`` that go left to the front; return where they end."""
    k = start
    if missing_left:
        for i in range(start, end):
            row = order[np.uint64(i)]
            order[np.uint64(k)] = row
            rights[np.uint64(i - k)] = row
            k += np.int64(not (column[unsigned(row)] > threshold))
    else:
        for i in range(start, end):
            row = order[np.uint64(i)]
            order[np.uint64(k)] = row
            rights[np.uint64(i - k)] = row
            k += np.int64(column[unsigned(row)] <= threshold)
    for i in range(end - k):
        order[np.uint64(k + i)] = rights[np.uint64(i)]
    return k


@njit(cache=True, nogil=True)
def divide_by_set(column, words, missing_left, order, start, end, rights):
    """Like divide, but the categories that are in the set of some words go left."""
    k = start
    for i in range(start, end):
        row = order[np.uint64(i)]
        x = column[unsigned(row)]
        goes_left = missing_left if np.isnan(x) else in_set(x, words, 0, words.size)
        order[np.uint64(k)] = row
        rights[np.uint64(i - k)] = row
        k += np.int64(goes_left)
    for i in range(end - k):
        order[np.uint64(k + i)] = rights[np.uint64(i)]
    return k


@njit(cache=True, nogil=True)
def best_threshold(target, code, missing_left, numbers, rules, work, start, end, near):
    """Return the threshold of highest gain for the rows ``order[start:end]``, NaN if none gains.

    `code` is the column among those that have bins. The gain is that of squared sums of gradients
    over sums of hessians (for squared error: the decrease of the error). Of equally good
    thresholds, which differ in no row, the one nearest to `near` is taken.
    """
    codes, thresholds, n_thresholds = (
        target.codes[code], target.tables[code], target.n_thresholds[code]
    )  # fmt: skip
    packed, whole_h, shift = numbers.packed, numbers.whole_h, numbers.shift
    unit, unit_h = numbers.unit * 2.0**shift, numbers.unit_h
    l2, min_leaf, order, histogram = rules.l2, rules.min_leaf, work.order, work.histogram
    histogram[: n_thresholds + 1] = 0
    histogram[MISSING] = 0
    has_h = whole_h.size > 0
    if has_h:
        for i in range(start, end):
            row = unsigned(order[np.uint64(i)])
            bin = np.uint64(codes[row])
            histogram[bin, 0] += packed[row]
            histogram[bin, 1] += whole_h[row]
    else:
        for i in range(start, end):
            row = unsigned(order[np.uint64(i)])
            histogram[np.uint64(codes[row]), 0] += packed[row]
    ones = (np.int64(1) << np.int64(shift)) - 1
    all_g, all_h = histogram[MISSING, 0], histogram[MISSING, 1]
    g, h = (all_g, all_h) if missing_left else (np.int64(0), np.int64(0))
    for b in range(n_thresholds + 1):
        if b != MISSING:
            all_g += histogram[b, 0]
            all_h += histogram[b, 1]
    n_all = all_g & ones
    least = _worth(all_g, all_h if has_h else n_all, unit, unit_h, shift, l2)
    found = np.nan
    for b in range(n_thresholds):
        if b == MISSING:
            break
        g += histogram[b, 0]
        h += histogram[b, 1]
        n = g & ones
        if n < min_leaf or n_all - n < min_leaf:
            continue
        value = _worth(g, h if has_h else n, unit, unit_h, shift, l2) + _worth(
            all_g - g, all_h - h if has_h else n_all - n, unit, unit_h, shift, l2
        )
        nearer = value == least and abs(thresholds[b] - near) < abs(found - near)
        if value > least or nearer:
            least = value
            found = np.float64(thresholds[b])
    return found


@njit(cache=True, nogil=True)
def _worth(packed, whole_h, unit, unit_h, shift, l2):
    """Return the square of a side's sum of gradients over that of its hessians."""
    g = (packed >> np.int64(shift)) * unit
    h = whole_h * unit_h + l2
    return g * g / h if h > 0.0 else 0.0


@njit(cache=True, nogil=True)
def send_down(tree, target, rules, numbers, work, moved):
    """Send all target rows down a tree, moving its thresholds on the way (Algorithm 2).

    Sets of categories are kept as they are.

    work : out, order and places
    moved : out, the adapted thresholds
    """
    slot, threshold, left, right, missing_left, set_of, set_ptr, set_words, count = tree
    columns, code_of, min_leaf = target.columns, target.code_of, rules.min_leaf
    order, rights, places = work.order, work.rights, work.places
    n_nodes = slot.size
    for i in range(order.size):
        order[i] = i
    places[0, 0] = 0
    places[0, 1] = order.size
    for node in range(n_nodes):
        start, end = places[node, 0], places[node, 1]
        at = slot[node]
        moved[node] = threshold[node]
        s = set_of[node]
        code = code_of[at] if s < 0 else -1
        enough = end - start >= 2 * min_leaf
        if rules.tune and code >= 0 and enough and np.isfinite(threshold[node]):
            p0 = source_share(count[node], end - start, rules.beta)
            if p0 < 1.0:
                v0 = np.float64(threshold[node])
                v1 = best_threshold(
                    target, code, missing_left[node], numbers, rules, work, start, end, v0
                )
                if np.isfinite(v1):
                    moved[node] = np.float32(p0 * v0 + (1.0 - p0) * v1)
        if s < 0:
            k = divide(columns[at], moved[node], missing_left[node], order, start, end, rights)
        else:
            words = set_words[set_ptr[s] : set_ptr[s + 1]]
            k = divide_by_set(columns[at], words, missing_left[node], order, start, end, rights)
        for side in range(2):
            child = right[node] if side else left[node]
            place = child if child >= 0 else n_nodes + ~child
            places[place, 0] = k if side else start
            places[place, 1] = end if side else k


@njit(cache=True, nogil=True)
def add_up(n_nodes, left, right, order, places, whole, whole_h, sums):
    """Fill the whole sums of gradient and hessian (or the counts) of every node and leaf."""
    for leaf in range(n_nodes, places.shape[0]):
        g = np.int64(0)
        h = np.int64(0)
        for i in range(places[leaf, 0], places[leaf, 1]):
            g += whole[unsigned(order[np.uint64(i)])]
        if whole_h.size:
            for i in range(places[leaf, 0], places[leaf, 1]):
                h += whole_h[unsigned(order[np.uint64(i)])]
        else:
            h = places[leaf, 1] - places[leaf, 0]
        sums[leaf, 0] = g
        sums[leaf, 1] = h
    for node in range(n_nodes - 1, -1, -1):
        a = left[node] if left[node] >= 0 else n_nodes + ~left[node]
        b = right[node] if right[node] >= 0 else n_nodes + ~right[node]
        sums[node, 0] = sums[a, 0] + sums[b, 0]
        sums[node, 1] = sums[a, 1] + sums[b, 1]


@njit(cache=True, nogil=True)
def mix_leaves(count, reached, beta, response, target, out):
    """Fill `out` with p0 R0 + (1 - p0) R1 of every node and leaf (equation 2)."""
    for place in range(response.size):
        p0 = source_share(count[place], reached[place], beta)
        out[place] = response[place]
        if p0 < 1.0:
            out[place] = p0 * response[place] + (1.0 - p0) * target[place]


@njit(cache=True, nogil=True)
def mix_layers(left, right, count, reached, beta, response, target, change, out):
    """Fill `out` with the sum over the way down of p0 r0 + (1 - p0) r1 (equation 4).

    r is the response minus the parent's. The difference between the sum and R0 is computed, so that
    nothing is rounded where p0 is 1.
    """
    n_nodes = left.size
    p0 = source_share(count[0], reached[0], beta)
    change[0] = (1.0 - p0) * (target[0] - response[0]) if p0 < 1.0 else 0.0
    for node in range(n_nodes):
        for side in range(2):
            child = right[node] if side else left[node]
            place = child if child >= 0 else n_nodes + ~child
            p0 = source_share(count[place], reached[place], beta)
            change[place] = change[node]
            if p0 < 1.0:
                r0 = response[place] - response[node]
                r1 = target[place] - target[node]
                change[place] += (1.0 - p0) * (r1 - r0)
    for place in range(response.size):
        out[place] = response[place] + change[place]


@njit(cache=True, nogil=True)
def add_to_scores(n_nodes, order, places, values, scores):
    """Add the leaves' values to the scores of their rows."""
    for leaf in range(n_nodes, places.shape[0]):
        value = values[leaf]
        for i in range(places[leaf, 0], places[leaf, 1]):
            scores[unsigned(order[np.uint64(i)])] += value


@njit(cache=True, nogil=True)
def adapt_tree(t, trees, target, rules, numbers, work, results, scores):
    """Adapt tree `t`, and add its new values to the scores of the target's rows.

    work : scratch; results : out, of this tree; scores : inout
    """
    a, b = trees.node_ptr[t], trees.node_ptr[t + 1]
    n_nodes = b - a
    first, last = a + trees.leaf_ptr[t], b + trees.leaf_ptr[t + 1]
    left, right = trees.left[a:b], trees.right[a:b]
    count, response, rate = trees.count[first:last], trees.response[first:last], trees.rate[t]
    tree = Nodes(
        trees.slot[a:b], trees.threshold[a:b], left, right, trees.missing_left[a:b],
        trees.set_of[a:b], trees.set_ptr, trees.set_words, count,
    )  # fmt: skip
    n_places = last - first
    order, places, sums = work.order, work.places[:n_places], work.sums[:n_places]
    means, change = work.means[:n_places], work.change[:n_places]
    reached, weight = results.reached[first:last], results.weight[first:last]
    out = results.response[first:last]
    send_down(tree, target, rules, numbers, work, results.threshold[a:b])
    add_up(n_nodes, left, right, order, places, numbers.whole, numbers.whole_h, sums)
    for place in range(n_places):
        reached[place] = places[place, 1] - places[place, 0]
        weight[place] = sums[place, 1] * numbers.unit_h
        h = sums[place, 1] * numbers.unit_h + rules.l2
        means[place] = rate * (sums[place, 0] * numbers.unit / h) if h > 0.0 else 0.0
    if rules.level == OBSERVE:
        out[:] = means
        add_to_scores(n_nodes, order, places, response, scores)
        return
    if rules.level == LEAF:
        mix_leaves(count, reached, rules.beta, response, means, out)
    else:
        mix_layers(left, right, count, reached, rules.beta, response, means, change, out)
    add_to_scores(n_nodes, order, places, out, scores)
