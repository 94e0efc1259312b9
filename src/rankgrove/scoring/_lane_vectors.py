# mypy: ignore-errors
"""Vector code of the lane scorer: a lane is a document, and 64 of them take every step at once.

Four things are written by hand: the search of a value's bin among a feature's thresholds, the
transposition of categories' memberships in sets, the steps of documents down trees, and the sum of
leaf values. What a lane computes depends on its own
document alone, so the scores are the same on every machine, whatever its vectors' width.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64  # documents a vector
TREES = 4  # trees that are walked side by side, so that no step waits for the one before
GROUPS = 16  # of thresholds, in the search of a bin
TURNED = 16  # documents whose values of a feature are brought together at a time
ABREAST = 16  # columns of memberships that are brought together at a time, of TURNED documents
SUMS = 16  # documents whose sums are held in registers
LOWEST = -128  # the bin of a value below all thresholds
HIGHEST = 127  # above all; as a test, one that nothing passes

_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))


def _int(x):
    return ir.Constant(_I64, x)


def _data(context, builder, signature, arguments, which):
    kind = signature.args[which]
    return context.make_array(kind)(context, builder, arguments[which]).data


def _load(builder, base, at, kind):
    """Return a vector of `kind` that begins at an entry of an array."""
    where = builder.bitcast(builder.gep(base, [at]), kind.as_pointer())
    return builder.load(where, align=1)


def _store(builder, vector, base, at):
    where = builder.bitcast(builder.gep(base, [at]), vector.type.as_pointer())
    builder.store(vector, where, align=1)


def _spread(builder, x, lanes):
    """Return a vector with the number x in all lanes."""
    none = ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined)
    one = builder.insert_element(none, x, ir.Constant(_I32, 0))
    to_all = ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
    return builder.shuffle_vector(one, none, to_all)


class _Loop:
    """A loop over a counter from `first` to below `last`, with values that it carries along."""

    def __init__(self, builder, first, last, carried, step=1):
        self._builder, self._step = builder, step
        before = builder.block
        self._head, body, self._after = (
            builder.append_basic_block(name) for name in ("head", "body", "after")
        )
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self.counter = builder.phi(_I64)
        self.counter.add_incoming(first, before)
        self.carried = [builder.phi(one.type) for one in carried]
        for phi, one in zip(self.carried, carried, strict=True):
            phi.add_incoming(one, before)
        builder.cbranch(builder.icmp_signed("<", self.counter, last), body, self._after)
        builder.position_at_end(body)

    def end(self, carried):
        """Close the loop's body, with the values of the next round."""
        builder = self._builder
        for phi, one in zip(self.carried, carried, strict=True):
            phi.add_incoming(one, builder.block)
        following = builder.add(self.counter, _int(self._step))
        self.counter.add_incoming(following, builder.block)
        builder.branch(self._head)
        builder.position_at_end(self._after)


def _wide(context):
    """Return whether the machine has 32 vector registers of 64 bytes."""
    return "+avx512bw" in getattr(context.codegen(), "_tm_features", "")


# -- bins -----------------------------------------------------------------------------------------


class _Row:
    """GROUPS numbers of a table, of which every lane looks up one."""

    def __init__(self, context, builder, base, at, number):
        self._builder, self._number, self._at = builder, number, builder.gep(base, [at])
        self._double = isinstance(number, ir.DoubleType)
        # a whole table in registers, where the machine has instructions for that
        self._in_registers = _wide(context)
        width = GROUPS // (2 if self._double else 1)
        self._vector = ir.VectorType(number, width)
        if self._in_registers:
            self._parts = [
                _load(builder, base, builder.add(at, _int(first)), self._vector)
                for first in range(0, GROUPS, width)
            ]

    def look_up(self, index):
        """Return the entries that the lanes of `index` name."""
        builder, vector = self._builder, self._vector
        if not self._in_registers:
            found = ir.Constant(vector, ir.Undefined)
            for lane in range(vector.count):
                entry = builder.extract_element(index, ir.Constant(_I32, lane))
                value = builder.load(builder.gep(self._at, [entry]))
                found = builder.insert_element(found, value, ir.Constant(_I32, lane))
            return found
        if self._double:
            name = "llvm.x86.avx512.vpermi2var.pd.512"
            given = [self._parts[0], index, self._parts[1]]
        else:
            name, given = "llvm.x86.avx512.permvar.sf.512", [self._parts[0], index]
        kind = ir.FunctionType(vector, [one.type for one in given])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)


def _search(context, builder, signature, arguments):
    """Find the bins of 4 vectors of values; see `bins_of`."""
    values, table, bins = (_data(context, builder, signature, arguments, i) for i in range(3))
    value_at, table_at, n_rows, missing, bin_at = arguments[3:]
    number = context.get_data_type(signature.args[0].dtype)
    lanes = 8 if isinstance(number, ir.DoubleType) else 16
    kind, whole = ir.VectorType(number, lanes), ir.VectorType(ir.IntType(512 // lanes), lanes)

    def constant(x):
        return ir.Constant(whole, [x] * lanes)

    def after(i):
        return _int(i * lanes)

    x = [_load(builder, values, builder.add(value_at, after(i)), kind) for i in range(4)]
    pivots = _Row(context, builder, table, table_at, number)
    place = [constant(1)] * 4  # in the tree of pivots, whose root is 1 and whose leaves are groups
    for _ in range(4):
        for i in range(4):
            above = builder.fcmp_ordered(">", x[i], pivots.look_up(place[i]))
            twice = builder.shl(place[i], constant(1))
            place[i] = builder.or_(twice, builder.zext(above, whole))
    group = [builder.sub(one, constant(GROUPS)) for one in place]
    per_group = _spread(builder, builder.trunc(n_rows, whole.element), lanes)
    first = [builder.add(builder.mul(one, per_group), constant(LOWEST)) for one in group]
    loop = _Loop(builder, _int(1), n_rows, first)
    at = builder.add(table_at, builder.mul(loop.counter, _int(GROUPS)))
    row = _Row(context, builder, table, at, number)
    counts = []
    for i in range(4):
        above = builder.fcmp_ordered(">", x[i], row.look_up(group[i]))
        counts.append(builder.sub(loop.carried[i], builder.sext(above, whole)))
    loop.end(counts)
    to = _spread(builder, builder.trunc(missing, _I8), lanes)
    for i, count in enumerate(loop.carried):
        narrow = builder.trunc(count, ir.VectorType(_I8, lanes))
        is_missing = builder.fcmp_unordered("uno", x[i], x[i])
        chosen = builder.select(is_missing, to, narrow)
        _store(builder, chosen, bins, builder.add(bin_at, after(i)))
    return context.get_dummy_value()


@intrinsic
def bins_of(typing_context, values, table, bins, value_at, table_at, n_rows, missing, bin_at):
    """Write the bins (int8) of 64 float32 or 32 float64 values: LOWEST + thresholds below them.

    A table has `n_rows` rows of GROUPS numbers: the highest threshold of every group but the last,
    as a search tree in level order from entry 1 on, then the other thresholds of every group,
    lowest first, a group a column. A missing value gets the bin `missing`.
    """
    return types.void(values, table, bins, *[types.int64] * 5), _search


def _turn(context, builder, signature, arguments):
    features, at, values = (_data(context, builder, signature, arguments, i) for i in range(3))
    first, feature, to = arguments[3:]
    number = context.get_data_type(signature.args[2].dtype)
    vector = ir.Constant(ir.VectorType(number, TURNED), ir.Undefined)
    for i in range(TURNED):
        row = builder.load(builder.gep(at, [builder.add(first, _int(i))]))
        value = builder.load(builder.gep(features, [builder.add(row, feature)]))
        if value.type != number:
            narrow = isinstance(number, ir.FloatType)
            value = (builder.fptrunc if narrow else builder.fpext)(value, number)
        vector = builder.insert_element(vector, value, ir.Constant(_I32, i))
    _store(builder, vector, values, to)
    return context.get_dummy_value()


@intrinsic
def turn(typing_context, features, at, values, first, feature, to):
    """Write a feature of TURNED documents side by side, rounded where `values` is narrower.

    at : where every document's features begin
    """
    return types.void(features, at, values, *[types.int64] * 3), _turn


def _turn_bytes(context, builder, signature, arguments):
    """Transpose TURNED rows of ABREAST bytes; see `turn_bytes`."""
    table, place, bins = (_data(context, builder, signature, arguments, i) for i in range(3))
    first, column, to, width = arguments[3:]
    kind = ir.VectorType(_I8, ABREAST)
    rows = []
    for i in range(TURNED):
        row = builder.load(builder.gep(place, [builder.add(first, _int(i))]))
        rows.append(_load(builder, table, builder.add(row, column), kind))
    half = ABREAST // 2
    low, high = (
        ir.Constant(
            ir.VectorType(_I32, ABREAST),
            [start + i // 2 + ABREAST * (i % 2) for i in range(ABREAST)],
        )
        for start in (0, half)
    )
    # Every round interleaves row i with row i + half; after four, rows have become columns.
    for _ in range(4):
        pairs = [(rows[i], rows[i + half]) for i in range(half)]
        rows = [builder.shuffle_vector(a, b, how) for a, b in pairs for how in (low, high)]
    for i, row in enumerate(rows):
        _store(builder, row, bins, builder.add(to, builder.mul(width, _int(i))))
    return context.get_dummy_value()


@intrinsic
def turn_bytes(typing_context, table, place, bins, first, column, to, width):
    """Write ABREAST bytes of TURNED documents, a row of `bins` per byte, which are `width` apart.

    table, place : where a document's bytes begin in a table; those from `column` on are taken
    """
    return types.void(table, place, bins, *[types.int64] * 4), _turn_bytes


# -- trees ----------------------------------------------------------------------------------------


def _descend(n_vectors, masked=False):
    """Return the code that brings n_vectors * LANES documents down TREES trees."""
    n_arrays = 7 if masked else 6

    def code(context, builder, signature, arguments):
        arrays = [_data(context, builder, signature, arguments, i) for i in range(n_arrays)]
        number = context.get_data_type(signature.args[5].dtype)
        # all vectors in one loop, or one after the other where they would not fit the registers
        every = range(n_vectors)
        for vectors in [every] if _wide(context) else [[v] for v in every]:
            _descend_some(builder, arrays, arguments[n_arrays:], number, vectors, n_vectors * LANES)
        return context.get_dummy_value()

    return code


def _descend_some(builder, arrays, numbers, number, vectors, width):
    """Bring some vectors of a block that is `width` documents wide down TREES trees."""
    bins, column, test, turn, row, leaf, *masks = arrays
    first, n_steps, row_at = numbers
    leaves, tests = ir.VectorType(number, LANES), ir.VectorType(_I8, LANES)
    last = builder.add(first, builder.mul(n_steps, _int(TREES)))
    nowhere = [ir.Constant(leaves, [0] * LANES)] * (TREES * len(vectors))
    loop = _Loop(builder, first, last, nowhere, step=TREES)
    standing, reached = iter(loop.carried), []
    for tree in range(TREES):
        node = builder.add(loop.counter, _int(tree))
        place = builder.sext(builder.load(builder.gep(column, [node])), _I64)
        at = builder.mul(place, _int(width))
        bound = _spread(builder, builder.load(builder.gep(test, [node])), LANES)
        pair = builder.shl(node, _int(1))
        begin, right = (
            _spread(builder, builder.load(builder.gep(turn, [place])), LANES)
            for place in (pair, builder.add(pair, _int(1)))
        )
        looked_at = [
            _spread(builder, builder.load(builder.gep(mask, [node])), LANES) for mask in masks
        ]
        for v in vectors:
            x = _load(builder, bins, builder.add(at, _int(v * LANES)), tests)
            for mask in looked_at:
                x = builder.and_(x, mask)
            now = next(standing)
            here = builder.icmp_signed("==", now, begin)
            goes = builder.and_(builder.icmp_signed(">", x, bound), here)
            reached.append(builder.select(goes, right, now))
    loop.end(reached)
    standing = iter(loop.carried)
    for tree in range(TREES):
        place = builder.load(builder.gep(row, [builder.add(row_at, _int(tree))]))
        at = builder.mul(builder.sext(place, _I64), _int(width))
        for v in vectors:
            _store(builder, next(standing), leaf, builder.add(at, _int(v * LANES)))


def _descend_signature(*arrays):
    return types.void(*arrays, *[types.int64] * 3)


@intrinsic
def descend_1(typing_context, bins, column, test, turn, row, leaf, first, n_steps, row_at):
    """Write the leaves that LANES documents reach in TREES trees into their rows of `leaf`.

    The leaves of a tree are numbered from left to right. A document stands at the first leaf it
    may still reach; a node whose leaves begin there is on its way, and moves it to the first leaf
    on the right where its bin is above the test. Parents come before children.
    """
    return _descend_signature(bins, column, test, turn, row, leaf), _descend(1)


@intrinsic
def descend_2(typing_context, bins, column, test, turn, row, leaf, first, n_steps, row_at):
    """Like descend_1, but for twice LANES documents."""
    return _descend_signature(bins, column, test, turn, row, leaf), _descend(2)


@intrinsic
def descend_masked_1(
    typing_context, bins, column, test, turn, row, leaf, mask, first, n_steps, row_at
):
    """Like descend_1, but a node compares only those bits of a bin that are in its mask."""
    return _descend_signature(bins, column, test, turn, row, leaf, mask), _descend(1, masked=True)


@intrinsic
def descend_masked_2(
    typing_context, bins, column, test, turn, row, leaf, mask, first, n_steps, row_at
):
    """Like descend_masked_1, but for twice LANES documents."""
    return _descend_signature(bins, column, test, turn, row, leaf, mask), _descend(2, masked=True)


# -- sums -----------------------------------------------------------------------------------------


def _sum(context, builder, signature, arguments):
    """Add the values of leaves to SUMS documents; see `add_leaves`."""
    leaf, value, value_at, sums = (
        _data(context, builder, signature, arguments, i) for i in range(4)
    )
    n_trees, tree, leaf_at, sum_at, tree_step, width = arguments[4:]
    bits = context.get_data_type(signature.args[0].dtype).width
    number = context.get_data_type(signature.args[3].dtype)
    single = isinstance(number, ir.FloatType)
    where = [builder.gep(sums, [builder.add(sum_at, _int(i))]) for i in range(SUMS)]
    at_start = [*(builder.load(one) for one in where), tree, leaf_at]
    loop = _Loop(builder, _int(0), n_trees, at_start)
    *so_far, tree, leaf_at = loop.carried
    table = builder.gep(value, [builder.load(builder.gep(value_at, [tree]))])
    a_word = 64 // bits
    following = []
    for i in range(SUMS):
        if i % a_word == 0:
            place = builder.gep(leaf, [builder.add(leaf_at, _int(i))])
            word = builder.load(builder.bitcast(place, _I64.as_pointer()), align=1)
        shifted = builder.lshr(word, _int(bits * (i % a_word)))
        entry = builder.and_(shifted, _int((1 << bits) - 1))
        added = builder.load(builder.gep(table, [entry]))
        before = builder.fpext(so_far[i], added.type) if single else so_far[i]
        total = builder.fadd(before, added)
        following.append(builder.fptrunc(total, number) if single else total)
    next_leaf = builder.add(leaf_at, builder.mul(tree_step, width))
    loop.end([*following, builder.add(tree, tree_step), next_leaf])
    for one, place in zip(loop.carried, where, strict=False):
        builder.store(one, place)
    return context.get_dummy_value()


@intrinsic
def add_leaves(
    typing_context, leaf, value, value_at, sums,
    n_trees, tree, leaf_at, sum_at, tree_step, width,
):  # fmt: skip
    """Add to SUMS sums the leaf values of n_trees trees, tree_step apart, one after the other.

    leaf : the leaves reached, one row of `width` documents per tree; the first one is at leaf_at
    value, value_at : leaf values, and where those of every tree begin
    Float32 sums are rounded after every tree.
    """
    return types.void(leaf, value, value_at, sums, *[types.int64] * 6), _sum
