# mypy: ignore-errors
"""RankNet's cost of one pair, and the gradients of many (overview paper, section 2)."""

from __future__ import annotations

import math

from rankgrove.jit import njit


@njit(cache=True, nogil=True, error_model="numpy")
def preference(sigma, difference, probability, weight):
    """Return the lambda of a pair, upwards for its first document, and its curvature.

    With P = 1 / (1 + exp(-sigma (s_i - s_j))) and the target probability Pbar, the cost is
    C = -Pbar log P - (1 - Pbar) log(1 - P); -dC/ds_i = sigma (Pbar - P) = dC/ds_j (equation 1),
    and the second derivative is sigma^2 P (1 - P). P and 1 - P are both made of exp(-|x|), which
    cannot overflow, so that neither loses its digits where it is small.
    """
    x = math.exp(-abs(sigma * difference))
    less = x / (1.0 + x)
    more = 1.0 / (1.0 + x)
    p, rest = (more, less) if difference > 0.0 else (less, more)
    up = probability * rest - (1.0 - probability) * p
    return weight * sigma * up, weight * sigma * sigma * (p * rest)


@njit(cache=True, nogil=True)
def preference_rows(
    sigma, rows, neighbour_ptr, neighbour, probability, weight, scores, gradient, hessian
):  # fmt: skip
    """Fill gradient and hessian of `rows`: the sums over the pairs that a row is part of.

    neighbour_ptr : in, the borders of every row's pairs
    neighbour, probability, weight : in, the other row of a pair, the probability that this one is
        preferred to it, and what the pair counts
    """
    for k in range(rows.size):
        i = rows[k]
        up, curve = 0.0, 0.0
        for at in range(neighbour_ptr[i], neighbour_ptr[i + 1]):
            difference = scores[i] - scores[neighbour[at]]
            one, bend = preference(sigma, difference, probability[at], weight[at])
            up += one
            curve += bend
        gradient[i] = up
        hessian[i] = curve
