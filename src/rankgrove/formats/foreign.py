"""Shared by readers of other libraries' models: the results, checked fields, trees from parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.model.category_sets import (
    MOST_CATEGORIES,
    NO_SETS,
    WORD_BITS,
    CategorySets,
    codes_of,
)
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MOST_FEATURES = 1 << 24  # a higher number means that the file is damaged
MOST_WORDS = 1 << 25  # of all sets of categories of a model
MOST_NAMES = 1 << 20  # of the categories of a feature
Categories = dict[int, tuple[str, ...] | None]


@dataclass(frozen=True, eq=False)
class Averaged:
    """Trees whose sums are divided at the end, as in random forests.

    Attributes
    ----------
    sums : the trees, not divided; with several bags, a column is the sum of one bag
    divisor : the number by which the sum is divided
    bags : whether the columns are bags, to be added in float64; otherwise they are separate scores
    """

    sums: Ensemble
    divisor: int
    bags: bool = False

    def flat(self) -> Ensemble:
        """Return plain trees that give the same scores, except for rounding."""
        columns = 1 if self.bags else self.sums.n_columns
        value = self.sums.value / self.divisor
        return replace(self.sums, value=value, n_columns=columns, single=False)


@dataclass(frozen=True, eq=False)
class ForeignWeights:
    """A linear model of another library: terms that are added one after the other.

    Attributes
    ----------
    feature, weight : of every term; a feature may occur several times
    intercept : the start value of scores
    source, objective : the library, and its name for the model
    """

    feature: np.ndarray
    weight: np.ndarray
    intercept: float
    source: str
    objective: str


@dataclass(frozen=True, eq=False)
class Foreign:
    """A model of another library.

    Attributes
    ----------
    ensemble : its trees
    source : the library
    objective : the training objective, by the library's name, or None
    feature_names : None if the model has none
    classes : whether several columns are classes, whose scores softmax turns into probabilities
    least_features : whether the file lacks the number of features, so that the ensemble has only
        as many as its trees use
    averaged : for a random forest, how its scores are computed; the ensemble is then its ``flat()``
    absent : the value of a feature that a row does not mention, ``"zero"`` or ``"missing"``
    notes : differences from the library, and things that the file does not say
    categories : the categorical columns, with the names of their codes; None: they have none
    """

    ensemble: Ensemble
    source: str
    objective: str | None = None
    feature_names: tuple[str, ...] | None = None
    classes: bool = False
    least_features: bool = False
    averaged: Averaged | None = None
    absent: str = "zero"
    notes: tuple[str, ...] = ()
    categories: Categories = field(default_factory=dict)


ABSENT = "rankgrove_absent"  # its field in files that are written here for other libraries


def absent_of(said: Any, saw_missing: bool) -> str:
    """Return the value of absent features: `said`, the field ABSENT, or else as in training."""
    if said in ("zero", "missing"):
        return str(said)
    return "missing" if saw_missing else "zero"


def learned_directions(ensemble: Ensemble) -> bool:
    """Return whether missing values go to both sides, as in XGBoost if training data had some.

    Otherwise they all go to the same side: right by ``hist`` and ``approx``, left by ``exact``. At
    splits on categories they may go anywhere even so.
    """
    to_left = ensemble.missing_left[ensemble.set_of < 0]
    return bool(to_left.any() and not to_left.all())


# -- fields of a document -------------------------------------------------------------------------


def inside(document: Any, *keys: str) -> Any:
    """Return the value under some nested keys."""
    for key in keys:
        if not isinstance(document, Mapping) or key not in document:
            raise ModelFileError(f"it lacks {key!r}: it is damaged, or another kind of file.")
        document = document[key]
    return document


def as_list(value: object, name: str) -> Any:
    """Return a list, tuple or array, or refuse another value."""
    if not isinstance(value, list | tuple | np.ndarray):
        raise ModelFileError(f"{name!r} must be a list: it is damaged.")
    return value


def reals(values: object, name: str, n: int | None = None) -> np.ndarray:
    """Return a list of numbers as float64, `n` of them."""
    array = np.array(as_list(values, name), np.float64)
    return _counted(array, name, n)


def whole(values: object, name: str, n: int | None = None) -> np.ndarray:
    """Return a list of whole numbers or booleans as int64, `n` of them."""
    array = np.asarray(as_list(values, name))
    if array.size and array.dtype.kind not in "iub":
        raise ModelFileError(f"{name!r} must be whole numbers: it is damaged.")
    return _counted(array.astype(np.int64), name, n)


def whole_number(value: Any, name: str, low: int, high: int) -> int:
    """Return a whole number, which may be written as text, within bounds."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = low - 1
    if isinstance(value, bool | float) or not low <= number <= high:
        raise ModelFileError(f"{name!r} must be a whole number in {low} .. {high}: it is damaged.")
    return number


def names_or_none(
    names: object, n_features: int, plain: str | None = None
) -> tuple[str, ...] | None:
    """Return feature names, or None if there are none, or only those of the form `plain`."""
    listed = [str(name) for name in as_list(names, "feature_names")]
    if not listed:
        return None
    if len(listed) != n_features:
        raise ModelFileError(
            f"it has names for {len(listed)} of {n_features} features: names were lost, or the "
            "number of features is damaged. Name all of them or none."
        )
    if plain and listed == [plain.format(j) for j in range(n_features)]:
        return None
    if len(set(listed)) != n_features:
        return None
    return tuple(listed)


def _counted(array: np.ndarray, name: str, n: int | None) -> np.ndarray:
    if array.ndim != 1 or (n is not None and array.size != n):
        raise ModelFileError(f"{name!r} must be a list of {n} numbers: it is damaged.")
    return array


def beside(values: np.ndarray, direction: float) -> np.ndarray:
    """Return the neighbouring float32 numbers, towards minus or plus infinity."""
    with np.errstate(over="ignore", under="ignore"):
        return np.nextafter(np.asarray(values, np.float32), np.float32(direction))


# -- categories -----------------------------------------------------------------------------------


class SetRoom:
    """Checks the sets of categories of a model that is being read, before anything is made of them.

    A set takes as many bits as its highest code: a small file could ask for a lot of memory.
    """

    def __init__(self) -> None:
        self._left = MOST_WORDS

    def checked(self, codes: object, tree: int) -> np.ndarray:
        """Return the codes of a set."""
        numbers = whole(codes, "categories")
        highest = int(numbers.max(initial=0))
        if numbers.min(initial=0) < 0:
            raise ModelFileError(f"tree {tree} has a category below 0: it is damaged.")
        if highest >= MOST_CATEGORIES:
            refuse_category(tree, highest)
        self._left -= highest // WORD_BITS + 1
        if self._left < 0:
            raise ModelFileError(
                "its sets of categories are too many and too large. Number categories from 0 on, "
                "without gaps."
            )
        return numbers


def refuse_category(tree: int, code: int) -> None:
    """Refuse a code that is beyond all that can be read."""
    raise ModelFileError(
        f"tree {tree} has a category {code:,}, and only those up to {MOST_CATEGORIES - 1:,} can be "
        "read. Number categories from 0 on, without gaps."
    )


def named_categories(names: Mapping[int, object], ensemble: Ensemble) -> Categories:
    """Return the categorical columns with the names of their codes, where a model has them all.

    `names` has the columns that a file calls categorical, each with a list of names or with None.
    """
    columns = sorted({*names, *ensemble.categorical_features().tolist()})
    highest = highest_codes(ensemble)
    found: Categories = {}
    for column in columns:
        listed = names.get(column)
        texts = tuple(map(str, as_list(listed, "categories"))) if listed is not None else ()
        fit = highest.get(column, -1) < len(texts) <= MOST_NAMES
        found[column] = texts if fit and texts and len(set(texts)) == len(texts) else None
    return found


def highest_codes(ensemble: Ensemble) -> dict[int, int]:
    """Return the highest code in the sets of every categorical column; -1: there is none."""
    return {column: int(codes.max(initial=-1)) for column, codes in tested_codes(ensemble).items()}


def tested_codes(ensemble: Ensemble) -> dict[int, np.ndarray]:
    """Return the codes in the sets of every categorical column, ascending."""
    found: dict[int, np.ndarray] = {}
    for column in ensemble.categorical_features().tolist():
        numbers = np.unique(ensemble.set_of[ensemble.feature == column])
        sets = [ensemble.sets.words_of(number) for number in numbers[numbers >= 0].tolist()]
        words = np.zeros(max(one.size for one in sets), np.uint32)
        for one in sets:
            words[: one.size] |= one
        found[column] = codes_of(words)
    return found


def codes_of_nodes(tree: Tree) -> list[np.ndarray | None]:
    """Return the codes in the set of every node; None for a node with a threshold."""
    used = {s: tree.sets.codes(s) for s in np.unique(tree.set_of).tolist() if s >= 0}
    return [used.get(s) for s in tree.set_of.tolist()]


# -- trees ----------------------------------------------------------------------------------------


Numbers = Sequence[float] | np.ndarray  # also whole numbers and booleans


def make_tree(
    feature: Numbers,
    threshold: np.ndarray,
    left: Numbers,
    right: Numbers,
    missing_left: Numbers,
    value: Numbers,
    *,
    gain: Numbers | None = None,
    count: Numbers | None = None,
    weight: Numbers | None = None,
    mean: Numbers | None = None,
    categories: Sequence[Numbers | None] | tuple[np.ndarray, CategorySets] | None = None,
) -> Tree:
    """Return a tree; statistics that are not given are unknown (nodes first, then leaves).

    `categories` are the codes that a node sends left, or None for a node with a threshold; or the
    numbers of nodes' sets, and the sets. Nodes that are given the same array share its set.
    """
    n_nodes, n_places = len(feature), len(feature) + len(value)
    set_of, sets = np.full(n_nodes, -1, np.int32), NO_SETS
    if isinstance(categories, tuple):
        set_of, sets = categories
    elif categories is not None:
        different = {id(codes): codes for codes in categories if codes is not None}
        number = {key: n for n, key in enumerate(different)}
        set_of = np.array([number.get(id(codes), -1) for codes in categories], np.int32)
        sets = CategorySets.of([np.array(codes, np.int64) for codes in different.values()])
    return Tree(
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        missing_left=np.array(missing_left, np.bool_),
        gain=np.zeros(n_nodes) if gain is None else np.array(gain, np.float64),
        value=np.array(value, np.float64),
        count=np.full(n_places, -1) if count is None else _counts(count),
        weight=np.full(n_places, np.nan) if weight is None else np.array(weight, np.float64),
        mean=np.full(n_places, np.nan) if mean is None else np.array(mean, np.float64),
        set_of=set_of,
        sets=sets,
    )


def _counts(values: Numbers) -> np.ndarray:
    """Return numbers of rows; impossible numbers become unknown."""
    numbers = np.array(values, np.float64)
    return np.where((numbers >= 0) & (numbers < 2.0**53), numbers, -1.0).astype(np.int64)


class TreeParts:
    """A tree that is being built: parents come before their children.

    The place of a node or leaf is (parent, whether it is the left child), or None for the root.
    """

    def __init__(self) -> None:
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.children: list[list[int]] = []
        self.missing_left: list[bool] = []
        self.categories: list[Numbers | None] = []
        self.value: list[float] = []
        self.of_nodes: list[dict[str, float]] = []
        self.of_leaves: list[dict[str, float]] = []

    def split(
        self,
        place: tuple[int, bool] | None,
        feature: int,
        threshold: float,
        missing_left: bool,
        categories: Numbers | None = None,
        **known: float,
    ) -> int:
        """Add a node at a place, which sends `categories` left, if given; return its number."""
        number = len(self.feature)
        self._hang(place, number)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.categories.append(categories)
        self.children.append([0, 0])
        self.of_nodes.append(known)
        return number

    def leaf(self, place: tuple[int, bool] | None, value: float, **known: float) -> None:
        """Add a leaf at a place."""
        self._hang(place, ~len(self.value))
        self.value.append(value)
        self.of_leaves.append(known)

    def tree(self, dtype: DTypeLike = np.float64) -> Tree:
        """Return the tree, with thresholds of a type."""
        unknown = {"count": -1.0, "weight": np.nan, "mean": np.nan}
        places = [*self.of_nodes, *self.of_leaves]
        return make_tree(
            self.feature,
            np.array(self.threshold, dtype),
            [pair[0] for pair in self.children],
            [pair[1] for pair in self.children],
            self.missing_left,
            self.value,
            gain=[known.get("gain", 0.0) for known in self.of_nodes],
            categories=self.categories,
            **{name: [place.get(name, none) for place in places] for name, none in unknown.items()},
        )

    def _hang(self, place: tuple[int, bool] | None, number: int) -> None:
        if place is not None:
            self.children[place[0]][0 if place[1] else 1] = number


def joined(
    trees: Sequence[Tree], n_features: int, base: float = 0.0, n_columns: int = 1, *, single: bool
) -> Ensemble:
    """Return the ensemble of trees that were read, after checking it."""
    ensemble = Ensemble.from_trees(trees, n_features, base, n_columns, single)
    try:
        ensemble.check()
    except ValueError as error:
        raise ModelFileError(f"its trees do not fit: {error}") from None
    return ensemble
