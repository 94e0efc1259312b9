"""Models as ONNX: trees as a TreeEnsembleRegressor (ai.onnx.ml 3), linear models and nets.

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
IN, OUT = "features", "score"


def write_trees(ensemble: Ensemble, name: str) -> bytes:
    """Return a model of one TreeEnsembleRegressor."""
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
    regressor = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        [IN],
        [OUT],
        domain="ai.onnx.ml",
        n_targets=single.n_columns,
        aggregate_function="SUM",
        post_transform="NONE",
        base_values=[float(np.float32(ensemble.base))] * single.n_columns,
        **{f"nodes_{key}": values for key, values in nodes.items()},
        **{f"target_{key}": values for key, values in leaves.items()},
    )
    return _model([regressor], [], ensemble.n_features, single.n_columns, name)


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
    nodes: list[Any], constants: list[Any], n_features: int, n_columns: int, name: str
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
            onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET),
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
