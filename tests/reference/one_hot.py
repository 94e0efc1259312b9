"""One column per category, written as the names of the columns say."""

from __future__ import annotations

import numpy as np


def one_hot_rows(rows, names, wanted, categories):
    """The columns `wanted` of some rows: a feature, or 1 where a feature has a category.

    `names` are the features of the rows; `categories` has the names of the codes of some columns.
    """
    found = np.zeros((len(rows), len(wanted)), rows.dtype)
    for j, name in enumerate(wanted):
        if name in names:
            found[:, j] = rows[:, names.index(name)]
            continue
        feature, _, category = name.partition("=")
        column = names.index(feature)
        words = categories.get(column)
        code = int(category) if words is None else words.index(category)
        for i, value in enumerate(rows[:, column]):
            known = value == value and 0 <= value < 2**31
            found[i, j] = 1.0 if known and int(value) == code else 0.0
    return found
