"""Models as ONNX: trees as a TreeEnsembleRegressor (ai.onnx.ml 3), linear models and nets.

Trees with splits on sets of categories become a TreeEnsemble, the operator of ai.onnx.ml 5, whose
BRANCH_MEMBER looks whether a value is in a list.

The input ``features`` is float32 (rows, features), NaN where a value is missing; the output
``score`` is float32 (rows, 1), or (rows, classes). Trees' thresholds and leaves are float32; linear
models and nets are computed in double.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove._version import __version__
from rankgrove.errors import MissingExtraError
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
SET_ML_OPSET = 5  # has sets; TreeEnsembleRegressor is in all versions of runtimes
LEQ, MEMBER = 0, 6  # modes of TreeEnsemble
IN, OUT = "features", "score"


def write_trees(ensemble: Ensemble, name: str, probability: bool = False) -> bytes:
    """Return a model of one TreeEnsembleRegressor, or of a TreeEnsemble if there are sets.

    `probability`: the score is the sigmoid of the sum.
    """
    if ensemble.has_sets:
        return _trees_with_sets(ensemble, name, probability)
    single = ensemble.for_float32()
    nodes: dict[str, list[Any]] = {
        key: []
        for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                    "falsenodeids", "missing_value_tracks_true")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    trees = [single.tree(t) for t in range(single.n_trees)]
    for t, tree in enumerate(trees or [Tree.constant(0.0)] * single.n_columns):
        n, m = tree.n_nodes, tree.n_leaves
        zeros = [0] * m
        left, right = (np.where(c >= 0, c, n + ~c).tolist() for c in (tree.left, tree.right))
        nodes["treeids"] += [t] * (n + m)
        nodes["nodeids"] += range(n + m)
        nodes["featureids"] += [*tree.feature.tolist(), *zeros]
        nodes["values"] += [*tree.threshold.astype(np.float64).tolist(), *([0.0] * m)]
        nodes["modes"] += [*(["BRANCH_LEQ"] * n), *(["LEAF"] * m)]
        nodes["truenodeids"] += [*left, *zeros]
        nodes["falsenodeids"] += [*right, *zeros]
        nodes["missing_value_tracks_true"] += [*tree.missing_left.astype(int).tolist(), *zeros]
        leaves["treeids"] += [t] * m
        leaves["nodeids"] += range(n, n + m)
        leaves["ids"] += [t % single.n_columns] * m
        leaves["weights"] += tree.value.astype(np.float32).astype(np.float64).tolist()
    onnx = _onnx()
    margin = "margin" if probability else OUT
    regressor = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        [IN],
        [margin],
        domain="ai.onnx.ml",
        n_targets=single.n_columns,
        aggregate_function="SUM",
        post_transform="NONE",
        base_values=[float(np.float32(ensemble.base))] * single.n_columns,
        **{f"nodes_{key}": values for key, values in nodes.items()},
        **{f"target_{key}": values for key, values in leaves.items()},
    )
    # a node of its own: onnxruntime ignores the post_transform of a regressor
    last = [onnx.helper.make_node("Sigmoid", [margin], [OUT])] if probability else []
    return _model([regressor, *last], [], ensemble.n_features, single.n_columns, name)


def _trees_with_sets(ensemble: Ensemble, name: str, probability: bool = False) -> bytes:
    """Return a model of one TreeEnsemble, whose nodes and leaves are numbered over all trees.

    A tree of one leaf is a split with the same leaf on both sides, the base a sum.
    """
    onnx, single = _onnx(), ensemble.for_float32()
    of_node = np.repeat(np.arange(single.n_trees), np.diff(single.node_ptr))
    has_nodes = np.diff(single.node_ptr) > 0
    alone = np.flatnonzero(~has_nodes)  # trees of one leaf, whose nodes come last

    def numbered(child: np.ndarray) -> list[int]:
        inner = single.node_ptr[of_node] + child
        through = np.where(child >= 0, inner, single.leaf_ptr[of_node] + ~child)
        return [*through.tolist(), *single.leaf_ptr[alone].tolist()]

    def are_leaves(child: np.ndarray) -> list[int]:
        return [*(child < 0).astype(int).tolist(), *([1] * alone.size)]

    def tensor(values: np.ndarray, dtype: Any = np.float32) -> Any:
        with np.errstate(over="ignore"):
            return onnx.numpy_helper.from_array(np.asarray(values, dtype), "")

    roots = single.node_ptr[:-1].copy()
    roots[alone] = single.feature.size + np.arange(alone.size)
    sets = [single.sets.codes(number) for number in range(len(single.sets))]
    is_member = np.array([s >= 0 and sets[s].size > 0 for s in single.set_of.tolist()], np.bool_)
    # a set without categories is a threshold that no value is below
    split = np.where((single.set_of >= 0) & ~is_member, np.float32(-np.inf), single.threshold)
    members = [np.append(sets[s], np.nan) for s in single.set_of[is_member].tolist()]
    column = np.repeat(np.arange(single.n_trees) % single.n_columns, np.diff(single.leaf_ptr))
    rest = np.zeros(alone.size)
    missing = np.append(single.missing_left, rest).astype(int).tolist()
    summed = "margin" if probability else OUT
    out = "sum" if ensemble.base else summed
    nodes = [
        onnx.helper.make_node(
            "TreeEnsemble",
            [IN],
            [out],
            domain="ai.onnx.ml",
            n_targets=single.n_columns,
            aggregate_function=1,  # sum
            post_transform=0,  # none
            tree_roots=roots.tolist(),
            nodes_featureids=[*single.feature.tolist(), *rest.astype(int).tolist()],
            nodes_splits=tensor(np.append(split, rest)),
            nodes_modes=tensor(np.append(np.where(is_member, MEMBER, LEQ), rest), np.uint8),
            nodes_truenodeids=numbered(single.left),
            nodes_trueleafs=are_leaves(single.left),
            nodes_falsenodeids=numbered(single.right),
            nodes_falseleafs=are_leaves(single.right),
            nodes_missing_value_tracks_true=missing,
            membership_values=tensor(np.concatenate([np.empty(0), *members])),
            leaf_targetids=column.tolist(),
            leaf_weights=tensor(single.value),
        )
    ]
    constants = []
    if ensemble.base:
        constants = [onnx.numpy_helper.from_array(np.array(ensemble.base, np.float32), "base")]
        nodes.append(onnx.helper.make_node("Add", [out, "base"], [summed]))
    if probability:
        nodes.append(onnx.helper.make_node("Sigmoid", [summed], [OUT]))
    n, k = ensemble.n_features, single.n_columns
    return _model(nodes, constants, n, k, name, SET_ML_OPSET)


def write_linear(model: Linear, name: str) -> bytes:
    """Return the model of a weighted sum of the features; a missing value counts as its shift."""
    weight, base = model.raw_weights()
    tensors = {"weights": weight[:, None], "base": np.array([base])}
    steps = [("MatMul", ["filled", "weights"], "sum"), ("Add", ["sum", "base"], "double")]
    return _layers(steps, tensors, model.shift, model.n_features, name)


def write_net(net: Network, name: str) -> bytes:
    """Return the model of a net, including the scaling of inputs."""
    tensors = {"mean": net.mean, "scale": net.scale}
    steps = [("Sub", ["filled", "mean"], "shifted"), ("Mul", ["shifted", "scale"], "layer0")]
    kind = {"tanh": "Tanh", "relu": "Relu"}[net.activation]
    for number, (matrix, bias) in enumerate(net.layers):
        tensors |= {f"W{number}": matrix, f"b{number}": bias}
        steps += [
            ("MatMul", [f"layer{number}", f"W{number}"], f"sum{number}"),
            ("Add", [f"sum{number}", f"b{number}"], f"in{number}"),
            (kind, [f"in{number}"], f"layer{number + 1}"),
        ]
    tensors["output"] = net.output[:, None]
    steps.append(("MatMul", [f"layer{len(net.layers)}", "output"], "double"))
    return _layers(steps, tensors, net.mean, net.n_features, name)


def _layers(
    steps: Sequence[tuple[str, list[str], str]],
    tensors: dict[str, np.ndarray],
    fill: np.ndarray,
    n_features: int,
    name: str,
) -> bytes:
    """Return a model that runs `steps` in double, from ``filled`` (no NaN) to ``double``."""
    onnx = _onnx()
    make = onnx.helper.make_node
    nodes = [
        make("IsNaN", [IN], ["missing"]),
        make("Cast", [IN], ["wide"], to=onnx.TensorProto.DOUBLE),
        make("Where", ["missing", "fill", "wide"], ["filled"]),
        *(make(kind, inputs, [out]) for kind, inputs, out in steps),
        make("Cast", ["double"], [OUT], to=onnx.TensorProto.FLOAT),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.array(array, np.float64), key)
        for key, array in (tensors | {"fill": fill}).items()
    ]
    return _model(nodes, constants, n_features, 1, name)


def _model(
    nodes: list[Any],
    constants: list[Any],
    n_features: int,
    n_columns: int,
    name: str,
    ml_opset: int = ML_OPSET,
) -> bytes:
    onnx = _onnx()
    form = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        name,
        [onnx.helper.make_tensor_value_info(IN, form, [None, n_features])],
        [onnx.helper.make_tensor_value_info(OUT, form, [None, n_columns])],
        constants,
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[
            onnx.helper.make_opsetid("", OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", ml_opset),
        ],
        ir_version=IR_VERSION,
        producer_name="rankgrove",
        producer_version=__version__,
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "formats", "Writing an ONNX model") from None
    return onnx
