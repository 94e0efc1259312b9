"""Vespa's rank profiles: linear models and nets as ranking expressions, and skeletons for trees.

A linear model is a sum with one term per line, a net one function per input and unit::

    rank-profile web {
        function input_0() {
            expression: if (isNan(bm25(title)), 0.0, (bm25(title) - 2.5) / 1.5)
        }
        function unit_1_0() {
            expression: tanh(0.1 + 0.7 * input_0)
        }
        first-phase {
            expression: 1.5 * unit_1_0
        }
        match-features {
            bm25(title)
        }
    }

All is double. A missing value is replaced by the mean, that is by 0 after scaling. The text is the
file ``schemas/SCHEMA/NAME.profile`` of an application. Features that are not rank features, such as
``title_score``, are functions: the profile inherits them from one called ``NAME_features``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rankgrove.formats.foreign import Categories
from rankgrove.formats.vespa import check_features
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network

MANY_WEIGHTS = 5000  # a net of more is better served as ONNX
_FEATURES = "_features"
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_UNUSABLE = re.compile(r"\W+", re.ASCII)


def write_linear(model: Linear, names: Sequence[str], name: str) -> str:
    """Return a rank profile whose first phase is a linear model, with its intercept."""
    used = np.flatnonzero((model.weights != 0) & (model.scale > 0)).tolist()
    check_features([names[j] for j in used])
    terms = [
        f"{_number(model.weights[j])} * {_scaled(names[j], model.shift[j], model.scale[j])}"
        for j in used
    ]
    if model.intercept or not terms:
        terms = [_number(model.intercept), *terms]
    return _profile(name, [], terms, [names[j] for j in used])


def write_net(net: Network, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return a rank profile whose first phase is a net, and notes."""
    used = np.flatnonzero(net.scale > 0)
    if net.layers:
        used = used[np.any(net.layers[0][0][used] != 0, axis=1)]
    check_features([names[j] for j in used.tolist()])
    prefix = ""
    while any(names[j].startswith((f"{prefix}input_", f"{prefix}unit_")) for j in used.tolist()):
        prefix += "net_"
    functions = [
        (f"{prefix}input_{j}", _scaled(names[j], net.mean[j], net.scale[j], "*"))
        for j in used.tolist()
    ]
    inputs = {j: f"{prefix}input_{j}" for j in used.tolist()}
    for number, (matrix, bias) in enumerate(net.layers, 1):
        units = {unit: f"{prefix}unit_{number}_{unit}" for unit in range(bias.size)}
        for unit, function in units.items():
            terms = [_number(bias[unit]), *_products(matrix[:, unit], inputs)]
            functions.append((function, f"{net.activation}({' + '.join(terms)})"))
        inputs = units
    notes = []
    if net.flat.size > MANY_WEIGHTS:
        notes.append(
            f"The net has {net.flat.size:,} weights, and each of its units is a function of the "
            'rank profile. Vespa runs large nets faster as ONNX: to="onnx" (--to onnx), in an '
            "onnx-model of the schema."
        )
    score = _products(net.output, inputs) or ["0.0"]
    return _profile(name, functions, score, [names[j] for j in used.tolist()]), notes


def profile(
    model: Ensemble | Linear | Network, names: Sequence[str], name: str, categories: Categories
) -> str:
    """Return a skeleton of a rank profile: functions to be filled in, and features to be logged.

    For trees its first phase is the imported model. Linear models and nets are a profile already;
    this is the one that they inherit.
    """
    if isinstance(model, Ensemble):
        used = np.unique(model.feature)
    elif isinstance(model, Linear):
        used = np.flatnonzero((model.weights != 0) & (model.scale > 0))
    else:
        used = np.flatnonzero(model.scale > 0)
    lines = []
    for j in used.tolist():
        if _PLAIN.fullmatch(names[j]):
            kind = "a string" if categories.get(j) else "a number"
            lines += [
                f"    function {names[j]}() {{",
                f"        # replace by what computes it: {kind}",
                f"        expression: attribute({names[j]})",
                "    }",
            ]
    title = _identifier(name)
    if isinstance(model, Ensemble):
        lines += ["    first-phase {", f'        expression: lightgbm("{name}.json")', "    }"]
        lines += _logged([names[j] for j in used.tolist()])
    else:
        title += _FEATURES
    return "\n".join([f"rank-profile {title} {{", *lines, "}"]) + "\n"


def _profile(
    name: str, functions: list[tuple[str, str]], score: list[str], features: list[str]
) -> str:
    title = _identifier(name)
    parent = f" inherits {title}{_FEATURES}" if any(map(_PLAIN.fullmatch, features)) else ""
    lines = [f"rank-profile {title}{parent} {{"]
    for function, expression in functions:
        lines += [f"    function {function}() {{", f"        expression: {expression}", "    }"]
    lines += ["    first-phase {", "        expression {", f"            {score[0]}"]
    lines += [f"            + {term}" for term in score[1:]]
    lines += ["        }", "    }", *_logged(features), "}"]
    return "\n".join(lines) + "\n"


def _logged(features: list[str]) -> list[str]:
    if not features:
        return []
    return ["    match-features {", *(f"        {name}" for name in features), "    }"]


def _products(weights: np.ndarray, inputs: dict[int, str]) -> list[str]:
    return [f"{_number(weights[j])} * {name}" for j, name in inputs.items() if weights[j] != 0]


def _scaled(feature: str, shift: float, scale: float, sign: str = "/") -> str:
    """Return a feature after scaling: 0 where it is missing."""
    value = f"({feature} - {_number(shift)})" if shift else feature
    value = f"{value} {sign} {_number(scale)}" if scale != 1.0 else value
    return f"if (isNan({feature}), 0.0, {value})"


def _number(value: float) -> str:
    """Return a number as Vespa's parser takes it; a negative one in brackets."""
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _identifier(name: str) -> str:
    text = _UNUSABLE.sub("_", name)
    return text if _PLAIN.fullmatch(text) else f"model_{text}"
