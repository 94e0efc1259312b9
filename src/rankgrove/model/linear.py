"""Linear models: one weight per feature, or one weight per threshold of a feature.

With thresholds a score is a sum of step functions, one per feature: the weights of all thresholds
below the value of the feature (SVM-map paper, section 4.2 and Figure 2). The thresholds of all
features are stored one after the other, ascending within a feature; those of feature j, and their
weights, are at ``threshold_ptr[j]`` up to but not including ``threshold_ptr[j + 1]``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.model import sense
from rankgrove.model.store import needed

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# How features are scaled: not at all; by mean and deviation of the training data; to [0, 1] within
# every query; to the share of the documents of the query that are lower.
SCALINGS = ("none", "standard", "query", "percentile")
BY_QUERY = ("query", "percentile")
_TYPES = {"thresholds": np.float32, "threshold_ptr": np.int64}


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model.

    Attributes
    ----------
    n_features : number of columns of the data
    weights : one per feature; with thresholds, one per threshold
    scaling : one of ``SCALINGS``
    shift, scale : one per feature: a scaled value is (value - shift) / scale. A missing value is 0
        after scaling, and so is every value of a feature whose scale is 0. Neither is used with
        thresholds
    thresholds, threshold_ptr : of all features (see above); both empty: no thresholds
    intercept : the start value of every score
    """

    n_features: int
    weights: np.ndarray
    scaling: str
    shift: np.ndarray
    scale: np.ndarray
    thresholds: np.ndarray
    threshold_ptr: np.ndarray
    intercept: float = 0.0

    def __post_init__(self) -> None:
        for name in ("weights", "shift", "scale", "thresholds", "threshold_ptr"):
            dtype: DTypeLike = _TYPES.get(name, np.float64)
            array = np.ascontiguousarray(getattr(self, name), dtype).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def has_thresholds(self) -> bool:
        """Whether the weights belong to thresholds."""
        return bool(self.threshold_ptr.size)

    def raw_weights(self) -> tuple[np.ndarray, float]:
        """Return the weights and the intercept for features that are not scaled."""
        used = self.scale > 0.0
        weight = np.divide(self.weights, self.scale, out=np.zeros(self.n_features), where=used)
        return weight, self.intercept - float((weight * self.shift)[used].sum())

    def by_feature(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the thresholds and weights of every feature; without thresholds, its weight."""
        if not self.has_thresholds:
            return [(np.empty(0, np.float32), self.weights[j : j + 1]) for j in self._features()]
        ends = self.threshold_ptr
        return [
            (self.thresholds[ends[j] : ends[j + 1]], self.weights[ends[j] : ends[j + 1]])
            for j in self._features()
        ]

    def influence(self) -> np.ndarray:
        """Return how far every feature can move a score.

        With thresholds, the difference of its highest and lowest step; without, the absolute value
        of its weight, which is the effect of one unit of the scaled feature.
        """
        if not self.has_thresholds:
            return np.abs(self.weights)
        spans = np.zeros(self.n_features)
        for j, (_, weight) in enumerate(self.by_feature()):
            steps = np.concatenate([[0.0], np.cumsum(weight)])
            spans[j] = steps.max() - steps.min()
        return spans

    def _features(self) -> range:
        return range(self.n_features)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything as named arrays, for the model file."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays["n_features"] = np.array(self.n_features)
        arrays["intercept"] = np.array(self.intercept)
        arrays["scaling"] = np.array(SCALINGS.index(self.scaling))
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Linear:
        """Build from named arrays; refuse arrays that do not fit together."""
        values = needed(arrays, (f.name for f in fields(cls)))
        try:
            for name in ("weights", "shift", "scale", "thresholds", "threshold_ptr"):
                sense.typed(values[name], _TYPES.get(name, np.float64), f"the array {name!r}")
            values["n_features"] = sense.whole(values["n_features"], "n_features")
            values["intercept"] = sense.number(values["intercept"], "intercept")
            code = sense.whole(values["scaling"], "scaling", high=len(SCALINGS) - 1)
            values["scaling"] = SCALINGS[code]
            model = cls(**values)
            model.check()
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"The weights of the model file do not fit: {error}") from None
        return model

    def check(self) -> None:
        """Raise ValueError unless the arrays fit together."""
        for name in ("weights", "shift", "scale"):
            sense.numbers(getattr(self, name), name)
        sense.number(self.intercept, "intercept")
        if self.shift.shape != (self.n_features,) or self.scale.shape != (self.n_features,):
            raise ValueError("one shift and one scale per feature are needed.")
        if np.any(self.scale < 0.0):
            raise ValueError("a negative scale.")
        if not self.has_thresholds:
            if self.weights.shape != (self.n_features,) or self.thresholds.size:
                raise ValueError("one weight per feature is needed.")
            with np.errstate(all="ignore"):
                weights, intercept = self.raw_weights()
            sense.numbers(np.append(weights, intercept), "weights of unscaled features")
            return
        if self.threshold_ptr.size != self.n_features + 1:
            raise ValueError("wrong borders of thresholds.")
        sense.borders(self.threshold_ptr, self.thresholds.size, "thresholds")
        if self.weights.shape != self.thresholds.shape:
            raise ValueError("one weight per threshold is needed.")
        if not all(np.all(np.diff(thresholds) > 0) for thresholds, _ in self.by_feature()):
            raise ValueError("thresholds that do not ascend.")
        if np.isnan(self.thresholds).any():
            raise ValueError("a threshold that is not a number.")
