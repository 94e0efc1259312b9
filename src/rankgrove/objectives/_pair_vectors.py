# mypy: ignore-errors
"""One row of pairs in vector code: document i against all documents ranked below it.

A row of a query of 50 documents has few pairs, and a compiler's own vectors spend more time on
beginning and ending a loop than in it. So the loop is written here in vectors of LANES numbers,
the last one filled up with documents that add exactly 0. All sums are made in LANES lanes and
joined in a fixed order: the result is the same on every machine, whatever its vectors' width.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8

_INT = ir.IntType(64)
_REAL = ir.DoubleType()
_VECTOR = ir.VectorType(_REAL, LANES)
_BITS = ir.VectorType(_INT, LANES)
_WITHOUT_SIGN = ir.Constant(_BITS, [0x7FFFFFFFFFFFFFFF] * LANES)


def _constant(x):
    return ir.Constant(_VECTOR, [x] * LANES)


def _absolute(builder, x):
    bits = builder.and_(builder.bitcast(x, _BITS), _WITHOUT_SIGN)
    return builder.bitcast(bits, _VECTOR)


def _spread(builder, x):
    """Return a vector with the number x in all lanes."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), x, ir.Constant(_INT, 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), lanes)


def _joined(builder, x):
    """Return the sum of the lanes: neighbours first, then neighbouring sums."""
    parts = [builder.extract_element(x, ir.Constant(_INT, lane)) for lane in range(LANES)]
    while len(parts) > 1:
        parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


class _Row:
    """The code of one row; arrays by name, and what document i has of each."""

    def __init__(self, context, builder, signature, arguments, names):
        self.builder = builder
        self.i, self.n, self.sigma, self.even = arguments[:4]
        self.data = {}
        for name, kind, value in zip(names, signature.args[4:], arguments[4:], strict=True):
            self.data[name] = context.make_array(kind)(context, builder, value).data

    def at(self, name, place):
        """Return the address of an entry."""
        return self.builder.gep(self.data[name], [place])

    def own(self, name):
        """Return a vector of document i's own entry."""
        return _spread(self.builder, self.builder.load(self.at(name, self.i)))

    def vector(self, name, place):
        """Return the LANES entries from `place` on, and where they stand."""
        where = self.builder.bitcast(self.at(name, place), _VECTOR.as_pointer())
        return self.builder.load(where, align=8), where

    def loop(self, terms):
        """Run over the documents below i; return the sums of up, weight and |up|.

        terms : returns up and weight of a vector of pairs, and, if |up| is to be summed of
            something else, that too
        """
        builder = self.builder
        first = builder.add(self.i, ir.Constant(_INT, 1))
        before = builder.block
        head, body, after = (builder.append_basic_block(n) for n in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        place = builder.phi(_INT)
        sums = [builder.phi(_VECTOR) for _ in range(3)]
        place.add_incoming(first, before)
        for one in sums:
            one.add_incoming(_constant(0.0), before)
        builder.cbranch(builder.icmp_signed("<", place, self.n), body, after)
        builder.position_at_end(body)
        up, weight, *plain = terms(place)
        for name, change in (("lambdas", builder.fsub), ("weights", builder.fadd)):
            old, where = self.vector(name, place)
            builder.store(change(old, up if name == "lambdas" else weight), where, align=8)
        added = [up, weight, _absolute(builder, plain[0] if plain else up)]
        for one, value in zip(sums, added, strict=True):
            one.add_incoming(builder.fadd(one, value), builder.block)
        place.add_incoming(builder.add(place, ir.Constant(_INT, LANES)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return [_joined(builder, one) for one in sums]

    def pair(self, e_i, e, z, apart):
        """Return what document i gains and j loses, and what both get; see _lambda_kernels."""
        b = self.builder
        both = b.fadd(e_i, e)
        q = b.fdiv(_constant(1.0), both if apart is None else b.fmul(both, apart))
        chosen = b.select(b.fcmp_ordered(">", z, _constant(0.0)), e, e_i)
        up = b.fmul(b.fmul(z, q), chosen)
        square = b.fmul(q, q) if apart is None else b.fmul(q, b.fmul(q, apart))
        return up, b.fmul(b.fmul(_absolute(b, z), square), b.fmul(e_i, e))

    def double_pair(self, e_i, e, pushes, apart):
        """Do as `pair` where both documents of a pair push; return also what `pair` would."""
        b = self.builder
        over, under, z = pushes
        both = b.fadd(e_i, e)
        q = b.fdiv(_constant(1.0), both if apart is None else b.fmul(both, apart))
        up = b.fsub(b.fmul(b.fmul(over, q), e), b.fmul(b.fmul(under, q), e_i))
        square = b.fmul(q, q) if apart is None else b.fmul(q, b.fmul(q, apart))
        push = b.fadd(_absolute(b, over), _absolute(b, under))
        chosen = b.select(b.fcmp_ordered(">", z, _constant(0.0)), e, e_i)
        plain = b.fmul(b.fmul(z, q), chosen)
        return up, b.fmul(b.fmul(push, square), b.fmul(e_i, e)), plain


def _row_intrinsic(names, pair_value, double=False):
    """Return an intrinsic of (i, n, sigma, even, *arrays) -> (up, weight, |up|).

    names : of the arrays; pair_value : how a pair's signed |dZ| follows from them; if `double`:
        how both documents push, and that
    """

    def code(context, builder, signature, arguments):
        row = _Row(context, builder, signature, arguments, names)
        own = {name: row.own(name) for name in names if name not in ("lambdas", "weights")}
        sigma = _spread(builder, row.sigma)

        def terms(is_even):
            def at(place):
                z = pair_value(row, own, place)
                e, _ = row.vector("e", place)
                apart = None
                if is_even:
                    s, _ = row.vector("s", place)
                    gap = _absolute(builder, builder.fsub(own["s"], s))
                    apart = builder.fadd(_constant(0.01), builder.fmul(sigma, gap))
                return (row.double_pair if double else row.pair)(own["e"], e, z, apart)

            return at

        results = [cgutils.alloca_once(builder, _REAL) for _ in range(3)]
        with builder.if_else(builder.trunc(row.even, ir.IntType(1))) as (then, otherwise):
            for branch, is_even in ((then, True), (otherwise, False)):
                with branch:
                    for result, total in zip(results, row.loop(terms(is_even)), strict=True):
                        builder.store(total, result)
        return context.make_tuple(
            builder, signature.return_type, [builder.load(result) for result in results]
        )

    return code


def _signature(i, n, sigma, even, arrays):
    real = types.float64
    return types.UniTuple(real, 3)(types.int64, types.int64, real, types.boolean, *arrays)


def _sum_value(row, own, place):
    b = row.builder
    g, _ = row.vector("g", place)
    w, _ = row.vector("w", place)
    return b.fmul(b.fsub(own["g"], g), _absolute(b, b.fsub(own["w"], w)))


def _one_value(row, own, place):
    b = row.builder
    g, _ = row.vector("g", place)
    better = b.select(b.fcmp_ordered(">", own["g"], g), _constant(1.0), _constant(0.0))
    return b.select(b.fcmp_ordered("<", own["g"], g), _constant(-1.0), better)


def _given_value(row, own, place):
    return row.vector("pair", place)[0]


@intrinsic
def sum_row(typing_context, i, n, sigma, even, g, w, s, e, lambdas, weights):
    """Pairs whose |dZ| is |g_i - g_j| |w_i - w_j|."""
    names = ("g", "w", "s", "e", "lambdas", "weights")
    arrays = (g, w, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _sum_value)


@intrinsic
def one_row(typing_context, i, n, sigma, even, g, s, e, lambdas, weights):
    """Pairs of unequal gain, whose |dZ| is 1."""
    names = ("g", "s", "e", "lambdas", "weights")
    arrays = (g, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _one_value)


@intrinsic
def given_row(typing_context, i, n, sigma, even, pair, s, e, lambdas, weights):
    """Pairs whose signed |dZ| is given."""
    names = ("pair", "s", "e", "lambdas", "weights")
    arrays = (pair, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _given_value)


@intrinsic
def double_row(typing_context, i, n, sigma, even, pair, over, under, s, e, lambdas, weights):
    """Pairs in which document i is pushed up by `over` and the other one by `under`.

    The third sum is that of given_row for `pair`.
    """
    names = ("pair", "over", "under", "s", "e", "lambdas", "weights")
    arrays = (pair, over, under, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _given_pushes, True)


def _given_pushes(row, own, place):
    return [row.vector(name, place)[0] for name in ("over", "under", "pair")]


def _click_pushes(row, own, place):
    b = row.builder
    z, zero = _sum_value(row, own, place), _constant(0.0)
    a, _ = row.vector("a", place)
    other, _ = row.vector("b", place)
    over = b.fmul(z, b.fmul(own["a"], other))
    under = b.fmul(b.fsub(zero, z), b.fmul(a, own["b"]))
    better, worse = b.fcmp_ordered(">", z, zero), b.fcmp_ordered("<", z, zero)
    return b.select(better, over, zero), b.select(worse, under, zero), z


def _linear_pushes(row, own, place):
    b = row.builder
    w, _ = row.vector("w", place)
    a, _ = row.vector("a", place)
    z = _absolute(b, b.fsub(own["w"], w))
    return b.fmul(z, own["a"]), b.fmul(z, a), z


@intrinsic
def click_row(typing_context, i, n, sigma, even, g, w, a, b, s, e, lambdas, weights):
    """Do as double_row for |dZ| of sum_row times a of the better document and b of the other."""
    names = ("g", "w", "a", "b", "s", "e", "lambdas", "weights")
    arrays = (g, w, a, b, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _click_pushes, True)


@intrinsic
def linear_row(typing_context, i, n, sigma, even, w, a, s, e, lambdas, weights):
    """Do as double_row where every document pushes itself by |w_i - w_j| a."""
    names = ("w", "a", "s", "e", "lambdas", "weights")
    arrays = (w, a, s, e, lambdas, weights)
    return _signature(i, n, sigma, even, arrays), _row_intrinsic(names, _linear_pushes, True)
