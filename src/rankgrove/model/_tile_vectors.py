# mypy: ignore-errors
"""A small matrix product in vector code: the whole arithmetic of a net, forward and backward.

The nets here are so small (50 documents x 50 inputs x 10 units) that a compiler's own vectors, or
a call of BLAS, spend more time on beginning and ending than in between. So one tile of the result,
ROWS rows of up to MOST_VECTORS vectors of LANES numbers, is kept in registers while the product's
inner index runs::

    c[i, :] += sum over k of a(i, k) * b[k, :]        i = ROWS rows, : = LANES lanes of a unit each

Every entry is a sum over k in ascending order, one product after the other: the same bits on every
machine, whatever the width of its vectors and the other rows of the tile.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankgrove.model.mlp import LANES

ROWS = LANES  # so that widths filled up to LANES are whole rows too
MOST_VECTORS = 3  # ROWS * MOST_VECTORS sums, and what is added to them, fit into 16 registers

_INT = ir.IntType(64)
_REAL = ir.DoubleType()
_VECTOR = ir.VectorType(_REAL, LANES)
_NONE = ir.Constant(_VECTOR, ir.Undefined)
_TO_ALL = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


def _spread(builder, x):
    """Return a vector with the number x in all lanes."""
    one = builder.insert_element(_NONE, x, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, _NONE, _TO_ALL)


def _tile(n_vectors):
    """Return the code of a tile of ROWS rows of the given number of vectors."""

    def code(context, builder, signature, arguments):
        def data(which):
            kind = signature.args[which]
            return context.make_array(kind)(context, builder, arguments[which]).data

        def vector(base, place, v):
            at = builder.add(place, ir.Constant(_INT, v * LANES))
            return builder.bitcast(builder.gep(base, [at]), _VECTOR.as_pointer())

        def times(n, x):
            return builder.mul(ir.Constant(_INT, n), x)

        n_inner, a_first, a_row, a_inner, b_first, c_first, width = arguments[3:]
        a, b, c = data(0), data(1), data(2)
        tile = [(i, v) for i in range(ROWS) for v in range(n_vectors)]
        to = [vector(c, builder.add(c_first, times(i, width)), v) for i, v in tile]
        before = [builder.load(where, align=8) for where in to]

        entry = builder.block
        head, body, after = (builder.append_basic_block(n) for n in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k, a_at, b_at = (builder.phi(_INT) for _ in range(3))
        sums = [builder.phi(_VECTOR) for _ in tile]
        for name, first in ((k, ir.Constant(_INT, 0)), (a_at, a_first), (b_at, b_first)):
            name.add_incoming(first, entry)
        for one, first in zip(sums, before, strict=True):
            one.add_incoming(first, entry)
        builder.cbranch(builder.icmp_signed("<", k, n_inner), body, after)

        builder.position_at_end(body)
        row = [builder.load(vector(b, b_at, v), align=8) for v in range(n_vectors)]
        for i in range(ROWS):
            factor = builder.load(builder.gep(a, [builder.add(a_at, times(i, a_row))]))
            factor = _spread(builder, factor)
            for v in range(n_vectors):
                one = sums[i * n_vectors + v]
                one.add_incoming(builder.fadd(one, builder.fmul(factor, row[v])), body)
        k.add_incoming(builder.add(k, ir.Constant(_INT, 1)), body)
        a_at.add_incoming(builder.add(a_at, a_inner), body)
        b_at.add_incoming(builder.add(b_at, width), body)
        builder.branch(head)

        builder.position_at_end(after)
        for one, where in zip(sums, to, strict=True):
            builder.store(one, where, align=8)
        return context.get_dummy_value()

    return code


def _signature(a, b, c):
    return types.void(a, b, c, *[types.int64] * 7)


@intrinsic
def tile_1(context, a, b, c, n_inner, a_first, a_row, a_inner, b_first, c_first, width):
    """Add to ROWS rows of LANES numbers each, from c[c_first] on.

    a(i, k) = a[a_first + i * a_row + k * a_inner]; the rows of b and c are `width` long.
    """
    return _signature(a, b, c), _tile(1)


@intrinsic
def tile_2(context, a, b, c, n_inner, a_first, a_row, a_inner, b_first, c_first, width):
    """Like tile_1, but for rows of twice LANES numbers."""
    return _signature(a, b, c), _tile(2)


@intrinsic
def tile_3(context, a, b, c, n_inner, a_first, a_row, a_inner, b_first, c_first, width):
    """Like tile_1, but for rows of three times LANES numbers."""
    return _signature(a, b, c), _tile(3)


@intrinsic
def bits_of(context, x):
    """Return the 64 bits of a float64 as an int64."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], _INT)

    return types.int64(types.float64), code


@intrinsic
def real_of(context, x):
    """Return the float64 whose 64 bits are those of an int64."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], _REAL)

    return types.float64(types.int64), code
