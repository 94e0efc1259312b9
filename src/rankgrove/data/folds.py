"""Dividing queries: LETOR's folds of ready-made parts, k folds, and repeated random trials.

A query is never cut. Random divisions put the queries into an order that depends on their ids
alone before they draw, so that the same queries in another order of the file are divided alike.
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
    """Queries to learn from, to choose by and to report on."""

    train: QueryDataset
    valid: QueryDataset | None
    test: QueryDataset


class Split(NamedTuple):
    """Queries to learn from and to report on."""

    train: QueryDataset
    test: QueryDataset


def letor_folds(
    parts: Sequence[QueryDataset], *, allow_shared_queries: bool = False
) -> Iterator[Fold]:
    """Give the folds of LETOR: of k parts, cyclic, k - 2 train, the next validates, the last tests.

    Fold i of five trains on the parts i, i+1 and i+2, validates on i+3 and tests on i+4.

    Parameters
    ----------
    parts : three data sets or more, of any number; LETOR's own collections have five. Of three
        parts one trains, of four two, of five three
    allow_shared_queries : let a query id occur in two parts; the rows then are one query where
        both parts are trained on. Otherwise that is refused: the test would have been seen

    Yields
    ------
    Fold
        named tuples (train, valid, test), as many as there are parts

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
    given = list(parts)
    k = len(given)
    if k < 3:
        raise DataError(f"letor_folds needs at least 3 parts: train, valid and test. Got {k}.")
    if not allow_shared_queries:
        refuse_shared_queries(given)

    def folds() -> Iterator[Fold]:
        for i in range(k):
            train = [given[(i + j) % k] for j in range(k - 2)]
            yield Fold(
                concatenate(train, allow_shared_queries=allow_shared_queries),
                given[(i + k - 2) % k],
                given[(i + k - 1) % k],
            )

    return folds()


def k_fold(
    dataset: QueryDataset, k: int = 5, *, seed: int | None = 0, valid: bool = False
) -> Iterator[Split | Fold]:
    """Give k divisions of a data set's queries; each query tests in exactly one of them.

    Parameters
    ----------
    dataset : what to divide; the parts are views of it
    k : number of divisions; their numbers of queries differ by at most one
    seed : what the shuffle depends on; None divides the queries in the order they have
    valid : also keep a part for validation: the one that tests in the next division

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
    """Divide a data set's queries in two: those to learn from, and a share of them held out.

    Parameters
    ----------
    dataset : what to divide; the parts are views of it
    share : of the queries, to be held out; above 0 and below 1
    seed : what the draw depends on

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
    query_keys : one key a query, made of its id
    seed : None for parts of neighbours in the order given
    owner : who asks, for messages
    least : the smallest k that makes sense
    """
    check_integer("k" if owner == "k_fold" else "n_splits", owner, k, low=least)
    n_queries = query_keys.size
    if k > n_queries:
        raise DataError(
            f"{owner}: {counted(n_queries, 'query', 'queries')} cannot be divided into {k} parts, "
            "one query at least in each: choose fewer parts."
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
    """Give repeated random divisions into training, validation and test queries.

    The SVM-map paper's protocol is ``random_trials(data, 50, 10, 5, 35)`` on 50 queries, where
    every query trains, validates and tests the same number of times.

    Parameters
    ----------
    dataset : what to divide; the parts are views of it
    n_trials : number of divisions
    n_train, n_valid, n_test : queries in each part; n_valid may be 0 (valid is None then), and
        n_test None takes all the others
    seed : what the draws depend on
    balanced : let every query have each role equally often over the trials, or within one time
        of that where the numbers do not divide. Otherwise the trials are independent

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
            f"{owner}: {n_train} + {n_valid} + {size} queries were asked for, and the data set "
            f"has {dataset.n_queries}."
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
    """Roles, trials x queries, each row a rearranged `line` and each column as even as can be.

    Rows that are `line` turned by evenly spaced steps are even in every column: a role is an arc
    of a circle, and evenly spaced arcs cover all points alike. But neighbours look alike, so pairs
    of trials then trade: among the queries to which they give the roles a and b in either way,
    which of them has which is drawn anew. A trade changes no row's and no column's counts.
    """
    n_queries = line.size
    turns = np.arange(n_trials) * n_queries // n_trials
    roles: np.ndarray = line[(np.arange(n_queries) - turns[:, None]) % n_queries]
    draw = generator(seed, "random_trials", "trades")
    for _ in range(4):
        for first, second in draw.permutation(n_trials)[: n_trials // 2 * 2].reshape(-1, 2):
            _trade(roles[first], roles[second], draw)
    return roles[draw.permutation(n_trials)]


def _trade(one: np.ndarray, other: np.ndarray, draw: np.random.Generator) -> None:
    """Let two rows of roles exchange at random, in place."""
    before, after = one.copy(), other.copy()
    for a in range(4):
        for b in range(a + 1, 4):
            spots = np.flatnonzero(((before == a) & (after == b)) | ((before == b) & (after == a)))
            drawn = draw.permutation(before[spots])
            one[spots] = drawn
            other[spots] = a + b - drawn


def _canonical(query_keys: np.ndarray) -> np.ndarray:
    return np.argsort(query_keys, kind="stable")


def _shuffled(query_keys: np.ndarray, seed: int, purpose: str) -> np.ndarray:
    """Positions of the queries in a random order that depends on their ids and the seed."""
    draw = generator(seed, purpose, query_keys.size)
    return _canonical(query_keys)[draw.permutation(query_keys.size)]
