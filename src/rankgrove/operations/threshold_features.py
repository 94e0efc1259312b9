"""The SVM-map paper's feature map as a transformer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from rankgrove.data.queries import QueryDataset
from rankgrove.data.thresholds import SPACINGS, indicators, place_thresholds
from rankgrove.errors import DataError
from rankgrove.rankers.given import features_of, frame_names
from rankgrove.validation import check_choice, check_integer, counted, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.rankers.given import Documents


class ThresholdFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn every feature into indicators 1[value > k] of thresholds k.

    A linear model of the indicators is a sum of step functions, one per feature: a piecewise
    constant combination of base functions whose scales need not agree (SVM-map paper, 4.2).
    Rankers do this themselves with ``thresholds=50``.

    Parameters
    ----------
    n_thresholds : maximum number of thresholds of a feature; fewer if some would coincide
    spacing : ``"even"``: at equal distances over the sensitive region; ``"quantile"``: at equal
        shares of the values in it
    region : the shares of a feature's values between which it is sensitive: (0.0, 1.0) is from the
        least to the largest value, (0.01, 0.99) leaves out 1 % at either end

    Attributes
    ----------
    thresholds_ : one array of thresholds per feature, ascending
    n_features_in_ : number of features in training

    Examples
    --------
    >>> import numpy as np
    >>> steps = ThresholdFeatures(n_thresholds=2).fit(np.array([[0.0], [1.0], [2.0]]))
    >>> steps.thresholds_[0].tolist()
    [0.0, 1.0]
    >>> steps.transform(np.array([[-1.0], [0.5], [9.0]])).toarray().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        n_thresholds: int = 50,
        spacing: str = "even",
        region: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.n_thresholds = n_thresholds
        self.spacing = spacing
        self.region = region

    def fit(self, X: Documents, y: ArrayLike | None = None) -> ThresholdFeatures:
        """Place the thresholds.

        Parameters
        ----------
        X : features, dense or sparse, or a data set
        y : not used
        """
        del y
        owner = "ThresholdFeatures"
        check_integer("n_thresholds", owner, self.n_thresholds, low=1, high=65_535)
        check_choice("spacing", owner, self.spacing, SPACINGS)
        low, high = _checked_region(self.region)
        features, rows = features_of(X, f"{owner}.fit")
        placed, ends = place_thresholds(
            features, self.n_thresholds, rows=rows, spacing=self.spacing, region=(low, high)
        )
        self.thresholds_ = [placed[a:b] for a, b in itertools.pairwise(ends.tolist())]
        self.n_features_in_ = int(features.shape[1])
        names = list(X.feature_names) if isinstance(X, QueryDataset) else frame_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Documents) -> Any:
        """Return the indicators as a CSR matrix of float32, one row per row of `X`."""
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("This ThresholdFeatures is not fitted yet: call fit first.")
        features, rows = features_of(X, "ThresholdFeatures.transform")
        if features.shape[1] != self.n_features_in_:
            raise DataError(
                f"ThresholdFeatures was fitted on {counted(self.n_features_in_, 'feature')}; the "
                f"data has {features.shape[1]}. Give it the same features in the same order."
            )
        ends = np.cumsum([0, *(thresholds.size for thresholds in self.thresholds_)])
        placed = np.concatenate([np.empty(0, np.float32), *self.thresholds_])
        return indicators(features if rows is None else features[rows], placed, ends)

    def transform_dataset(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with indicators as features; the rest does not change."""
        return QueryDataset(
            self.transform(data),
            data.y,
            data.qid,
            weight=data.weight,
            docid=data.docid,
            feature_names=self.get_feature_names_out().tolist(),
            query_weight=data.query_weight,
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for every indicator: the feature's, and its threshold."""
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("This ThresholdFeatures is not fitted yet: call fit first.")
        names = input_features
        if names is None:
            plain = [f"x{j}" for j in range(self.n_features_in_)]
            names = getattr(self, "feature_names_in_", plain)
        return np.array(
            [
                f"{name}>{k!s}"
                for name, thresholds in zip(names, self.thresholds_, strict=True)
                for k in thresholds
            ],
            dtype=object,
        )


def _checked_region(region: Any) -> tuple[float, float]:
    try:
        low, high = (float(share) for share in region)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0.0 <= low < high <= 1.0:
        refuse("region", "ThresholdFeatures", "two shares, 0 <= low < high <= 1", region)
    return low, high
