"""The working set: constraints found so far, their Gram matrix and their multipliers."""

from __future__ import annotations

import numpy as np

from rankgrove.svm.simplex_qp import QPSolution, solve_qp


class WorkingSet:
    """Constraints w . g_k >= D_k - slack of its group, and the dual variables a_k of them.

    Parameters
    ----------
    n_weights : length of w
    shares : one per group; its variables add up to at most C * share. One group for the joint
        constraints of the 1-slack form, one per example for the n-slack form

    Attributes
    ----------
    w : sum of a_k g_k
    value : the dual objective a . D - |w|^2 / 2, a lower bound on the optimum of the problem
    n_added : number of constraints ever added
    """

    def __init__(self, n_weights: int, shares: np.ndarray) -> None:
        self._shares = shares
        self._n = 0
        self._g = np.empty((0, n_weights))
        self._gram = np.empty((0, 0))
        self._loss = np.empty(0)
        self._a = np.empty(0)
        self._group = np.empty(0, np.int64)
        self._idle = np.empty(0, np.int64)
        self.w = np.zeros(n_weights)
        self.value = 0.0
        self.n_added = 0

    def __len__(self) -> int:
        return self._n

    def megabytes_with_one_more(self) -> float:
        """Return the memory that the set needs with one more constraint."""
        most = self._capacity_for(self._n + 1)
        return 8.0 * most * (self._g.shape[1] + most) / 1e6

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """Return the least slack that the constraints of every group allow at `w`."""
        slacks = np.zeros(self._shares.size)
        np.maximum.at(slacks, self._group[: self._n], self._loss[: self._n] - self._times(w))
        return slacks

    def slack(self, w: np.ndarray, group: int) -> float:
        """Return the least slack of one group."""
        members = np.flatnonzero(self._group[: self._n] == group)
        if not members.size:
            return 0.0
        from rankgrove.svm._qp_kernels import products

        dots = np.empty(members.size)
        products(self._g[members], w, dots)
        return max(0.0, float((self._loss[members] - dots).max()))

    def add(self, loss: float, gradient: np.ndarray, group: int) -> None:
        """Add a constraint."""
        n = self._n
        self._grow(self._capacity_for(n + 1))
        self._g[n] = gradient
        self._n = n + 1
        row = self._times(gradient)
        self._gram[n, : n + 1] = row
        self._gram[: n + 1, n] = row
        self._loss[n], self._a[n] = loss, 0.0
        self._group[n], self._idle[n] = group, 0
        self.n_added += 1

    def solve(self, C: float, tolerance: float) -> QPSolution:
        """Solve the QP for `C` to a gap of `tolerance`, starting from the last solution."""
        from rankgrove.svm._qp_kernels import combination, dot

        n = self._n
        solution = solve_qp(
            self._gram,
            self._loss[:n],
            C * self._shares,
            group=self._group[:n],
            start=self._a[:n],
            tolerance=tolerance,
        )
        self._a[:n] = solution.a
        self._idle[:n] = np.where(solution.a > 0.0, 0, self._idle[:n] + 1)
        self.w = np.empty(self._g.shape[1])
        combination(self._g[:n], solution.a, self.w)
        # Computed from w, not from the Gram matrix: a valid bound despite its rounding errors.
        self.value = float(dot(solution.a, self._loss[:n]) - 0.5 * dot(self.w, self.w))
        return solution

    def rescale(self, factor: float) -> None:
        """Multiply the variables, as a start for another C."""
        self._a[: self._n] *= factor

    def drop(self, patience: int) -> None:
        """Remove constraints whose variable stayed 0 in the last `patience` solves."""
        kept = np.flatnonzero(self._idle[: self._n] < patience)
        if kept.size == self._n:
            return
        n = kept.size
        self._g[:n] = self._g[kept]
        self._gram[:n, :n] = self._gram[np.ix_(kept, kept)]
        for array in (self._loss, self._a, self._group, self._idle):
            array[:n] = array[kept]
        self._n = n

    def _times(self, x: np.ndarray) -> np.ndarray:
        from rankgrove.svm._qp_kernels import products

        out = np.empty(self._n)
        products(self._g[: self._n], x, out)
        return out

    def _capacity_for(self, n: int) -> int:
        size = self._loss.size
        return size if n <= size else max(16, size + size // 2, n)

    def _grow(self, capacity: int) -> None:
        n = self._n
        if capacity == self._loss.size:
            return
        for name in ("_g", "_loss", "_a", "_group", "_idle"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:n] = old[:n]
            setattr(self, name, new)
        gram = np.empty((capacity, capacity))
        gram[:n, :n] = self._gram[:n, :n]
        self._gram = gram
