"""What a trained ranker remembers: its features, and the attributes of its model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sklearn.exceptions import NotFittedError


class Kept:
    """The part of a ranker that training fills."""

    _saved: ClassVar[dict[str, str]] = {}  # words of a model file -> attributes

    n_features_in_: int
    feature_names_: tuple[str, ...]

    def _content(self) -> dict[str, Any]:
        """Return the attributes that a model file holds, by the words it has for them."""
        return {word: getattr(self, name) for word, name in self._saved.items()}

    def _take(self, content: dict[str, Any]) -> None:
        """Take the attributes back."""
        for word, name in self._saved.items():
            setattr(self, name, content[word])

    def _keep_features(self, n_features: int, names: Sequence[str] | None) -> None:
        """Remember how many features the training data had, and their names if it had any."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_ = tuple(names)
        elif hasattr(self, "feature_names_"):
            del self.feature_names_

    def _names(self) -> Sequence[str]:
        """Return the names of the features; ``f1``, ``f2``, ... where they have none."""
        made_up = (f"f{i + 1}" for i in range(self.n_features_in_))
        return getattr(self, "feature_names_", None) or tuple(made_up)

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} is not trained yet: call fit first.")
