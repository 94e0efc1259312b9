"""``rg.partial_dependence``: a model's mean score as a function of one or two features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.categories import Names
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.explaining.explain import checked_data, checked_model
from rankgrove.explaining.tree_shap import dense_blocks
from rankgrove.frames import Columns, Tabular
from rankgrove.rankers.base import Ranker
from rankgrove.showing import html_table
from rankgrove.validation import check_integer, counted, nearest, refuse

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # the quantiles that are kept
DEFAULT_POINTS = 40
MOST_CELLS = 1 << 25  # scores in memory at once; longer grids are computed in parts


@dataclass(frozen=True, eq=False)
class PartialDependence(Tabular):
    """Scores as a function of a feature: the result of :func:`partial_dependence`.

    Attributes
    ----------
    model : the model's class
    features : the name of the feature, or the names of both
    grid : the values that it was set to, ascending; for two features, one array each. For a
        categorical feature, the codes of categories
    mean : the mean score of all rows at every value, rounded once; of shape (grid,), or (first
        grid, second grid)
    levels, quantiles : the spread of the rows' scores: `quantiles` has one row per level
    n_rows : number of rows
    labels : by feature: None, or for a categorical feature the names of the grid's categories
    """

    model: str
    features: tuple[str, ...]
    grid: np.ndarray | tuple[np.ndarray, np.ndarray]
    mean: np.ndarray
    levels: tuple[float, ...]
    quantiles: np.ndarray
    n_rows: int
    labels: tuple[tuple[str, ...] | None, ...] = (None, None)

    def table_columns(self) -> Columns:
        """Return the table's columns, one row per value of the grid, or per pair of values."""
        grids = self.grid if isinstance(self.grid, tuple) else (self.grid,)
        places = [
            grid if names is None else np.array(names, dtype=object)
            for grid, names in zip(grids, self.labels, strict=False)
        ]
        if len(places) == 2:
            first, second = places
            places = [np.repeat(first, len(second)), np.tile(second, len(first))]
        spread = zip(self.levels, self.quantiles, strict=True)
        return {
            **dict(zip(self.features, places, strict=True)),
            "mean": self.mean.ravel(),
            **{f"{level:g}": scores.ravel() for level, scores in spread},
        }

    def table_index(self) -> tuple[str, ...]:
        """Return the columns of the features' values."""
        return self.features

    def texts(self, which: int = 0) -> list[str]:
        """Return the grid's values of a feature as texts; those of categories are their names."""
        names = self.labels[which]
        if names is not None:
            return list(names)
        grid = self.grid[which] if isinstance(self.grid, tuple) else self.grid
        return [_value(x) for x in grid.tolist()]

    def _repr_html_(self) -> str:
        title = f"{self.model} on {' and '.join(self.features)}, {counted(self.n_rows, 'row')}"
        if isinstance(self.grid, tuple):
            header = [f"{self.features[0]} \\ {self.features[1]}", *self.texts(1)]
            rows = [
                [x, *(f"{mean:.4g}" for mean in means)]
                for x, means in zip(self.texts(0), self.mean.tolist(), strict=True)
            ]
            return html_table(title, header, rows, "mean score")
        header = [
            self.features[0],
            "mean score",
            *(f"{100 * level:g} % of rows" for level in self.levels),
        ]
        columns = zip(self.mean.tolist(), *self.quantiles.tolist(), strict=True)
        rows = [
            [x, *(f"{value:.4g}" for value in values)]
            for x, values in zip(self.texts(0), columns, strict=True)
        ]
        return html_table(
            title, header, rows, "% of rows: the share of rows with a score up to this"
        )

    def __repr__(self) -> str:
        return (
            f"PartialDependence({self.model} on {' and '.join(self.features)}: "
            f"{counted(self.mean.size, 'point')}, {counted(self.n_rows, 'row')})"
        )


def _value(x: float) -> str:
    return "missing" if math.isnan(x) else f"{x:.5g}"


def partial_dependence(
    model: Any,
    dataset: QueryDataset,
    feature: Any,
    grid: Any = None,
    *,
    n_threads: int | None = None,
) -> PartialDependence:
    """Return the mean score of the data's rows with a feature set to every value of a grid.

    The result is exact: every score is what ``predict`` returns for the row with that value.

    Parameters
    ----------
    model : a trained ranker, or the path of its file
    dataset : the rows
    feature : 1-based number or name; a pair of them for both together
    grid : values; or a number of quantiles of the data's values (default 40); or ``"thresholds"``,
        for trees: one value per step of the score, so that no step is left out. For two features,
        a pair of these, or one for both. Infinite values are allowed, and NaN for a missing value.
        For a categorical feature: names or codes of categories; or a number of categories, the
        most frequent ones of the data; None: all that have names, or that trees test
    n_threads : threads to use, None for all cores; the result does not depend on it

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(40, seed=1)
    >>> model = rg.MART(n_trees=10).fit(data)
    >>> curve = rg.partial_dependence(model, data, "f1", grid=[-1.0, 0.0, 1.0])
    >>> curve.grid.tolist(), curve.mean.shape
    ([-1.0, 0.0, 1.0], (3,))
    """
    owner = "partial_dependence"
    trained = checked_model(model, owner)
    dataset = checked_data(trained, dataset, "dataset", owner)
    _refuse_by_query(trained)
    pair = isinstance(feature, tuple | list)
    named = list(feature) if pair else [feature]
    if len(named) not in (1, 2):
        refuse("feature", owner, "one feature, or a pair of them", feature)
    columns = [dataset.feature_index(name) for name in named]
    if len(set(columns)) != len(columns):
        refuse("feature", owner, "two different features", feature)
    is_pair = pair and isinstance(grid, tuple | list) and len(grid) == 2 and len(columns) == 2
    column_grids = list(grid) if is_pair else [grid] * len(columns)
    known = [_categories(trained, dataset, j) for j in columns]
    grids = [
        _grid(trained, dataset, j, g) if categories is None else categories.grid(dataset, j, g)
        for j, g, categories in zip(columns, column_grids, known, strict=True)
    ]
    curves = [
        _along(trained, dataset, columns[0], grids[0], fixed, n_threads)
        for fixed in ([{}] if len(columns) == 1 else [{columns[1]: v} for v in grids[1].tolist()])
    ]
    mean = np.stack([curve[0] for curve in curves], axis=-1)
    spread = np.stack([curve[1] for curve in curves], axis=-1)
    single = len(columns) == 1
    return PartialDependence(
        model=type(trained).__name__,
        features=tuple(dataset.feature_names[j] for j in columns),
        grid=grids[0] if single else (grids[0], grids[1]),
        mean=mean[:, 0] if single else mean,
        levels=LEVELS,
        quantiles=spread[:, :, 0] if single else spread,
        n_rows=dataset.n_rows,
        labels=tuple(
            None if categories is None else categories.labels(grid)
            for categories, grid in zip(known, grids, strict=True)
        ),
    )


@dataclass(frozen=True, eq=False)
class _CategoricalFeature:
    """A categorical feature: the names of its codes, where it has any, and codes to look at."""

    names: Names
    codes: np.ndarray

    def grid(self, data: QueryDataset, column: int, grid: Any) -> np.ndarray:
        """Return the codes of a grid, ascending, a missing value last."""
        owner = "partial_dependence"
        if grid is None or isinstance(grid, str):
            if isinstance(grid, str) and grid != "thresholds":
                refuse("grid", owner, "a list of categories, or a number of them", grid)
            if not self.codes.size:
                raise DataError(
                    f"partial_dependence: {data.feature_names[column]!r} has no categories in the "
                    "data or in trees: give a grid of codes."
                )
            return self.codes.astype(np.float32)
        if np.ndim(grid) == 0:
            n = check_integer("grid", owner, grid, low=1)
            values = data.column(column + 1)
            codes, counts = np.unique(values[np.isfinite(values)], return_counts=True)
            return np.sort(codes[np.argsort(-counts, kind="stable")[:n]]).astype(np.float32)
        return _values([self._code(one, data.feature_names[column]) for one in grid])

    def _code(self, category: Any, feature: str) -> Any:
        if not isinstance(category, str):
            return category
        if self.names is None or category not in self.names:
            raise DataError(
                f"partial_dependence: the feature {feature!r} has no category {category!r}"
                f"{nearest(category, self.names or ())}."
            )
        return self.names.index(category)

    def labels(self, grid: np.ndarray) -> tuple[str, ...]:
        """Return the names of codes; the code itself where it has none."""
        names = self.names or ()
        return tuple(
            names[int(x)] if 0 <= x < len(names) and x == int(x) else _value(x)
            for x in grid.tolist()
        )


def _categories(model: Ranker, data: QueryDataset, column: int) -> _CategoricalFeature | None:
    """Return the categories of a feature, which has the model's codes; None if it is numeric."""
    names = data.categories.get(column)
    codes = [np.arange(len(names or ()))]
    trees = model.flat()
    if trees is not None:
        here = np.unique(trees.set_of[(trees.feature == column) & (trees.set_of >= 0)])
        codes += [trees.sets.codes(s) for s in here.tolist()]
    if column not in data.categories and len(codes) == 1:
        return None
    found = np.unique(np.concatenate(codes))
    if not found.size:  # neither names nor trees: the codes of the data
        values = data.column(column + 1)
        found = np.unique(values[np.isfinite(values)])
    return _CategoricalFeature(names, found)


def _refuse_by_query(model: Ranker, holder: str | None = None) -> None:
    """Refuse models that scale features or scores by query, themselves or in a member."""
    scaled, name = model.scaled_by_query(), type(model).__name__
    if scaled is not None:
        inside = "" if holder is None else f", which is in the {holder},"
        raise DataError(
            f"partial_dependence: a {name}{inside} scales {scaled} within every query, so one "
            "value for all documents of a query says nothing. Take one of its models, or a ranker "
            "that does not scale by query."
        )
    for member in model.members():
        if isinstance(member, Ranker):
            _refuse_by_query(member, name)


def _grid(model: Ranker, data: QueryDataset, column: int, grid: Any) -> np.ndarray:
    """Return the values of a grid, ascending, a missing value last."""
    owner = "partial_dependence"
    if isinstance(grid, str):
        trees = model.flat()
        if grid != "thresholds" or trees is None:
            rule = "values, a number of quantiles, or 'thresholds' for one sum of trees"
            refuse("grid", owner, rule, grid)
        exact = trees.threshold[trees.feature == column]
        at = exact.astype(np.float32)
        at = np.where(at > exact, np.nextafter(at, np.float32(-np.inf)), at)  # on the left side
        at = np.unique(at[np.isfinite(at)])
        if not at.size:
            name = data.feature_names[column]
            raise DataError(f"partial_dependence: no tree uses {name!r}: there is no step.")
        # a step begins above one threshold and ends at the next, included
        return np.append(at, np.nextafter(at[-1], np.float32(np.inf)))
    if grid is None or np.ndim(grid) == 0:
        n = DEFAULT_POINTS if grid is None else check_integer("grid", owner, grid, low=2)
        values = data.column(column + 1)
        values = values[np.isfinite(values)]
        if not values.size:
            raise DataError(
                f"partial_dependence: {data.feature_names[column]!r} has no values in the data: "
                "give a grid of values."
            )
        levels = np.linspace(0.0, 1.0, n)
        return np.unique(np.quantile(values, levels, method="inverted_cdf").astype(np.float32))
    return _values(grid)


def _values(grid: Any) -> np.ndarray:
    """Return the different numbers of a grid, ascending, a missing value last."""
    owner = "partial_dependence"
    try:
        values = np.unique(np.asarray(grid, np.float64).astype(np.float32))
    except (TypeError, ValueError):
        refuse("grid", owner, "a list of numbers", grid)
    if values.ndim != 1 or not values.size:
        refuse("grid", owner, "a list of at least one number", grid)
    return values


def _along(
    model: Ranker,
    data: QueryDataset,
    column: int,
    grid: np.ndarray,
    fixed: dict[int, float],
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and quantiles of all rows' scores at every value of a grid."""
    together = max(1, MOST_CELLS // max(1, data.n_rows))
    means, spreads = [], []
    for first in range(0, grid.size, together):
        part = grid[first : first + together]
        scores = np.empty((data.n_rows, part.size))
        at = 0
        for block in dense_blocks(data.features, data.rows):
            x = np.array(block)
            for j, value in fixed.items():
                x[:, j] = value
            out = scores[at : at + x.shape[0]]
            _fill(model, data, at, x, column, part, out, n_threads)
            at += x.shape[0]
        means += [math.fsum(values) / len(values) for values in scores.T.tolist()]
        spreads.append(np.quantile(scores, LEVELS, axis=0))
    return np.array(means), np.concatenate(spreads, axis=1)


def _fill(
    model: Ranker,
    data: QueryDataset,
    first: int,
    x: np.ndarray,
    column: int,
    grid: np.ndarray,
    out: np.ndarray,
    n_threads: int | None,
) -> None:
    """Score the rows of a block for every value of the grid; the block `x` is overwritten."""
    rows = slice(first, first + x.shape[0])
    base = None if data.base_score is None else data.base_score[rows]
    for g, value in enumerate(grid.tolist()):
        x[:, column] = value
        as_data = QueryDataset.from_parts(
            x,
            data.y[rows],
            np.array(["all"]),
            np.zeros(x.shape[0], int),
            base_score=base,
            categories=data.categories,
        )
        out[:, g] = model.predict(as_data, n_threads=n_threads)
