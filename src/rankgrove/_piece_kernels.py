"""Pieces of work that threads take as they become free, inside a parallel kernel."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def next_number(typing_context: Any, counter: Any) -> Any:
    """Return ``counter[0]`` and add 1 to it, in one step: every thread gets another number."""
    signature = types.int64(counter)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return signature, generate
