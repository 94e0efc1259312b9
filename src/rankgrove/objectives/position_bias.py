"""What positions do to clicks, learned round by round or given, with a number per cell.

A cell is a context and a position (see :mod:`rankgrove.data.positions`). A bias has a state, an
array of numbers, which changes after every round by the sums of the round over cells. The states
of all rounds are kept: a run that is resumed from a checkpoint continues with them, and the model
keeps that of its last round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankgrove.data.positions import Positions
from rankgrove.errors import DataError

MOST_CELLS = 1 << 20
_UNITS = (64, 32, 0)  # the sums' three whole numbers are in units of 2^-64 shifted by these


@dataclass(frozen=True)
class Cells:
    """The cells of the training data.

    Attributes
    ----------
    contexts : names of contexts
    n_positions : number of positions; those below the last one are counted as the last
    shown, clicked : int64, numbers of impressions and of clicks, one per cell
    """

    contexts: tuple[str, ...]
    n_positions: int
    shown: np.ndarray
    clicked: np.ndarray

    @classmethod
    def of(
        cls,
        positions: Positions,
        clicked: np.ndarray,
        n_positions: int | None = None,
        contexts: tuple[str, ...] | None = None,
    ) -> Cells:
        """Return the cells of data; `clicked` is a mask of the rows, in the same order.

        `contexts` are those of all data, where this is a part of it.
        """
        contexts = positions.names if contexts is None else contexts
        n = n_positions or positions.highest
        if len(contexts) * n > MOST_CELLS:
            raise DataError(
                f"{len(contexts):,} contexts with {n:,} positions each are too many to learn "
                f"from: set n_positions to at most {MOST_CELLS // len(contexts):,}."
            )
        empty = np.zeros(0, np.int64)
        cell = cls(contexts, n, empty, empty).of_rows(positions)
        size = len(contexts) * n
        return cls(
            contexts,
            n,
            np.bincount(cell, minlength=size),
            np.bincount(cell[clicked], minlength=size),
        )

    def of_rows(self, positions: Positions) -> np.ndarray:
        """Return the cell of every row; -1 where the context is not known."""
        pooled = np.minimum(positions.place, np.uint16(self.n_positions))
        return replace(positions, place=pooled).cells(self.contexts, self.n_positions)

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.contexts) * self.n_positions

    @property
    def first(self) -> np.ndarray:
        """The first cell with impressions of every context, for every cell."""
        shown = self.shown.reshape(len(self.contexts), self.n_positions) > 0
        starts = np.arange(len(self.contexts)) * self.n_positions
        return np.repeat(starts + shown.argmax(axis=1), self.n_positions)

    def table(self, values: np.ndarray) -> np.ndarray:
        """Return one number per cell as an array of contexts and positions."""
        return values.reshape(len(self.contexts), self.n_positions)


@dataclass(frozen=True)
class PositionTable:
    """What a model has learned about positions.

    Attributes
    ----------
    method : the method, as the ranker's `position_bias`
    contexts : names of contexts; one empty name where there was no context
    shown : impressions in the training data, of shape (contexts, positions)
    values : arrays of the same shape by name. ``"bias"``: what is added to scores, 0 at the first
        position (additive, two_tower); ``"clicked"`` and ``"skipped"``: Hu's ratios t+ and t-;
        ``"propensity"``: examination relative to the most examined position (ips); ``"alpha"`` and
        ``"beta"``: the click probability of a relevant document less that of another one, and that
        of the other one (affine)
    """

    method: str
    contexts: tuple[str, ...]
    shown: np.ndarray
    values: Mapping[str, np.ndarray]

    def lines(self, most: int = 10) -> list[str]:
        """Return the table as lines of text: the first positions of every context."""
        lines = []
        for c, context in enumerate(self.contexts):
            for name, values in self.values.items():
                there = values[c][:most]
                text = " ".join(f"{value:.2f}" for value in there.tolist())
                more = " ..." if values.shape[1] > most else ""
                of = f" ({context})" if context else ""
                lines.append(f"{self.method} position bias, {name}{of}: {text}{more}")
        return lines


class PositionBias:
    """A bias that does not change; base of those that do.

    Parameters
    ----------
    cells : of the training data
    start : the state before the first round

    Attributes
    ----------
    states : the state after every round
    """

    method: ClassVar[str]
    moves: ClassVar[bool] = False  # whether the state changes

    def __init__(self, cells: Cells, start: np.ndarray) -> None:
        self.cells = cells
        self.start = start
        self.states: list[np.ndarray] = []

    @property
    def state(self) -> np.ndarray:
        """The state now."""
        return self.states[-1] if self.states else self.start

    def room(self) -> np.ndarray:
        """Return what a net keeps of the bias between updates: the state before the first one."""
        return self.start.copy()

    def advance(self, sums: np.ndarray | None) -> None:
        """Append the state that follows from the exact sums of a round."""
        if self.moves:
            assert sums is not None
            self.states.append(self._next(self.state, exact_values(sums)))

    def resume(self, states: np.ndarray | Sequence[np.ndarray]) -> None:
        """Continue from the states of the rounds of a checkpoint."""
        self.states = list(states)

    def learned(self, n_rounds: int) -> PositionTable:
        """Return the table of a model of this many rounds."""
        never = n_rounds == 0 or not self.states
        return self.described(self.start if never else self.states[n_rounds - 1])

    def described(self, state: np.ndarray) -> PositionTable:
        """Return the table of a state."""
        values = {name: self.cells.table(v) for name, v in self._values(state).items()}
        shown = self.cells.table(self.cells.shown)
        return PositionTable(self.method, self.cells.contexts, shown, values)

    def _next(self, state: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return the next state from the sums of a round, of shape (2, cells)."""
        raise NotImplementedError

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        """Return the numbers of cells that users see, by name."""
        raise NotImplementedError

    def offsets(self) -> np.ndarray:
        """Return what positions add to scores, one number per cell."""
        raise NotImplementedError


class AdditiveBias(PositionBias):
    """A number per cell that is added to the score, as in a generalised additive model.

    After every round it takes a Newton step: its sum of gradients over its sum of second
    derivatives, both with the penalty l2 / 2 times its square.

    Parameters
    ----------
    rate : factor of the step
    l2 : the penalty, as that of leaves
    by_difference : whether the loss depends on differences of scores within queries only. Then
        the number of the first cell is subtracted from all; otherwise that cell stays at 0
    """

    method = "additive"
    moves = True

    def __init__(self, cells: Cells, rate: float, l2: float, by_difference: bool) -> None:
        super().__init__(cells, np.zeros(cells.size))
        self.rate = rate
        self.l2 = l2
        self.by_difference = by_difference
        self._anchor = int(np.argmax(cells.shown > 0))

    def _next(self, state: np.ndarray, sums: np.ndarray) -> np.ndarray:
        gradient, hessian = sums
        curvature = hessian + self.l2
        step = np.zeros(state.size)
        np.divide(gradient - self.l2 * state, curvature, out=step, where=curvature > 0.0)
        state = state + self.rate * step
        if self.by_difference:
            return state - state[self._anchor]
        state[self._anchor] = 0.0
        return state

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        return {"bias": state - state[self.cells.first]}

    def offsets(self) -> np.ndarray:
        """Return what positions add to scores, one number per cell."""
        return self.state


class TowerBias(PositionBias):
    """A number per cell that is added to the score, which a net learns with its weights.

    The net's loop appends the states, one per epoch; the first cell stays at 0.
    """

    method = "two_tower"
    moves = True

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells, np.zeros(cells.size))
        self.anchor = int(np.argmax(cells.shown > 0))

    def room(self) -> np.ndarray:
        """Return the state before the first update, and after it the optimiser's state."""
        return np.concatenate([self.start, np.zeros(2 * self.start.size), np.ones(2)])

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        return {"bias": state - state[self.cells.first]}

    def offsets(self) -> np.ndarray:
        """Return what positions add to scores, one number per cell."""
        return self.state


class RatioBias(PositionBias):
    """Hu's ratios: t+ of clicked documents and t- of others, relative to the first position.

    Hu and others (2019): the loss of a pair is divided by t+ of the clicked document's position
    and t- of the other one's. After every round t+ is the sum of losses over t-, and t- that over
    t+, both per impression and relative to the first position, to the power of 1 / (norm + 1).

    Parameters
    ----------
    norm : the p of the exponent: 0 no regularisation; the higher, the closer ratios are to 1
    most : ratios are between 1 / most and most
    """

    method = "ratios"
    moves = True

    def __init__(self, cells: Cells, norm: float, most: float) -> None:
        super().__init__(cells, np.ones(2 * cells.size))
        self.norm = norm
        self.most = most

    def _next(self, state: np.ndarray, sums: np.ndarray) -> np.ndarray:
        shown = self.cells.shown
        ratios = np.ones((2, self.cells.size))
        for row, total in enumerate(sums):
            loss = np.divide(total, shown, out=np.zeros(shown.size), where=shown > 0)
            first = loss[self._reference(loss)]
            there = (shown > 0) & (first > 0.0)
            share = np.divide(loss, first, out=np.ones(shown.size), where=there)
            ratios[row] = np.clip(share ** (1.0 / (self.norm + 1.0)), 1.0 / self.most, self.most)
        return ratios.reshape(-1)

    def _reference(self, loss: np.ndarray) -> np.ndarray:
        """Return the first cell of every context that has losses, for every cell."""
        of_context = self.cells.table(loss) > 0.0
        starts = np.arange(len(of_context)) * self.cells.n_positions
        return np.repeat(starts + of_context.argmax(axis=1), self.cells.n_positions)

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        clicked, skipped = state.reshape(2, -1)
        return {"clicked": clicked, "skipped": skipped}

    def table(self) -> np.ndarray:
        """Return the weights of clicked and other documents, for the kernels."""
        clicked, skipped = 1.0 / self.state.reshape(2, -1)
        none = np.zeros(clicked.size)
        return np.column_stack([none, clicked, skipped, none])

    def corrected(self, clicked: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """Return clicks over the ratios of their cells, of mean 1 over the training clicks."""
        inverse = 1.0 / self.state[: self.cells.size]
        total = float(np.sum(self.cells.clicked * inverse))
        return np.asarray(inverse[cell] * (clicked * (self.cells.clicked.sum() / total)))


class Propensities(PositionBias):
    """Inverse propensity weights of clicks: clipped, and of mean 1 over the training clicks.

    Parameters
    ----------
    propensity : of every cell
    most : highest weight, relative to a click at the most examined position
    """

    method = "ips"

    def __init__(self, cells: Cells, propensity: np.ndarray, most: float) -> None:
        used = propensity[cells.shown > 0]
        super().__init__(cells, propensity / used.max(initial=0.0))
        inverse = np.minimum(1.0 / np.maximum(self.start, 1.0 / most), most)
        total = float(np.sum(cells.clicked * inverse))
        self.weight = inverse * (cells.clicked.sum() / total if total > 0.0 else 1.0)

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        return {"propensity": state}

    def table(self) -> np.ndarray:
        """Return the weights of clicked and other documents, for the kernels."""
        none = np.zeros(self.weight.size)
        return np.column_stack([none, self.weight, none + 1.0, none])

    def corrected(self, clicked: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """Return unbiased labels of rows."""
        return np.asarray(self.weight[cell] * clicked)


class AffineBias(PositionBias):
    """Trust bias: P(click) = alpha * relevance + beta, so (click - beta) / alpha is unbiased.

    Corrected clicks have mean 1 over the training clicks.

    Parameters
    ----------
    alpha, beta : of every cell
    most : alphas are raised to the highest one over this
    """

    method = "affine"

    def __init__(self, cells: Cells, alpha: np.ndarray, beta: np.ndarray, most: float) -> None:
        super().__init__(cells, np.concatenate([alpha, beta]))
        slope = np.maximum(alpha, alpha[cells.shown > 0].max(initial=0.0) / most)
        self.without, self.with_click = -beta / slope, (1.0 - beta) / slope
        total = float(np.sum(cells.clicked * self.with_click))
        scale = cells.clicked.sum() / total if total > 0.0 else 1.0
        self.without, self.with_click = scale * self.without, scale * self.with_click

    def _values(self, state: np.ndarray) -> dict[str, np.ndarray]:
        alpha, beta = state.reshape(2, -1)
        return {"alpha": alpha, "beta": beta}

    def table(self) -> np.ndarray:
        """Return the weights of clicked and other documents, for the kernels."""
        one = np.ones(self.without.size)
        return np.column_stack([self.without, self.with_click, one, one])

    def corrected(self, clicked: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """Return unbiased labels of rows."""
        return np.where(clicked > 0, self.with_click[cell], self.without[cell])


def exact_values(sums: np.ndarray) -> np.ndarray:
    """Return exact sums as numbers, each rounded once."""
    shape = sums.shape[:-1]
    values: Sequence[float] = [
        sum(int(part) << shift for part, shift in zip(limbs, _UNITS, strict=True)) / (1 << 64)
        for limbs in sums.reshape(-1, len(_UNITS)).tolist()
    ]
    return np.array(values).reshape(shape)
