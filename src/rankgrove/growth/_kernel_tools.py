"""Tools of several kernels of growth: parts of a range, prefetching of rows.

Kernels over rows come in pairs: one does a part of the rows, ``..., part, n_parts)``, the other all
parts in parallel, ``..., n_parts)``. :func:`run_parts` calls the right one: with a single part no
parallel region is entered.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankgrove.jit import njit


@njit(cache=True, inline="always")
def unsigned(row):
    """Return a row number as an index without a test for negative numbers: twice as fast."""
    return np.uint64(np.uint32(row))


@njit(cache=True, inline="always")
def bounds(start, end, part, n_parts):
    """Return where one of n equal parts of a range starts and ends."""
    size = (end - start + n_parts - 1) // n_parts
    low = min(start + part * size, end)
    return low, min(low + size, end)


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the processor to load ``array[index]`` into its cache; changes nothing else."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        address = builder.bitcast(builder.gep(flat.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        load = builder.module.declare_intrinsic("llvm.prefetch", [byte], fnty=kind)
        builder.call(load, [address, word(0), word(3), word(1)])  # to read, keep, data
        return context.get_dummy_value()

    return signature, generate


def run_parts(
    one_part: Callable[..., None],
    all_parallel: Callable[..., None],
    n_parts: int,
    *arguments: object,
) -> None:
    """Run a kernel over its rows in `n_parts` parts; see the module."""
    if n_parts == 1:
        one_part(*arguments, 0, 1)
    else:
        all_parallel(*arguments, n_parts)
