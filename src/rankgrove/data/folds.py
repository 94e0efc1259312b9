"""Splitting by query: LETOR's folds of ready-made parts, k folds, repeated random trials.

The rows of a query stay together. Random splits first sort the queries by a key of their ids, so
that the order of queries in the file does not change the split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankgrove.data.concatenate import concatenate, refuse_shared_queries
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.random import generator
from rankgrove.validation import check_integer, check_real, counted, refuse


class Fold(NamedTuple):
    """Queries for training, for validation (None: no such part) and for testing."""

    train: QueryDataset
    valid: QueryDataset | None
    test: QueryDataset


class Split(NamedTuple):
    """Queries for training and for testing."""

    train: QueryDataset
    test: QueryDataset


def letor_folds(
    parts: Sequence[QueryDataset], *, allow_shared_queries: bool = False
) -> Iterator[Fold]:
    """Yield LETOR's folds: of k parts, taken cyclically, k - 2 train, one validates, one tests.

    Fold i of five trains on the parts i, i+1 and i+2, validates on i+3 and tests on i+4.

    Parameters
    ----------
    parts : three or more data sets; LETOR's own collections have five
    allow_shared_queries : let a query id occur in two parts; if both are in the training data,
        its rows form one query. Otherwise that is an error: the test query would have been seen

    Yields
    ------
    Fold
        named tuples (train, valid, test), one per part

    Examples
    --------
    >>> parts = [QueryDataset([[0.0]], [1], qid=[name]) for name in "abcde"]
    >>> for fold in letor_folds(parts):
    ...     print(*(data.query_ids.tolist() for data in fold))
    ['a', 'b', 'c'] ['d'] ['e']
    ['b', 'c', 'd'] ['e'] ['a']
    ['c', 'd', 'e'] ['a'] ['b']
    ['d', 'e', 'a'] ['b'] ['c']
    ['e', 'a', 'b'] ['c'] ['d']
    """
    datasets = list(parts)
    k = len(datasets)
    if k < 3:
        raise DataError(f"letor_folds needs at least 3 parts: train, valid and test. Got {k}.")
    if not allow_shared_queries:
        refuse_shared_queries(datasets)

    def folds() -> Iterator[Fold]:
        for i in range(k):
            train = [datasets[(i + j) % k] for j in range(k - 2)]
            yield Fold(
                concatenate(train, allow_shared_queries=allow_shared_queries),
                datasets[(i + k - 2) % k],
                datasets[(i + k - 1) % k],
            )

    return folds()


def k_fold(
    dataset: QueryDataset, k: int = 5, *, seed: int | None = 0, valid: bool = False
) -> Iterator[Split | Fold]:
    """Yield k splits of a data set's queries; each query is a test query in exactly one of them.

    Parameters
    ----------
    dataset : the data set to split; the parts are views of it
    k : number of folds; their numbers of queries differ by at most one
    seed : seed of the shuffle; None keeps the queries in their order
    valid : also hold out a part for validation: the test part of the next fold

    Yields
    ------
    Split or Fold
        named tuples (train, test), or (train, valid, test)

    Examples
    --------
    >>> data = QueryDataset(None, [1, 0, 2, 1], qid=["a", "b", "c", "d"])
    >>> for train, test in k_fold(data, k=2, seed=None):
    ...     print(train.query_ids.tolist(), test.query_ids.tolist())
    ['c', 'd'] ['a', 'b']
    ['a', 'b'] ['c', 'd']
    """
    part = assign_parts(dataset.query_keys, k, seed, "k_fold", least=3 if valid else 2)

    def folds() -> Iterator[Split | Fold]:
        for i in range(k):
            test = dataset.select(part == i)
            if valid:
                after = (i + 1) % k
                train = dataset.select((part != i) & (part != after))
                yield Fold(train, dataset.select(part == after), test)
            else:
                yield Split(dataset.select(part != i), test)

    return folds()


def hold_out(dataset: QueryDataset, share: float, *, seed: int = 0) -> Split:
    """Split a data set's queries in two: those for training, and a held-out share.

    Parameters
    ----------
    dataset : the data set to split; the parts are views of it
    share : share of the queries that is held out; above 0 and below 1
    seed : seed of the draw

    Examples
    --------
    >>> data = QueryDataset(None, [1, 0, 2, 1], qid=["a", "b", "c", "d"])
    >>> train, valid = hold_out(data, 0.25)
    >>> train.n_queries, valid.n_queries
    (3, 1)
    """
    check_real("share", "hold_out", share, above=0.0)
    if share >= 1.0:
        refuse("share", "hold_out", "a share below 1", share)
    n_out = round(share * dataset.n_queries)
    if not 0 < n_out < dataset.n_queries:
        raise DataError(
            f"hold_out: {share:g} of {counted(dataset.n_queries, 'query', 'queries')} leaves one "
            "of the two parts empty: choose another share."
        )
    out = np.zeros(dataset.n_queries, np.bool_)
    out[_shuffled(dataset.query_keys, seed, "hold_out")[:n_out]] = True
    return Split(dataset.select(~out), dataset.select(out))


def assign_parts(
    query_keys: np.ndarray, k: int, seed: int | None, owner: str, *, least: int = 2
) -> np.ndarray:
    """Return the part, 0 to k - 1, of every query.

    Parameters
    ----------
    query_keys : one key per query, computed from its id
    seed : seed of the shuffle; None: a part is a range of queries in their order
    owner : name of the caller, for error messages
    least : the smallest k that is allowed
    """
    check_integer("k" if owner == "k_fold" else "n_splits", owner, k, low=least)
    n_queries = query_keys.size
    if k > n_queries:
        raise DataError(
            f"{owner}: {counted(n_queries, 'query', 'queries')} cannot be divided into {k} parts "
            "of at least one query each: choose fewer parts."
        )
    order = np.arange(n_queries)
    if seed is not None:
        order = _shuffled(query_keys, seed, "k_fold")
    part = np.empty(n_queries, np.int64)
    for i, chunk in enumerate(np.array_split(order, k)):
        part[chunk] = i
    return part


def random_trials(
    dataset: QueryDataset,
    n_trials: int,
    n_train: int,
    n_valid: int,
    n_test: int | None = None,
    *,
    seed: int = 0,
    balanced: bool = True,
) -> Iterator[Fold]:
    """Yield repeated random splits into training, validation and test queries.

    The SVM-map paper's protocol is ``random_trials(data, 50, 10, 5, 35)`` on 50 queries, where
    every query trains, validates and tests the same number of times.

    Parameters
    ----------
    dataset : the data set to split; the parts are views of it
    n_trials : number of splits
    n_train, n_valid, n_test : queries in each part; n_valid may be 0 (valid is None then), and
        n_test None takes all remaining queries
    seed : seed of the draws
    balanced : give every query each role equally often over all trials, or within one time of
        that if the numbers do not divide evenly. Otherwise the trials are independent

    Yields
    ------
    Fold
        named tuples (train, valid, test)

    Examples
    --------
    >>> data = QueryDataset(None, [0] * 4, qid=["a", "b", "c", "d"])
    >>> trials = list(random_trials(data, 4, 1, 1, 2))
    >>> sorted(trial.train.query_ids.item() for trial in trials)
    ['a', 'b', 'c', 'd']
    """
    owner = "random_trials"
    check_integer("n_trials", owner, n_trials, low=1)
    check_integer("n_train", owner, n_train, low=1)
    check_integer("n_valid", owner, n_valid, low=0)
    rest = dataset.n_queries - n_train - n_valid
    size = check_integer("n_test", owner, rest if n_test is None else n_test, low=1)
    if size > rest:
        raise DataError(
            f"{owner}: {n_train} + {n_valid} + {size} queries are more than the "
            f"{dataset.n_queries} of the data set."
        )
    line = np.repeat(np.arange(4, dtype=np.uint8), [n_train, n_valid, size, rest - size])
    if balanced:
        order = _shuffled(dataset.query_keys, seed, "random_trials")
        roles = _balanced_roles(line, n_trials, seed)
    else:
        order = _canonical(dataset.query_keys)
        draws = [generator(seed, "random_trials", trial) for trial in range(n_trials)]
        roles = np.stack([draw.permutation(line) for draw in draws])

    def trials() -> Iterator[Fold]:
        role = np.empty(dataset.n_queries, np.uint8)
        for trial in roles:
            role[order] = trial
            yield Fold(
                dataset.select(role == 0),
                dataset.select(role == 1) if n_valid else None,
                dataset.select(role == 2),
            )

    return trials()


def _balanced_roles(line: np.ndarray, n_trials: int, seed: int) -> np.ndarray:
    """Return the roles, trials x queries: rows are permutations of `line`, columns are balanced.

    Rows that are `line` rotated by evenly spaced steps are balanced in every column: a role is an
    arc of a circle, and evenly spaced arcs cover all points equally often. But neighbouring queries
    then have similar roles, so pairs of trials trade: the roles of the queries that have role a in
    one of the two and role b in the other are redrawn. A trade keeps all counts of rows and
    columns.
    """
    n_queries = line.size
    turns = np.arange(n_trials) * n_queries // n_trials
    roles: np.ndarray = line[(np.arange(n_queries) - turns[:, None]) % n_queries]
    draw = generator(seed, "random_trials", "trades")
    for _ in range(4):
        for first, second in draw.permutation(n_trials)[: n_trials // 2 * 2].reshape(-1, 2):
            _trade(roles[first], roles[second], draw)
    return roles[draw.permutation(n_trials)]


def _trade(first: np.ndarray, second: np.ndarray, draw: np.random.Generator) -> None:
    """Let two rows of roles trade at random, in place."""
    before, after = first.copy(), second.copy()
    for a in range(4):
        for b in range(a + 1, 4):
            spots = np.flatnonzero(((before == a) & (after == b)) | ((before == b) & (after == a)))
            drawn = draw.permutation(before[spots])
            first[spots] = drawn
            second[spots] = a + b - drawn


def _canonical(query_keys: np.ndarray) -> np.ndarray:
    return np.argsort(query_keys, kind="stable")


def _shuffled(query_keys: np.ndarray, seed: int, purpose: str) -> np.ndarray:
    """Return the positions of the queries in a random order that depends only on ids and seed."""
    draw = generator(seed, purpose, query_keys.size)
    return _canonical(query_keys)[draw.permutation(query_keys.size)]
