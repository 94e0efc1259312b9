"""Kernels of adaptation: the target's rows go down one tree, its thresholds and values move.

``order`` lists the target's rows place by place; a place is a node, or (after all nodes) a leaf.
Sums are of whole numbers, so that they do not depend on the order of the rows.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np
from numba import njit

from rankgrove.data.binning import MISSING
from rankgrove.growth._kernel_tools import unsigned

# What of a tree is mixed: responses of leaves, or of every node on the way; or nothing, and the
# target's own responses are found.
LEAF, LAYER, OBSERVE = 0, 1, 2


@njit(cache=True, nogil=True)
def source_share(n_source, n_target, beta):
    """Return p0 = n0 / (n0 + beta * n1) (equation 3); 1 where no target row arrives."""
    if n_target == 0 or beta == 0.0:
        return 1.0
    if math.isinf(beta):
        return 0.0
    return n_source / (n_source + beta * n_target)


@njit(cache=True, nogil=True)
def to_whole(gradient, hessian, scale, scale_h, shift, whole, packed, whole_h):
    """Fill whole numbers of every row: gradient, hessian, and what histograms take.

    That is a gradient coarser by `shift` bits, above so many bits for a count, which is 1.
    `whole_h` is empty where all hessians are the same.
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
        if values[i] != least:  # rarely anything is, or soon
            return 0.0, largest(values)
    return least, most


@njit(cache=True, nogil=True)
def divide(column, threshold, missing_left, order, start, end, rights):
    """Put the rows of ``order[start:end]`` that go left before the others; return the border."""
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
def best_threshold(
    codes, thresholds, n_thresholds, missing_left, packed, whole_h, order, start, end,
    unit, unit_h, shift, l2, min_leaf, near, histogram,
):  # fmt: skip
    """Return the threshold of most gain for the rows ``order[start:end]``, NaN where none gains.

    The gain is that of the sums' squares over the hessians' (of squared error: the square error
    saved). Of equally good thresholds, which differ in no row, the one nearest to `near` is taken.
    """
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
def send_down(
    tree, target, tune, beta, unit, unit_h, shift, l2, min_leaf, packed, whole_h,
    order, rights, histogram, places, moved,
):  # fmt: skip
    """Send all target rows down a tree, moving its thresholds on the way (Algorithm 2).

    Parameters
    ----------
    tree : (slot, threshold, left, right, missing_left, count), of one tree; slot: which of the
        target's columns a node looks at; count: source rows, of nodes and then of leaves
    target : (columns, codes, code_of, tables, n_thresholds): values and bins column by column
    tune : whether thresholds are moved
    places : filled; where the rows of every node and then of every leaf stand in `order`
    moved : filled; the thresholds as they are now
    """
    slot, threshold, left, right, missing_left, count = tree
    columns, codes, code_of, tables, n_thresholds = target
    n_nodes = slot.size
    for i in range(order.size):
        order[i] = i
    places[0, 0] = 0
    places[0, 1] = order.size
    for node in range(n_nodes):
        start, end = places[node, 0], places[node, 1]
        at = slot[node]
        moved[node] = threshold[node]
        code = code_of[at]
        if tune and code >= 0 and end - start >= 2 * min_leaf and np.isfinite(threshold[node]):
            p0 = source_share(count[node], end - start, beta)
            if p0 < 1.0:
                v0 = np.float64(threshold[node])
                v1 = best_threshold(
                    codes[code], tables[code], n_thresholds[code], missing_left[node],
                    packed, whole_h, order, start, end, unit, unit_h, shift, l2, min_leaf, v0,
                    histogram,
                )  # fmt: skip
                if np.isfinite(v1):
                    moved[node] = np.float32(p0 * v0 + (1.0 - p0) * v1)
        k = divide(columns[at], moved[node], missing_left[node], order, start, end, rights)
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

    r is the response less the parent's. What the sum adds to R0 is computed, so that nothing is
    rounded where p0 is 1.
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
def adapt_tree(
    t, pointers, trees, source, target, tune, level, beta, units, l2, min_leaf,
    numbers, work, adapted, scores,
):  # fmt: skip
    """Adapt tree `t`, and add its new values to the scores of the target's rows.

    Parameters
    ----------
    pointers : (node_ptr, leaf_ptr) of the ensemble
    trees : (slot, threshold, left, right, missing_left) of all nodes
    source : (count, response, rate): rows and responses of all places, times the rate of the tree
    target : see :func:`send_down`
    units : (unit, unit_h, shift): what whole numbers are worth
    numbers : (whole, packed, whole_h): see :func:`to_whole`
    work : (order, rights, histogram, places, sums, change, means)
    adapted : (threshold, reached, weight, response), filled: of nodes; of places
    """
    node_ptr, leaf_ptr = pointers
    slot, threshold, left, right, missing_left = trees
    count, response, rate = source
    unit, unit_h, shift = units
    whole, packed, whole_h = numbers
    order, rights, histogram, all_places, all_sums, all_change, all_means = work
    moved, reached, weight, out = adapted
    a, b = node_ptr[t], node_ptr[t + 1]
    n_nodes = b - a
    first, last = a + leaf_ptr[t], b + leaf_ptr[t + 1]
    n_places = last - first
    places, sums = all_places[:n_places], all_sums[:n_places]
    means, change = all_means[:n_places], all_change[:n_places]
    tree = (
        slot[a:b], threshold[a:b], left[a:b], right[a:b], missing_left[a:b], count[first:last]
    )  # fmt: skip
    send_down(
        tree, target, tune, beta, unit * 2.0**shift, unit_h, shift, l2, min_leaf, packed, whole_h,
        order, rights, histogram, places, moved[a:b],
    )  # fmt: skip
    add_up(n_nodes, left[a:b], right[a:b], order, places, whole, whole_h, sums)
    for place in range(n_places):
        reached[first + place] = places[place, 1] - places[place, 0]
        weight[first + place] = sums[place, 1] * unit_h
        h = sums[place, 1] * unit_h + l2
        means[place] = rate[t] * (sums[place, 0] * unit / h) if h > 0.0 else 0.0
    if level == OBSERVE:
        out[first:last] = means
        add_to_scores(n_nodes, order, places, response[first:last], scores)
        return
    if level == LEAF:
        mix_leaves(
            count[first:last], reached[first:last], beta, response[first:last], means,
            out[first:last],
        )  # fmt: skip
    else:
        mix_layers(
            left[a:b], right[a:b], count[first:last], reached[first:last], beta,
            response[first:last], means, change, out[first:last],
        )  # fmt: skip
    add_to_scores(n_nodes, order, places, out[first:last], scores)
