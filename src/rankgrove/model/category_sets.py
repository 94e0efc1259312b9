"""Sets of categories, as nodes of trees hold them: bits, packed into 32-bit words.

The value of a categorical feature is a category's code, a whole number from 0 on. A node that tests
a set sends the codes in the set to the left, and everything else to the right: other codes, codes
that training did not see, and missing values (``missing_left`` may say otherwise for these). A
value that is not whole is cut off, as in LightGBM and XGBoost; a negative one is in no set::

    set_of     -1  0  -1  1  0          per node: its set; -1: the node tests a threshold
    set_ptr    0  1  3                  set s has the words set_ptr[s] .. set_ptr[s+1]-1
    set_words  w0 w1 w2                 code c is bit c % 32 of its set's word c // 32
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

WORD_BITS = 32
MOST_CATEGORIES = 1 << 24  # codes must be lower: float32 holds all of them


class CategorySets:
    """Sets of codes, each stored once.

    Examples
    --------
    >>> sets = CategorySets.of([[0, 3], [40]])
    >>> len(sets), sets.codes(1), sets.holds(0, [3, 4, -1, float("nan"), 1e9])
    (2, array([40]), array([ True, False, False, False, False]))
    """

    def __init__(self, ptr: np.ndarray, words: np.ndarray) -> None:
        self.ptr = np.ascontiguousarray(ptr, np.int64)
        self.words = np.ascontiguousarray(words, np.uint32)
        for array in (self.ptr, self.words):
            array.flags.writeable = False

    @classmethod
    def of(cls, sets: Iterable[Sequence[int] | np.ndarray]) -> CategorySets:
        """Return the sets of these codes."""
        return cls.of_words([words_of(codes) for codes in sets])

    @classmethod
    def of_words(cls, sets: Sequence[np.ndarray]) -> CategorySets:
        """Return the sets of these words."""
        words = np.concatenate([np.empty(0, np.uint32), *sets])
        return cls(np.cumsum([0, *(part.size for part in sets)]), words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CategorySets):
            return NotImplemented
        return np.array_equal(self.ptr, other.ptr) and np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.ptr.tobytes(), self.words.tobytes()))

    def __len__(self) -> int:
        return int(self.ptr.size - 1)

    def words_of(self, number: int) -> np.ndarray:
        """Return the words of a set."""
        return self.words[self.ptr[number] : self.ptr[number + 1]]

    def codes(self, number: int) -> np.ndarray:
        """Return the codes of a set, ascending."""
        return codes_of(self.words_of(number))

    def holds(self, number: int, values: np.ndarray | Sequence[float]) -> np.ndarray:
        """Return for every value whether its category is in a set."""
        words = self.words_of(number)
        values = np.asarray(values, np.float64)
        known = (values >= 0.0) & (values < WORD_BITS * words.size)
        codes = np.where(known, values, 0.0).astype(np.int64)
        held = np.zeros(values.shape, np.bool_)
        if words.size:
            bits = words[codes // WORD_BITS] >> (codes % WORD_BITS).astype(np.uint32)
            held = known & ((bits & np.uint32(1)) == 1)
        return held


NO_SETS = CategorySets(np.zeros(1, np.int64), np.empty(0, np.uint32))


def words_of(codes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the words of a set of codes."""
    numbers = np.unique(np.asarray(codes, np.int64))
    if numbers.size == 0:
        return np.zeros(1, np.uint32)
    if numbers[0] < 0 or numbers[-1] >= MOST_CATEGORIES:
        raise ValueError(f"codes of categories must be between 0 and {MOST_CATEGORIES - 1:,}.")
    bits = np.zeros((int(numbers[-1]) // WORD_BITS + 1) * WORD_BITS, np.uint8)
    bits[numbers] = 1
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def codes_of(words: np.ndarray) -> np.ndarray:
    """Return the codes of a set, ascending."""
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def joined(parts: Sequence[tuple[np.ndarray, CategorySets]]) -> tuple[np.ndarray, CategorySets]:
    """Return the numbers of sets by node, and the sets, of several trees.

    Equal sets become one; sets that no node tests are left out.
    """
    numbers: dict[bytes, int] = {}
    sets: list[np.ndarray] = []
    set_of = [np.empty(0, np.int32)]
    for of_tree, own in parts:
        used = np.unique(of_tree[of_tree >= 0]).tolist()
        if not used:
            set_of.append(of_tree)
            continue
        new = np.full(len(own) + 1, -1, np.int32)
        for s in used:
            words = own.words_of(s)
            key = words.tobytes()
            if key not in numbers:
                numbers[key] = len(sets)
                sets.append(words)
            new[s] = numbers[key]
        set_of.append(new[of_tree])
    return np.concatenate(set_of), CategorySets.of_words(sets)
