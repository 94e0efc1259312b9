"""The best set of categories of a leaf, as its definition says (growth/_category_kernels.py)."""

from __future__ import annotations

from math import inf, pi, sqrt
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()


def gain_of_noise(extreme: list[float], others: list[float], hessian: float) -> float:
    """The expected gain of sorted categories without effect, for a noise of variance 1.

    In: the hessians of the categories in the set, of the categories that are not, and of the leaf.
    """
    roots = sum(map(sqrt, extreme + others))
    share = sum(map(sqrt, extreme)) / roots
    density = NORMAL.pdf(NORMAL.inv_cdf(share)) if 0 < share < 1 else 0.0
    left = sum(extreme)
    expected = (roots * density) ** 2 * hessian / (left * (hessian - left))
    return max(expected - 4 / pi, 0.0)


def best_set(
    codes: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    *,
    smoothing: float = 0.0,
    penalty: float = 0.0,
    noise: float = 0.0,
    min_rows: int = 1,
    bounds: tuple[float, float] = (-inf, inf),
) -> tuple[float, set[int]]:
    """Return the gain of the best set and its categories; codes may be missing (NaN)."""

    def value(rows: np.ndarray) -> float:
        g, h = gradient[rows].sum(), hessian[rows].sum()
        v = min(max(g / h, bounds[0]), bounds[1])
        return float(v * (2 * g - h * v))

    def rows_of(chosen: list[int]) -> np.ndarray:
        return np.isin(codes, chosen)

    shrunk = smoothing * hessian.mean()
    mean = gradient.sum() / hessian.sum()
    known = [int(c) for c in np.unique(codes[~np.isnan(codes)])]
    known = [c for c in known if rows_of([c]).sum() >= min_rows]

    def ratio(c: int) -> float:
        rows = rows_of([c])
        return float((gradient[rows].sum() + mean * shrunk) / (hessian[rows].sum() + shrunk))

    known.sort(key=ratio)
    weight = {c: float(hessian[rows_of([c])].sum()) for c in known}
    whole, best, chosen = value(np.ones(codes.size, bool)), 0.0, set[int]()
    for order in (known, known[::-1]):
        for size in range(1, len(order) + 1):
            left = rows_of(order[:size])
            if left.all():
                continue
            parts = [[weight[c] for c in part] for part in (order[:size], order[size:])]
            gain = value(left) + value(~left) - whole
            gain -= penalty * noise * gain_of_noise(*parts, float(hessian.sum()))
            if gain > best:
                best, chosen = gain, set(order[:size])
    return best, chosen
