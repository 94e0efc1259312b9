"""Lambdas for PyTorch: trains any torch module that computes scores as LambdaRank; ``rg.torch``.

PyTorch is not a dependency: it is imported when a function here is called.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.errors import DataError, MissingExtraError
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import target_measure
from rankgrove.objectives.lambdas import (
    NETS_BEYOND_CUTOFF,
    LambdaObjective,
    default_truncation,
)
from rankgrove.random import row_keys
from rankgrove.validation import check_choice, check_flag, check_integer, check_real, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

__all__ = ["lambda_loss"]

OWNER = "lambda_loss"
REDUCTIONS = ("mean", "sum")


def lambda_loss(
    scores: Tensor,
    labels: Tensor | ArrayLike,
    measure: str | Measure = "ndcg@10",
    *,
    mask: Tensor | ArrayLike | None = None,
    query_ptr: Tensor | ArrayLike | None = None,
    qid: Tensor | ArrayLike | None = None,
    truncation: int | str | None = "auto",
    beyond_cutoff: bool = True,
    sigma: float = 1.0,
    normalise: bool = False,
    reduction: str = "mean",
    n_threads: int | None = None,
) -> Tensor:
    """Return a loss whose gradient for the scores is minus the lambdas of a measure.

    ``loss.backward()`` passes the lambdas to autograd, so that any torch module that computes
    scores is trained as LambdaRank trains its net. A measure has no gradient: the value of the loss
    is minus the mean of the measure, for monitoring, and autograd gets the lambdas instead of its
    derivatives.

    Parameters
    ----------
    scores : tensor that requires a gradient: queries x documents, padded (with `mask`); or one
        number per document, with queries given by `query_ptr` or `qid`; without both, the whole
        tensor is one query
    labels : tensor or array of the same shape
    measure : a measure or its name
    mask : same shape, True where there is a document; None: everywhere. Masked scores are ignored
        and get the gradient 0
    query_ptr : the borders of queries, from 0 to the number of documents
    qid : the query of every document; those of a query need not be adjacent
    truncation : only pairs count whose better-ranked document is among this number of top ranks;
        ``"auto"``: the measure's cutoff plus 5, or all pairs without cutoff; None: all pairs
    sigma : slope of the sigmoid
    beyond_cutoff, normalise : as in LambdaRank
    reduction : ``"mean"`` over queries, or ``"sum"``
    n_threads : threads to use, None for all cores

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> scores = torch.zeros(2, 3, requires_grad=True)  # doctest: +SKIP
    >>> rg.torch.lambda_loss(scores, [[2, 0, 1], [0, 1, 0]]).backward()  # doctest: +SKIP
    """
    torch = _torch()
    if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
        raise DataError(f"{OWNER} needs scores as a tensor of real numbers. Got {scores!r:.80}.")
    check_choice("reduction", OWNER, reduction, REDUCTIONS)
    batch = _batch(tuple(scores.shape), _array(labels), mask, query_ptr, qid)
    target = target_measure(measure)
    if truncation == "auto":
        truncation = default_truncation(target, NETS_BEYOND_CUTOFF)
    elif truncation is not None:
        truncation = check_integer("truncation", OWNER, truncation, low=1)
    keys = row_keys(np.arange(batch.ptr.size - 1, dtype=np.uint64), batch.ptr)
    objective = LambdaObjective(
        target,
        batch.labels,
        batch.ptr,
        row_keys=keys,
        truncation=truncation,
        beyond_cutoff=check_flag("beyond_cutoff", OWNER, beyond_cutoff),
        sigma=check_real("sigma", OWNER, sigma, above=0.0),
        normalise=normalise,
        n_threads=n_threads,
        may_be_empty=True,
    )
    return _function().apply(scores, objective, batch, reduction, n_threads)


class _Batch(NamedTuple):
    """The documents of a batch in query order: positions in the flat scores, labels, borders."""

    places: np.ndarray
    labels: np.ndarray
    ptr: np.ndarray


def _batch(
    shape: tuple[int, ...],
    labels: np.ndarray,
    mask: Tensor | ArrayLike | None,
    query_ptr: Tensor | ArrayLike | None,
    qid: Tensor | ArrayLike | None,
) -> _Batch:
    """Return which scores belong to which queries."""
    if len(shape) not in (1, 2) or 0 in shape:
        raise DataError(
            f"{OWNER} takes scores of shape (queries, documents) or (documents,), at least one. "
            f"Got shape {shape}."
        )
    if labels.shape != shape:
        raise DataError(
            f"{OWNER}: labels must have the shape of the scores, {shape}. Got {labels.shape}."
        )
    if len(shape) == 2:
        if query_ptr is not None or qid is not None:
            raise DataError(
                f"{OWNER}: scores of two dimensions have one query per row: query_ptr and qid are "
                "for scores of one dimension."
            )
        query = np.repeat(np.arange(shape[0]), shape[1])
    elif query_ptr is not None and qid is not None:
        raise DataError(f"{OWNER}: query_ptr and qid mean the same: give one of them.")
    elif qid is not None:
        query = _queries_of_ids(_array(qid, as_numbers=False), shape)
    else:
        query = _queries_of_borders(query_ptr, shape[0])
    kept = np.ones(query.size, np.bool_)
    if mask is not None:
        flags = _array(mask)
        if flags.shape != shape or not np.isin(flags, (0.0, 1.0)).all():
            raise DataError(
                f"{OWNER}: mask must be True or False for every score, of shape {shape}. Got "
                f"shape {flags.shape}."
            )
        kept = flags.ravel() == 1.0
        if not kept.any():
            raise DataError(f"{OWNER}: the mask leaves no document.")
    places = np.flatnonzero(kept)
    places = places[np.argsort(query[places], kind="stable")]
    _, sizes = np.unique(query[places], return_counts=True)
    kept_labels = labels.ravel()[places]
    if not np.isfinite(kept_labels).all():
        raise DataError(f"{OWNER}: labels must be finite numbers; mask documents without one.")
    return _Batch(places, kept_labels, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))


def _queries_of_ids(ids: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if ids.shape != shape:
        raise DataError(f"{OWNER}: qid must have one id per score, {shape[0]}. Got {ids.shape}.")
    return np.asarray(np.unique(ids, return_inverse=True)[1]).reshape(-1)


def _queries_of_borders(query_ptr: Tensor | ArrayLike | None, n: int) -> np.ndarray:
    ptr = np.array([0, n]) if query_ptr is None else _array(query_ptr)
    fits = ptr.ndim == 1 and ptr.size > 1 and bool((ptr == np.floor(ptr)).all())
    if not fits or ptr[0] != 0 or ptr[-1] != n or bool((np.diff(ptr) < 1).any()):
        refuse(
            "query_ptr",
            OWNER,
            f"whole numbers that rise from 0 to the number of scores ({n})",
            query_ptr,
        )
    return np.repeat(np.arange(ptr.size - 1), np.diff(ptr).astype(np.int64))


def _array(values: Any, as_numbers: bool = True) -> np.ndarray:
    """Return a tensor or array-like object as a NumPy array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values, np.float64 if as_numbers else None)
    except (TypeError, ValueError):
        raise DataError(f"{OWNER} needs numbers. Got {values!r:.80}.") from None


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "rankgrove.torch") from None
    return torch


@cache
def _function() -> Any:
    """Return the autograd function, defined once PyTorch is imported."""
    torch = _torch()
    from torch.autograd.function import once_differentiable

    class LambdaLoss(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """Minus the mean of a measure, with lambdas instead of its derivatives."""

        @staticmethod
        def forward(
            ctx: Any,
            scores: Any,
            objective: LambdaObjective,
            batch: _Batch,
            reduction: str,
            n_threads: int | None,
        ) -> Any:
            flat = scores.detach().reshape(-1).to("cpu", torch.float64).numpy()
            kept_scores = np.ascontiguousarray(flat[batch.places])
            if not np.isfinite(kept_scores).all():
                raise DataError(
                    f"{OWNER}: the scores are no longer finite numbers: training diverged. Lower "
                    "the learning rate."
                )
            gradient, hessian = np.zeros(kept_scores.size), np.zeros(kept_scores.size)
            objective.gradients(kept_scores, gradient, hessian, None, n_threads)
            value, n = _value(objective, batch, kept_scores, n_threads)
            share = 1.0 / n if reduction == "mean" else 1.0
            whole = np.zeros(flat.size)
            whole[batch.places] = -share * gradient
            like = {"dtype": scores.dtype, "device": scores.device}
            ctx.save_for_backward(torch.as_tensor(whole, **like).reshape(scores.shape))
            return torch.as_tensor(-value * share * n, **like)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad_output: Any) -> Any:
            (down,) = ctx.saved_tensors
            return grad_output * down, None, None, None, None

    return LambdaLoss


def _value(
    objective: LambdaObjective, batch: _Batch, scores: np.ndarray, n_threads: int | None
) -> tuple[float, int]:
    """Return the mean of the measure (0 if no query counts), and the number of all queries."""
    prepared = objective.measure.prepare(batch.labels, batch.ptr, n_threads)
    values = prepared.values(rank(scores, batch.ptr, n_threads), n_threads)
    mean = exact_mean(values)
    return (mean if mean == mean else 0.0), batch.ptr.size - 1
