"""A net that scores documents, as a frozen value: a multilayer perceptron or a linear function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError, ModelFileError
from rankgrove.model import sense
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Matrix

ACTIVATIONS = ("tanh", "relu")  # in the order of the kernels' codes
LANES = 4  # numbers per vector: widths are padded to a multiple of this
SERIAL_PRODUCTS = 1 << 20  # fewer multiplications are not worth a second thread


@dataclass(frozen=True, eq=False)
class Network:
    """A function from the features of a document to its score.

    Inputs are standardised, (x - mean) * scale; a missing value (NaN) counts as the mean, that is
    0, and so does every value of a feature whose scale is 0. Every hidden layer is
    activation(inputs @ W + b), and the score is the last layer's units times w. The score has no
    bias, since it would add the same number to all documents.

    Parameters
    ----------
    sizes : number of features, then number of units of every hidden layer; without hidden layers
        the net is a linear function
    flat : all weights, W1 (row by row), b1, W2, b2, ..., w
    mean, scale : one per feature
    activation : ``"tanh"`` or ``"relu"``
    """

    sizes: tuple[int, ...]
    flat: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    activation: str = "tanh"

    def __post_init__(self) -> None:
        check_choice("activation", "Network", self.activation, ACTIVATIONS)
        object.__setattr__(self, "sizes", tuple(int(n) for n in self.sizes))
        for name, n in (
            ("flat", n_weights(self.sizes)),
            ("mean", self.sizes[0]),
            ("scale", self.sizes[0]),
        ):
            array = np.array(getattr(self, name), np.float64)
            if array.shape != (n,):
                raise DataError(
                    f"A net of {' x '.join(map(str, self.sizes))} units has "
                    f"{counted(n, 'number')} in '{name}'. Got an array of shape {array.shape}."
                )
            if not np.isfinite(array).all():
                raise DataError(f"The numbers of a net must be finite; some of '{name}' are not.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    # -- parts ------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.sizes[0]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Number of units of every hidden layer."""
        return self.sizes[1:]

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """W (inputs x units) and b (units) of every hidden layer: views."""
        layers, at = [], 0
        for n_in, n_out in pairwise(self.sizes):
            end = at + n_in * n_out
            layers.append((self.flat[at:end].reshape(n_in, n_out), self.flat[end : end + n_out]))
            at = end + n_out
        return layers

    @property
    def output(self) -> np.ndarray:
        """The weights w of the units of the last layer (of the features, if none is hidden)."""
        return self.flat[self.flat.size - self.sizes[-1] :]

    def with_flat(self, flat: ArrayLike) -> Network:
        """Return the net with other weights, in the order of ``flat``."""
        return replace(self, flat=np.asarray(flat))

    # -- scoring ----------------------------------------------------------------------------------

    def scores(
        self,
        features: Matrix,
        rows: np.ndarray | slice | None = None,
        n_threads: int | None = None,
    ) -> np.ndarray:
        """Return one float64 score per row of float32 `features` (dense or CSR)."""
        from rankgrove.model._mlp_kernels import score_rows

        if features.shape[1] != self.n_features:
            raise DataError(
                f"The net needs {counted(self.n_features, 'feature')}; the data has "
                f"{features.shape[1]}. Give it the same features in the same order."
            )
        chosen = chosen_rows(features, rows)
        scores = np.empty(chosen.size)
        matrix, parameters = matrix_parts(features), spread(self.flat, self.sizes)
        widths, code = filled_widths(self.sizes), ACTIVATIONS.index(self.activation)
        n_used = 1 if chosen.size * parameters.size < SERIAL_PRODUCTS else n_threads
        bad: list[int] = []

        def work(first: int, last: int) -> None:
            at = score_rows(
                matrix, chosen, first, last, self.mean, self.scale, widths, code, parameters, scores
            )
            if at >= 0:
                bad.append(at)

        if chosen.size:
            bounds = parallel.piece_bounds(np.arange(chosen.size + 1), n_used)
            parallel.run_pieces(work, bounds, n_used)
        if bad:
            refuse_infinite(features, chosen[min(bad) :])
        return scores

    # -- the model file ---------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file keeps."""
        return {
            "sizes": np.array(self.sizes, np.int64),
            "flat": self.flat,
            "mean": self.mean,
            "scale": self.scale,
            "activation": np.array([ACTIVATIONS.index(self.activation)], np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Network:
        """Build the net of a model file, or refuse its arrays."""
        missing = {"sizes", "flat", "mean", "scale", "activation"} - set(arrays)
        if missing:
            raise ModelFileError(f"the net has no array {min(missing)!r}.")
        sizes, code = arrays["sizes"], arrays["activation"]
        if sizes.dtype != np.int64 or sizes.ndim != 1 or sizes.size == 0 or sizes.min() < 1:
            raise ModelFileError("the net's sizes must be whole numbers of at least 1.")
        if code.dtype != np.int64 or code.shape != (1,) or not 0 <= code[0] < len(ACTIVATIONS):
            raise ModelFileError("the net has an unknown activation.")
        for name in ("flat", "mean", "scale"):
            if arrays[name].dtype != np.float64:
                raise ModelFileError(f"the net's array {name!r} must be of float64.")
        try:
            for name in ("flat", "mean", "scale"):
                sense.numbers(arrays[name], f"the net's array {name!r}")
            return cls(
                tuple(sizes.tolist()),
                arrays["flat"],
                arrays["mean"],
                arrays["scale"],
                ACTIVATIONS[code[0]],
            )
        except ValueError as error:
            raise ModelFileError(str(error)) from None


def n_weights(sizes: tuple[int, ...]) -> int:
    """Return the number of weights of a net of these sizes."""
    inner = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return inner + sizes[-1]


# -- the form that kernels take -------------------------------------------------------------------


def filled_widths(sizes: tuple[int, ...]) -> np.ndarray:
    """Return the sizes, each padded to a multiple of LANES."""
    return np.array([-(-n // LANES) * LANES for n in sizes], np.int64)


@lru_cache(maxsize=64)
def _places(sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the places of weights in the padded form, which are not biases, and its length."""
    places: list[np.ndarray] = []
    is_factor: list[np.ndarray] = []
    at = 0
    wide = filled_widths(sizes).tolist()
    for layer in range(1, len(sizes)):
        n_in, n_out, width = sizes[layer - 1], sizes[layer], wide[layer]
        inside = np.arange(n_in)[:, None] * width + np.arange(n_out)
        places += [at + inside.ravel(), at + wide[layer - 1] * width + np.arange(n_out)]
        is_factor += [np.ones(n_in * n_out, np.bool_), np.zeros(n_out, np.bool_)]
        at += wide[layer - 1] * width + width
    places.append(at + np.arange(sizes[-1]))
    is_factor.append(np.ones(sizes[-1], np.bool_))
    return np.concatenate(places), np.concatenate(is_factor), at + wide[-1]


def spread(flat: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return weights in the padded form, with zeros between them."""
    places, _, n = _places(sizes)
    parameters = np.zeros(n)
    parameters[places] = flat
    return parameters


def gathered(parameters: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the weights of the padded form: the inverse of :func:`spread`."""
    return parameters[_places(sizes)[0]]


def factors(sizes: tuple[int, ...]) -> np.ndarray:
    """Return 1.0 for every weight that is not a bias, in the padded form."""
    return spread(_places(sizes)[1].astype(np.float64), sizes)


def chosen_rows(features: Matrix, rows: np.ndarray | slice | None) -> np.ndarray:
    """Return `rows` as an array of row numbers."""
    all_rows = np.arange(features.shape[0])
    return all_rows if rows is None else np.ascontiguousarray(all_rows[rows])


def matrix_parts(features: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (dense, data, indices, indptr); the parts of the other kind of matrix are empty.

    All are read-only views, so that kernels are compiled for one type of array.
    """
    if isinstance(features, np.ndarray):
        dense = np.ascontiguousarray(features, np.float32)
        parts = (dense, np.empty(0, np.float32), np.empty(0, np.int32), np.empty(0, np.int64))
    else:
        parts = (
            np.empty((0, features.shape[1]), np.float32),
            features.data.astype(np.float32, copy=False),
            features.indices.astype(np.int32, copy=False),
            features.indptr.astype(np.int64, copy=False),
        )
    views = tuple(part.view() for part in parts)
    for view in views:
        view.flags.writeable = False
    return views  # type: ignore[return-value]


def refuse_infinite(features: Matrix, rows: np.ndarray) -> None:
    """Raise DataError for the first infinite value among `rows`."""
    for first in range(0, rows.size, 4096):
        part = features[rows[first : first + 4096]]
        block = part if isinstance(part, np.ndarray) else part.toarray()
        where = np.argwhere(np.isinf(block))
        if where.size:
            row, column = int(rows[first + where[0, 0]]), int(where[0, 1])
            raise DataError(
                f"A net cannot score infinite values: row {row} has {block[tuple(where[0])]} for "
                f"feature {column + 1}. Replace it by a finite number, or by NaN if it is missing."
            )
