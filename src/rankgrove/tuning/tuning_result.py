"""The result of tuning: all trials, the best of them, and how far the choice overfits."""

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
from rankgrove.files import write_atomically
from rankgrove.measures.base import exact_mean
from rankgrove.showing import html_table
from rankgrove.tuning.search_space import Parameters
from rankgrove.tuning.tables import markdown
from rankgrove.validation import check_integer, counted

PARTS = ("valid", "out_of_bag", "second", "test")


@dataclass(frozen=True, eq=False)
class Trial:
    """One combination of parameters.

    Attributes
    ----------
    parameters : the combination
    values : part of the data ("valid", "out_of_bag", "second", "test") -> measure -> one mean per
        fold and seed
    trees : number of trees of the models, one per fold and seed; None if they are not trees
    """

    parameters: Parameters
    values: dict[str, dict[str, list[float]]]
    trees: list[int] | None

    def mean(self, part: str, measure: str) -> float:
        """Return the mean over folds and seeds."""
        return exact_mean(np.array(self.values[part][measure]))


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of :func:`tune`.

    Attributes
    ----------
    trials : in the order they were tried
    measure : the measure that chooses
    n_folds, n_seeds : every trial has one fit per fold and seed
    choose_by : the data on which it chooses: ``"valid"``, or ``"out_of_bag"``
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

    def _worth(self, trial: Trial) -> float:
        return trial.mean(self.choose_by, self.measure)

    @property
    def best(self) -> Trial:
        """The best trial by validation data, or out of bag; the earliest of equal ones."""
        return self.ranked()[0]

    @property
    def best_parameters(self) -> Parameters:
        """The parameters of the best trial."""
        return self.best.parameters

    def ranked(self) -> list[Trial]:
        """Return the trials, the best first."""
        return sorted(self.trials, key=lambda trial: -self._worth(trial))

    def table(self, n: int = 5) -> str:
        """Return the best configurations with every measure on every part (as in Table 3).

        The column that chooses comes first.
        """
        check_integer("n", "table", n, low=1)
        return markdown(*self._cells(n))

    def _repr_html_(self) -> str:
        title = f"Tuning by {self.choose_by} {self.measure}: the best of {len(self.trials):,}"
        note = f"{counted(self.n_folds, 'fold')}, {counted(self.n_seeds, 'seed')}"
        return html_table(title, *self._cells(5), note)

    def _cells(self, n: int) -> tuple[list[str], list[list[Any]]]:
        """Return the header and the rows of the table."""
        names = list(self.trials[0].parameters)
        others = [
            part for part in PARTS if part in self.trials[0].values and part != self.choose_by
        ]
        columns = [
            (part, m) for m in self.trials[0].values["valid"] for part in (self.choose_by, *others)
        ]
        header = [*(f"{part.replace('_', '-')} {m}" for part, m in columns), *names]
        rows = []
        for trial in self.ranked()[:n]:
            means = [f"{trial.mean(part, m):.4f}" for part, m in columns]
            rows.append([*means, *(trial.parameters[name] for name in names)])
        return header, rows

    def to_csv(self, path: str | Path) -> None:
        """Write all trials with their parameters and the means of every measure on every part."""
        first = self.trials[0]
        columns = [(part, m) for part, measures in first.values.items() for m in measures]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*first.parameters, *(f"{part} {m}" for part, m in columns)])
        for trial in self.trials:
            writer.writerow(
                [*trial.parameters.values(), *(repr(trial.mean(*column)) for column in columns)]
            )
        write_atomically(path, out.getvalue())

    def best_of(self, part: str = "test") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the expected means of the best of m trials chosen at random (Figure 1).

        The best trial has the highest mean on the data that `choose_by` names; m goes from 1 to
        the number of trials. The paper draws 10,000 times. Here the expectation is exact: of n
        trials, best first, the one at rank r is the best of m with probability
        C(n - r, m - 1) / C(n, m).

        Returns
        -------
        m, the expected mean on the data that chooses, and the expected mean on `part`
        """
        self._check_part(part, "best_of")
        ranked = self.ranked()
        n = len(ranked)
        chosen_by = np.array([self._worth(trial) for trial in ranked])
        on_part = np.array([trial.mean(part, self.measure) for trial in ranked])
        m = np.arange(1, n + 1)
        log_factorial = np.array([math.lgamma(k + 1) for k in range(n + 1)])

        def log_choose(a: int | np.ndarray, b: int) -> np.ndarray:
            return np.asarray(log_factorial[a] - log_factorial[b] - log_factorial[a - b])

        expected = np.zeros((2, n))
        for i, size in enumerate(range(1, n + 1)):
            r = np.arange(1, n - size + 2)
            share = np.exp(log_choose(n - r, size - 1) - log_choose(n, size))
            expected[:, i] = share @ chosen_by[: r.size], share @ on_part[: r.size]
        return m, expected[0], expected[1]

    def nested(self, part: str = "test") -> list[tuple[Parameters, float]]:
        """Return for every fold the parameters that are best by its own data, and their mean.

        Only the validation data of the fold chooses, or its training data out of bag. This is a
        fair estimate of tuning as a whole: the test data of a fold had no part in its choice.
        """
        self._check_part(part, "nested")
        choices = []
        for fold in range(self.n_folds):
            of_fold = slice(fold * self.n_seeds, (fold + 1) * self.n_seeds)

            def mean(trial: Trial, where: str, of_fold: slice = of_fold) -> float:
                return exact_mean(np.array(trial.values[where][self.measure][of_fold]))

            best = max(self.trials, key=lambda trial: mean(trial, self.choose_by))
            choices.append((best.parameters, mean(best, part)))
        return choices

    def early_stop(self, patience: int) -> Trial:
        """Return the trial at which tuning should have ended, by the second held-out data.

        Trials are visited in the order they were tried. The best trial so far is measured on the
        second data. If that value does not improve for `patience` trials, tuning begins to
        overfit (BL-MART paper, section 3.4).
        """
        check_integer("patience", "early_stop", patience, low=1)
        if "second" not in self.trials[0].values:
            raise DataError("early_stop needs a second held-out set: tune with second=0.5, say.")
        best: Trial | None = None
        chosen, top, since = self.trials[0], -math.inf, 0
        for trial in self.trials:
            if best is None or self._worth(trial) > self._worth(best):
                best = trial
            value = best.mean("second", self.measure)
            if value > top:
                chosen, top, since = best, value, 0
            else:
                since += 1
                if since >= patience:
                    break
        return chosen


def merged(values: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Return part -> measure -> list of values, from one record per fold and seed."""
    return {
        part: {m: [record[part][m] for record in values] for m in measures}
        for part, measures in values[0].items()
    }
