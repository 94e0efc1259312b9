"""A small net as the textbooks write it: the oracle of the kernels that score and train.

Weights are lists of (W, b) for the hidden layers, and w for the score. Everything is NumPy on one
document or one query at a time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def unpack(sizes, flat):
    """Return [(W, b), ...] and w of a flat vector; copies."""
    layers, at = [], 0
    flat = np.array(flat, np.float64)
    for n_in, n_out in pairwise(sizes):
        w = flat[at : at + n_in * n_out].reshape(n_in, n_out)
        at += n_in * n_out
        layers.append((w, flat[at : at + n_out]))
        at += n_out
    return layers, flat[at:]


def standardised(X, mean, scale):
    """Return inputs with mean 0 and deviation 1; what is missing is 0."""
    z = (np.asarray(X, np.float64) - mean) * scale
    return np.where(np.isnan(X), 0.0, z)


def forward(sizes, flat, activation, inputs):
    """Return the activations of every layer, the inputs first, and the scores."""
    layers, w = unpack(sizes, flat)
    rows = [inputs]
    for matrix, bias in layers:
        z = rows[-1] @ matrix + bias
        rows.append(np.tanh(z) if activation == "tanh" else np.maximum(z, 0.0))
    return rows, rows[-1] @ w


def backward(sizes, flat, activation, rows, lambdas):
    """Return the flat sum over documents of lambda_i ds_i/dw."""
    layers, w = unpack(sizes, flat)
    parts = [rows[-1].T @ lambdas]
    delta = np.outer(lambdas, w)
    for layer in range(len(layers) - 1, -1, -1):
        own = rows[layer + 1]
        delta = delta * ((1.0 - own**2) if activation == "tanh" else (own > 0.0))
        parts.append(delta.sum(axis=0))
        parts.append((rows[layer].T @ delta).ravel())
        delta = delta @ layers[layer][0].T
    return np.concatenate(parts[::-1])


def is_factor(sizes):
    """Return which weights are no biases."""
    parts = []
    for n_in, n_out in pairwise(sizes):
        parts += [np.ones(n_in * n_out), np.zeros(n_out)]
    return np.concatenate([*parts, np.ones(sizes[-1])])


class Sgd:
    """Plain steps up the gradient."""

    def __init__(self, sizes, rate, l2=0.0):
        self.rate, self.l2, self.factor = rate, l2, is_factor(sizes)

    def step(self, flat, gradient):
        return flat - self.rate * self.l2 * self.factor * flat + self.rate * gradient


class Adam(Sgd):
    """Kingma and Ba's Adam, upwards, with decoupled shrinking."""

    def __init__(self, sizes, rate, l2=0.0):
        super().__init__(sizes, rate, l2)
        self.m = self.v = 0.0
        self.t = 0

    def step(self, flat, gradient):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        shrunk = flat - self.rate * self.l2 * self.factor * flat
        return shrunk + self.rate * m / (np.sqrt(v) + 1e-8)
