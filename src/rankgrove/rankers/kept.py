"""What a trained ranker remembers: its features, and the attributes of its model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.exceptions import NotFittedError


class HasFeatures(Protocol):
    """What a ranker remembers of training data: a data set, or what files are together."""

    @property
    def n_features(self) -> int: ...

    @property
    def given_names(self) -> tuple[str, ...] | None: ...

    @property
    def absent(self) -> str: ...


class Kept:
    """The part of a ranker that training fills."""

    _saved: ClassVar[dict[str, str]] = {}  # words of a model file -> attributes

    n_features_in_: int
    feature_names_: tuple[str, ...]
    absent_: str | None = None  # as a data set's `absent`; None: the model file does not say

    def _content(self) -> dict[str, Any]:
        """Return the attributes that a model file holds, by the words it has for them."""
        return {word: getattr(self, name) for word, name in self._saved.items()}

    def _take(self, content: dict[str, Any]) -> None:
        """Take the attributes back."""
        for word, name in self._saved.items():
            setattr(self, name, content[word])

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the features as scikit-learn has them; none where there are none."""
        if not hasattr(self, "feature_names_"):
            raise AttributeError(f"The features of this {type(self).__name__} have no names.")
        return np.array(self.feature_names_, dtype=object)

    def _keep_features(self, train: HasFeatures) -> None:
        """Remember the training data's features: their number, names, and what absent ones are."""
        self.n_features_in_ = train.n_features
        self.absent_ = train.absent
        if train.given_names is not None:
            self.feature_names_ = tuple(train.given_names)
        elif hasattr(self, "feature_names_"):
            del self.feature_names_

    def _names(self) -> Sequence[str]:
        """Return the names of the features; ``f1``, ``f2``, ... where they have none."""
        made_up = (f"f{i + 1}" for i in range(self.n_features_in_))
        return getattr(self, "feature_names_", None) or tuple(made_up)

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} is not trained yet: call fit first.")
