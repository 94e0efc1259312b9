"""The sum of several nets as one wide net.

The units of all nets stand side by side in every layer, and see the units of their own net only::

    W2 of the sum = | W2 of a    0      |
                    |    0    W2 of b   |

Inputs are standardised in one way: by the means m1 of the first net, and by the largest scales s1.
First layers make up for the difference: ((x - m) s) W + b is ((x - m1) s1) (W s / s1) + b +
((m1 - m) s) W.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankgrove.model.mlp import Network


def are_alike(nets: Sequence[Network]) -> bool:
    """Return whether nets have the same activation and number of hidden layers, at least one."""
    kinds = {(net.activation, len(net.hidden)) for net in nets}
    return len(kinds) == 1 and len(nets[0].hidden) > 0


def fill_alike(nets: Sequence[Network]) -> bool:
    """Return whether nets take the same numbers for missing values."""
    return all(np.array_equal(net.mean, nets[0].mean) for net in nets)


def net_sum(nets: Sequence[Network], weights: np.ndarray) -> Network:
    """Return the sum of nets that are alike, each times its weight.

    A missing value counts as the mean that the first net knows.
    """
    mean = nets[0].mean
    scale = np.max([net.scale for net in nets], axis=0)  # 0 where it is 0 in all of them
    parts: list[np.ndarray] = []
    for depth in range(len(nets[0].hidden)):
        blocks, biases = [], []
        for net in nets:
            weight, bias = net.layers[depth]
            if depth == 0:
                own = net.scale[:, None] * weight
                bias = bias + (mean - net.mean) @ own
                weight = np.divide(
                    own, scale[:, None], out=np.zeros_like(own), where=scale[:, None] > 0.0
                )
            blocks.append(weight)
            biases.append(bias)
        wide = np.hstack(blocks) if depth == 0 else _diagonal(blocks)
        parts += [wide.reshape(-1), *biases]
    parts += [w * net.output for w, net in zip(weights.tolist(), nets, strict=True)]
    sizes = np.sum([net.hidden for net in nets], axis=0).tolist()
    flat = np.concatenate(parts)
    return Network((nets[0].n_features, *sizes), flat, mean, scale, nets[0].activation)


def _diagonal(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Return a matrix with the blocks along its diagonal."""
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*blocks))
