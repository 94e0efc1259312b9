"""Mirrored evaluators of RankLib, Solr, Elasticsearch LTR and Vespa.

They are not those programs, but follow their rules as their sources have them, slowly and in plain
words: what they read, how a split decides, in which arithmetic scores are added up.
"""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import numpy as np

f32 = np.float32


def ranklib(text: str, rows: np.ndarray) -> np.ndarray:
    """RankLib: ``##`` lines are skipped, lines are joined; children are found by position."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("##")]
    trees = ElementTree.fromstring("".join(lines)).findall("tree")

    def output(node, row):
        while node[0].tag == "feature":
            x = row[int(node[0].text) - 1]
            x = f32(0) if math.isnan(x) else f32(x)  # an unknown value is 0
            node = node[2] if x <= f32(node[1].text) else node[3]
        return float(f32(node[0].text))  # a float, kept in a double

    scores = []
    for row in rows:
        total = f32(0)
        for tree in trees:
            total = f32(float(total) + output(tree[0], row) * float(f32(tree.get("weight"))))
        scores.append(float(total))
    return np.array(scores)


def ranklib_weights(line: str, rows: np.ndarray) -> np.ndarray:
    """RankLib's linear models: double terms one after the other; feature 0 is where they begin."""
    terms = [(int(f), float(w)) for f, w in (t.split(":") for t in line.split("#")[0].split())]
    scores = []
    for row in rows:
        total = sum((weight for feature, weight in terms if feature == 0), 0.0)
        for feature, weight in terms:
            if feature > 0:
                x = row[feature - 1]
                total += weight * (0.0 if math.isnan(x) else float(f32(x)))
        scores.append(total)
    return np.array(scores)


def ranklib_stumps(line: str, rows: np.ndarray) -> np.ndarray:
    """RankLib's RankBoost: a float32 value above a double threshold earns a double weight."""
    terms = [tuple(map(float, term.split(":"))) for term in line.split()]
    scores = []
    for row in rows:
        total = 0.0
        for feature, threshold, weight in terms:
            x = row[int(feature) - 1]
            x = 0.0 if math.isnan(x) else float(f32(x))
            total += weight * (1 if x > threshold else 0)
        scores.append(total)
    return np.array(scores)


def solr(text: str, names: list[str], rows: np.ndarray, defaults: dict | None = None) -> np.ndarray:
    """Solr: a feature is found by its name, one that a document lacks has its default, or 0.

    With "isNullSameAsZero" false, the feature store is taken to have the default "NaN".
    """
    model = json.loads(text)
    columns = [names.index(one["name"]) for one in model["features"]]
    place = {one["name"]: at for at, one in enumerate(model["features"])}
    kind = model["class"].rpartition(".")[2]
    nulls = model["params"].get("isNullSameAsZero", True) is False

    def tree_score(node, x):
        while "feature" in node:
            threshold = f32(f32(node["threshold"]) + f32(1e-6))
            value = x[place[node["feature"]]]
            left = node["missing"] == "left" if np.isnan(value) else value <= threshold
            node = node["left"] if left else node["right"]
        return f32(node["value"])

    def read(row):
        made = np.array(row, f32)
        for at, one in enumerate(model["features"]):
            if np.isnan(made[at]):
                if nulls:
                    continue
                made[at] = f32((defaults or {}).get(one["name"], 0))
            if "norm" in one:
                assert one["norm"]["class"].endswith(".StandardNormalizer")
                params = one["norm"]["params"]
                with np.errstate(over="ignore"):
                    made[at] = (made[at] - f32(params["avg"])) / f32(params["std"])
        return made

    scores = []
    for row in map(read, rows[:, columns]):
        if kind == "MultipleAdditiveTreesModel":
            total = f32(0)
            for tree in model["params"]["trees"]:
                total = f32(total + f32(f32(tree["weight"]) * tree_score(tree["root"], row)))
        elif kind == "LinearModel":
            weights = model["params"]["weights"]
            total = f32(0)
            for at, one in enumerate(model["features"]):
                total = f32(total + f32(f32(weights[one["name"]]) * row[at]))
        else:
            assert kind == "NeuralNetworkModel"
            value = row
            for layer in model["params"]["layers"]:
                matrix, bias = (np.array(layer[key], f32) for key in ("matrix", "bias"))
                assert matrix.shape == (bias.size, value.size)
                activation = {
                    "tanh": np.tanh,
                    "relu": lambda v: np.maximum(v, 0),
                    "identity": lambda v: v,
                }[layer["activation"]]
                value = activation((matrix @ value + bias).astype(f32)).astype(f32)
            (total,) = value
        scores.append(float(total))
    return np.array(scores)


def elasticsearch(text: str, names: list[str], rows: np.ndarray) -> np.ndarray:
    """The plugin: the first child is `yes`, for x strictly below the threshold; no base score."""
    model = json.loads(text)["model"]["model"]
    definition = json.loads(model["definition"])
    filled = np.nan_to_num(rows.astype(f32), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if model["type"] == "model/linear":
        weights = np.zeros(len(names), f32)
        for name, weight in definition.items():
            weights[names.index(name)] = f32(weight)
        return (filled * weights).sum(axis=1).astype(np.float64)
    assert model["type"] == "model/xgboost+json"

    def check(node):
        if "leaf" in node:
            assert set(node) == {"nodeid", "leaf"}
            return
        yes, no = node["children"]
        assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
        assert node["missing"] in (node["yes"], node["no"])
        assert node["split"] in names
        assert node["depth"] >= 0
        check(yes)
        check(no)

    scores = []
    for tree in definition:
        check(tree)
    for row in filled:
        total = f32(0)
        for node in definition:
            while "leaf" not in node:
                left = f32(node["split_condition"]) > row[names.index(node["split"])]
                node = node["children"][0 if left else 1]
            total = f32(total + f32(node["leaf"]))
        scores.append(float(total))
    return np.array(scores)


def vespa(text: str, documents: list[dict[str, float | str]], large: bool = False) -> np.ndarray:
    """Vespa: a LightGBM dump becomes ranking expressions; features have numbers or strings.

    `large`: as in large models, whose constants are float32 (sets of categories are not).
    """
    model = json.loads(text)
    names, infos = model["feature_names"], model["feature_infos"]
    assert model["objective"] == "lambdarank"  # others may be wrapped in sigmoid() or exp()
    categorical = [j for j, name in enumerate(names) if infos[name]["values"]]
    values_of = dict(zip(categorical, model["pandas_categorical"], strict=True))

    def constant(value):
        with np.errstate(over="ignore"):
            return float(f32(value)) if large else value

    def condition(node, x):
        if node["decision_type"] == "==":
            values = values_of[node["split_feature"]]
            texts = not all(type(value) is int for value in values)  # else they are numbers
            chosen = [values[int(code)] for code in node["threshold"].split("||")]
            inside = type(x) is (str if texts else float) and x in chosen
            return inside or (node["default_left"] and x != x)
        assert type(x) is float  # strings have no order
        threshold = constant(node["threshold"])
        return not x >= threshold if node["default_left"] else x < threshold

    scores = []
    for document in documents:
        total = 0.0
        for tree in model["tree_info"]:
            node = tree["tree_structure"]
            while "left_child" in node:
                x = document[names[node["split_feature"]]]
                node = node["left_child" if condition(node, x) else "right_child"]
            total += constant(node["leaf_value"])
        scores.append(total)
    return np.array(scores)
