"""What tuning found: the trials, the best of them, and how far the choice overfits."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.experiments.spaces import Parameters
from rankgrove.files import write_atomically
from rankgrove.measures.base import exact_mean
from rankgrove.showing import html_table
from rankgrove.validation import check_integer, counted

PARTS = ("valid", "out_of_bag", "second", "test")


@dataclass(frozen=True, eq=False)
class Trial:
    """One combination of parameters.

    Attributes
    ----------
    parameters : what was tried
    values : part of the data ("valid", "out_of_bag", "second", "test") -> measure -> one mean a
        fold and seed
    trees : of the models, one a fold and seed; None where they are not trees
    """

    parameters: Parameters
    values: dict[str, dict[str, list[float]]]
    trees: list[int] | None

    def mean(self, part: str, measure: str) -> float:
        """Return the mean over folds and seeds."""
        return exact_mean(np.array(self.values[part][measure]))


@dataclass(frozen=True, eq=False)
class Tuning:
    """What :func:`tune` found.

    Attributes
    ----------
    trials : in the order they were tried
    measure : what decides
    n_folds, n_seeds : fits of every trial
    choose_by : where it decides: ``"valid"``, or ``"out_of_bag"``
    """

    trials: list[Trial]
    measure: str
    n_folds: int
    n_seeds: int
    choose_by: str = "valid"

    def __repr__(self) -> str:
        best = self.best
        return (
            f"Tuning({counted(len(self.trials), 'trial')}, {counted(self.n_folds, 'fold')}, "
            f"{counted(self.n_seeds, 'seed')}; best {self.choose_by} {self.measure} "
            f"{self._worth(best):.4f}: {best.parameters})"
        )

    def _check_part(self, part: str, owner: str) -> None:
        if part not in self.trials[0].values:
            known = ", ".join(map(repr, self.trials[0].values))
            raise DataError(f"{owner}: the trials have no {part!r} data, only {known}.")

    def _worth(self, one: Trial) -> float:
        return one.mean(self.choose_by, self.measure)

    @property
    def best(self) -> Trial:
        """The best trial, the earliest of equals: by validation data, or out of bag."""
        return self.ranked()[0]

    @property
    def best_parameters(self) -> Parameters:
        """Its parameters."""
        return self.best.parameters

    def ranked(self) -> list[Trial]:
        """Return the trials, the best first."""
        return sorted(self.trials, key=lambda one: -self._worth(one))

    def table(self, n: int = 5) -> str:
        """Return the best configurations with every measure on every part (as in Table 3).

        What decides comes first.
        """
        from rankgrove.experiments.study import markdown

        check_integer("n", "table", n, low=1)
        return markdown(*self._cells(n))

    def _repr_html_(self) -> str:
        title = f"Tuning by {self.choose_by} {self.measure}: the best of {len(self.trials):,}"
        note = f"{counted(self.n_folds, 'fold')}, {counted(self.n_seeds, 'seed')}"
        return html_table(title, *self._cells(5), note)

    def _cells(self, n: int) -> tuple[list[str], list[list[Any]]]:
        """Return the table's header and its rows."""
        names = list(self.trials[0].parameters)
        others = [
            part for part in PARTS if part in self.trials[0].values and part != self.choose_by
        ]
        columns = [
            (part, m) for m in self.trials[0].values["valid"] for part in (self.choose_by, *others)
        ]
        header = [*(f"{part.replace('_', '-')} {m}" for part, m in columns), *names]
        rows = []
        for one in self.ranked()[:n]:
            means = [f"{one.mean(part, m):.4f}" for part, m in columns]
            rows.append([*means, *(one.parameters[name] for name in names)])
        return header, rows

    def to_csv(self, path: str | Path) -> None:
        """Write all trials: parameters, means of every measure on every part."""
        first = self.trials[0]
        columns = [(part, m) for part, measures in first.values.items() for m in measures]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*first.parameters, *(f"{part} {m}" for part, m in columns)])
        for one in self.trials:
            writer.writerow(
                [*one.parameters.values(), *(repr(one.mean(*column)) for column in columns)]
            )
        write_atomically(path, out.getvalue())

    def best_of(self, part: str = "test") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the expected means of the best of m trials chosen at random (Figure 1).

        The best is the one with the highest mean where `choose_by` says; m goes from 1 to the
        number of trials. The paper draws 10,000 times; the expectation is exact here: of n trials
        in their order, the one at rank r is the best of m with probability
        C(n - r, m - 1) / C(n, m).

        Returns
        -------
        m, the expected mean that decides, and the expected mean on `part`
        """
        self._check_part(part, "best_of")
        ranked = self.ranked()
        n = len(ranked)
        decides = np.array([self._worth(one) for one in ranked])
        other = np.array([one.mean(part, self.measure) for one in ranked])
        m = np.arange(1, n + 1)
        log_factorial = np.array([math.lgamma(k + 1) for k in range(n + 1)])

        def log_choose(a: Any, b: Any) -> Any:
            return log_factorial[a] - log_factorial[b] - log_factorial[a - b]

        expected = np.zeros((2, n))
        for i, size in enumerate(m):
            r = np.arange(1, n - size + 2)
            share = np.exp(log_choose(n - r, size - 1) - log_choose(n, size))
            expected[:, i] = share @ decides[: r.size], share @ other[: r.size]
        return m, expected[0], expected[1]

    def nested(self, part: str = "test") -> list[tuple[Parameters, float]]:
        """Return for every fold the parameters best by its own data, and their mean.

        Its own validation data decides, or its training data out of bag. A fair estimate of
        tuning as a whole: no fold's test data had a part in its choice.
        """
        self._check_part(part, "nested")
        found = []
        for fold in range(self.n_folds):
            own = slice(fold * self.n_seeds, (fold + 1) * self.n_seeds)

            def mean(one: Trial, where: str, own: slice = own) -> float:
                return exact_mean(np.array(one.values[where][self.measure][own]))

            best = max(self.trials, key=lambda one: mean(one, self.choose_by))
            found.append((best.parameters, mean(best, part)))
        return found

    def early_stop(self, patience: int) -> Trial:
        """Return the trial at which tuning should have ended, by the second held-out data.

        Trials are gone through in the order they were tried; the best so far is looked at on the
        second data, and where that has not become better for `patience` trials, tuning begins to
        overfit (BL-MART paper, section 3.4).
        """
        check_integer("patience", "early_stop", patience, low=1)
        if "second" not in self.trials[0].values:
            raise DataError("early_stop needs a second held-out set: tune with second=0.5, say.")
        best: Trial | None = None
        chosen, top, since = self.trials[0], -math.inf, 0
        for one in self.trials:
            if best is None or self._worth(one) > self._worth(best):
                best = one
            value = best.mean("second", self.measure)
            if value > top:
                chosen, top, since = best, value, 0
            else:
                since += 1
                if since >= patience:
                    break
        return chosen


def merged(values: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Return part -> measure -> values, of one such record a fold and seed."""
    return {
        part: {m: [one[part][m] for one in values] for m in measures}
        for part, measures in values[0].items()
    }
