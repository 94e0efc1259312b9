"""The learning-to-rank plugins of Elasticsearch and OpenSearch.

Trees (``model/xgboost+json``): features, thresholds, leaves and the sum are float32. A value goes
to the first child if it is below the threshold; missing values go by the rule of the version. The
leaves are added in the order of the trees, from 0 on; an objective may add a sigmoid.

Linear models (``model/linear``): products of float32 numbers, added in float32 in the order of the
feature set; a missing feature is 0. Normalisers come before, and see the 0 of a missing feature.

The order of the feature set is taken to be that in which the model names the features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.parity.uploaded import (
    Fields,
    WalkedTree,
    check_fields,
    objects,
    parsed,
    real,
    whole,
)

SPLIT = ("nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "leaf", "children")
_PLAIN = ("binary:logitraw", "rank:pairwise", "reg:linear")
_SIGMOID = ("binary:logistic", "reg:logistic")


@dataclass(frozen=True)
class Rules:
    """What a version does.

    Attributes
    ----------
    missing : ``"zero"``, ``"right"`` or ``"learned"``: what becomes of a missing value
    needs_missing : whether a split without the field ``missing`` is refused
    checks_missing : whether ``missing`` must be one of the children
    ranking_objectives : whether ``rank:ndcg`` and ``rank:map`` are known
    zero_flag : whether a model may say ``missing_as_zero``
    """

    missing: str
    needs_missing: bool = False
    checks_missing: bool = False
    ranking_objectives: bool = True
    zero_flag: bool = False


@dataclass(frozen=True)
class TreesModel:
    """Trees as the plugin holds them."""

    features: tuple[str, ...]
    trees: tuple[WalkedTree, ...]
    missing: str
    sigmoid: bool

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the plugin's scores."""
        singles = _singles(values)
        if self.missing == "zero":
            singles = np.where(np.isnan(singles), np.float32(0), singles)
        total = np.zeros(len(singles), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for tree in self.trees:
                total += tree.values(singles, self._rule(tree))
            if self.sigmoid:
                exact = total.astype(np.float64)
                total = (1.0 / (1.0 + np.exp(-exact))).astype(np.float32)
        return total.astype(np.float64)

    def _rule(self, tree: WalkedTree) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        def goes_left(x: np.ndarray, node: np.ndarray) -> np.ndarray:
            below: np.ndarray = tree.threshold[node] > x  # never of NaN
            if self.missing == "learned":
                below |= np.isnan(x) & tree.missing_left[node]
            return below

        return goes_left


@dataclass(frozen=True)
class LinearModel:
    """A linear model as the plugin holds it.

    `normalisers` : column -> (what is subtracted, what is divided by), float32
    """

    features: tuple[str, ...]
    weights: np.ndarray
    normalisers: Mapping[int, tuple[np.float32, np.float32]]

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the plugin's scores."""
        singles = _singles(values)
        singles = np.where(np.isnan(singles), np.float32(0), singles)
        total = np.zeros(len(singles), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for column, (shift, scale) in self.normalisers.items():
                singles[:, column] = (singles[:, column] - shift) / scale
            for column, weight in enumerate(self.weights):
                total += weight * singles[:, column]
        return total.astype(np.float64)


def reader(rules: Rules) -> Callable[[bytes], TreesModel | LinearModel]:
    """Return what parses the body of ``_createmodel`` as a version does."""

    def read(content: bytes) -> TreesModel | LinearModel:
        body = parsed(content, "The body of the request")
        model = _model(body)
        definition, kind = model.get("definition"), model.get("type")
        if isinstance(definition, str):
            definition = parsed(definition, "The definition")
        if kind == "model/linear":
            return _linear(definition, _normalisers(model.get("feature_normalizers")))
        if kind != "model/xgboost+json":
            raise ModelFileError(
                f"Models of the type {kind!r} are not emulated, only model/xgboost+json and "
                "model/linear."
            )
        if model.get("feature_normalizers"):
            raise ModelFileError("Normalisers of features are emulated for model/linear only.")
        return _trees(definition, rules)

    return read


def _model(body: object) -> Fields:
    """Return the inner object of a request, with a type and a definition."""
    outer = body.get("model") if isinstance(body, dict) else None
    if not isinstance(outer, dict):
        raise ModelFileError("Missing required value [model].")
    check_fields(outer, ("name", "model"), "[model]")
    inner = outer.get("model")
    if not isinstance(outer.get("name"), str) or not isinstance(inner, dict):
        raise ModelFileError("A model needs a [name] and a [model].")
    check_fields(inner, ("type", "definition", "feature_normalizers"), "[model]")
    if inner.get("definition") is None or not isinstance(inner.get("type"), str):
        raise ModelFileError("The fields [model.type] and [model.definition] are mandatory.")
    return inner


# -- linear models --------------------------------------------------------------------------------


def _linear(
    definition: object, normalisers: Mapping[str, tuple[np.float32, np.float32]]
) -> LinearModel:
    if not isinstance(definition, dict):
        raise ModelFileError("Expected an object of weights.")
    weights = [real(definition, name, "[definition]") for name in definition]
    places = {name: at for at, name in enumerate(definition)}
    for name in normalisers:
        if name not in places:
            places[name] = len(places)
            weights.append(0.0)
    return LinearModel(
        tuple(places), _float32(weights), {places[name]: n for name, n in normalisers.items()}
    )


def _normalisers(given: object) -> dict[str, tuple[np.float32, np.float32]]:
    """Return what is subtracted from features, and what they are then divided by."""
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise ModelFileError("[feature_normalizers] must be an object of objects.")
    found = {}
    for name, one in given.items():
        what = f"the normaliser of {name!r}"
        check_fields(one, ("standard", "min_max"), what)
        if len(one) != 1:
            raise ModelFileError(f"{what}: one kind is needed.")
        [(kind, numbers)] = one.items()
        if kind == "standard":
            check_fields(numbers, ("mean", "standard_deviation"), what)
            shift = np.float32(real({"mean": 0.0, **numbers}, "mean", what))
            scale = np.float32(real(numbers, "standard_deviation", what))
            if not scale > 0:
                raise ModelFileError(f"{what}: the standard deviation must be positive.")
        else:
            check_fields(numbers, ("minimum", "maximum"), what)
            most = float(np.finfo(np.float32).max)
            shift = np.float32(real({"minimum": 0.0, **numbers}, "minimum", what))
            high = np.float32(real({"maximum": most, **numbers}, "maximum", what))
            if shift < 0 or high <= shift:
                raise ModelFileError(f"{what}: 0 <= minimum < maximum is needed.")
            scale = high - shift
        found[name] = (shift, scale)
    return found


# -- trees ----------------------------------------------------------------------------------------


def _trees(definition: object, rules: Rules) -> TreesModel:
    sigmoid, missing = False, rules.missing
    if isinstance(definition, dict):
        known = ("objective", "splits", *(("missing_as_zero",) if rules.zero_flag else ()))
        check_fields(definition, known, "[xgboost_definition]")
        objective = definition.get("objective", "rank:pairwise")
        plain = [*_PLAIN, *(("rank:ndcg", "rank:map") if rules.ranking_objectives else ())]
        if objective not in plain and objective not in _SIGMOID:
            raise ModelFileError(f"Objective [{objective}] is not a valid XGBoost objective.")
        sigmoid = objective in _SIGMOID
        flag = definition.get("missing_as_zero", False)
        if not isinstance(flag, bool):
            raise ModelFileError("[missing_as_zero] must be true or false.")
        missing = "zero" if flag else missing
        if "splits" not in definition:
            raise ModelFileError("XGBoost model missing required field [splits].")
        definition = definition["splits"]
    roots = objects(definition, "An XGBoost model")
    if not roots:
        raise ModelFileError("An XGBoost model must have a tree.")
    places: dict[str, int] = {}
    trees = tuple(_tree(root, rules, places) for root in roots)
    return TreesModel(tuple(places), trees, missing, sigmoid)


def _tree(root: Fields, rules: Rules, places: dict[str, int]) -> WalkedTree:
    """Return a tree; `places` are the columns of the features, inout."""
    feature: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    missing_left: list[bool] = []
    leaves: list[float] = []

    def numbered(fields: Fields) -> int:
        check_fields(fields, SPLIT, "[node]")
        whole(fields, "nodeid", "[node]")
        if fields.get("leaf") is not None:
            leaves.append(real(fields, "leaf", "[node]"))
            return ~(len(leaves) - 1)
        name = fields.get("split")
        pair = objects(fields.get("children"), "[children]")
        if not isinstance(name, str) or len(pair) != 2:
            raise ModelFileError("This split does not have all the required fields.")
        whole(fields, "depth", "[node]")
        yes, no = whole(fields, "yes", "[node]"), whole(fields, "no", "[node]")
        if [pair[0].get("nodeid"), pair[1].get("nodeid")] != [yes, no]:
            raise ModelFileError("Split structure is invalid: yes and no must name the children.")
        has_missing = fields.get("missing") is not None
        if rules.needs_missing and not has_missing:
            raise ModelFileError("This split has no field [missing].")
        missing = whole(fields, "missing", "[node]") if has_missing else no
        if rules.checks_missing and missing not in (yes, no):
            raise ModelFileError("Split structure is invalid: missing must name a child.")
        feature.append(places.setdefault(name, len(places)))
        threshold.append(real(fields, "split_condition", "[node]"))
        missing_left.append(missing == yes)
        children.append([0, 0])
        waiting.append((len(feature) - 1, 1, pair[1]))
        waiting.append((len(feature) - 1, 0, pair[0]))
        return len(feature) - 1

    waiting: list[tuple[int, int, Fields]] = []
    first = numbered(root)
    while waiting:
        parent, side, fields = waiting.pop()
        children[parent][side] = numbered(fields)
    sides = np.array(children, np.int64).reshape(-1, 2)
    return WalkedTree(
        first,
        np.array(feature, np.int64),
        _float32(threshold),
        sides[:, 0],
        sides[:, 1],
        np.array(missing_left, np.bool_),
        _float32(leaves),
    )


def _float32(values: list[float]) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.array(values, np.float64).astype(np.float32)


def _singles(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)
