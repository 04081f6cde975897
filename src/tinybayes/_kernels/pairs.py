"""Counting all pairs of features given the class, and what one says about the other.

The counts of one feature with the features after it form a block with the axes (value of the feature, class, slot):
each of the other features has as many slots, next to each other, as it has states.

Unweighted rows are counted as bits: with the rows sorted by class, a slot is a set of rows, and a count is the size of
the intersection of two of them, 64 rows an instruction or more. Where the processor counts the ones of eight words at a
time, `add_pairs` makes the sets of a stretch of rows at once, and every class begins with a word of its own.
"""

from functools import cache

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from tinybayes._kernels import jit
from tinybayes._kernels.bit_counts import ones

ROWS = 2**15  # rows at a time in `add_pairs`: their sets stay in the cache


@jit
def set_bits(X, bit_of, first, words):
    """Mark row after row in the sets of its slots; row ``r`` is bit ``bit_of[r]``, or nowhere if that is negative.

    Feature ``j`` has the slots from ``first[j]`` on. `words` has the shape (words, slots), so that one word of all
    slots lies together.
    """
    for row in range(X.shape[0]):
        if bit_of[row] < 0:
            continue
        bit = np.uint64(1) << np.uint64(bit_of[row] & 63)
        word = words[bit_of[row] >> 6]
        for j in range(X.shape[1]):
            if X[row, j] >= 0:
                word[first[j] + X[row, j]] |= bit


@jit
def add_bit_counts(words, class_first, own, start, block):
    """Add to a block the sizes of the intersections of the slots from `own` on with those from `start` on.

    Class ``c`` has the words ``class_first[c]..class_first[c + 1]``.
    """
    for value in range(block.shape[0]):
        for c in range(block.shape[1]):
            counts = block[value, c]
            for w in range(class_first[c], class_first[c + 1]):
                mine = words[w, own + value]
                if mine != 0:
                    others = words[w, start : start + counts.shape[0]]
                    for slot in range(counts.shape[0]):
                        counts[slot] += ones(mine & others[slot])


@jit
def add_row_counts(columns, y, weight, own, start, first, block):
    """Add to a block the rows one by one, with their weights.

    `columns` holds a variable a row, so that the rows of the data lie next to each other; ``first[k]`` is where the
    slots of the feature ``start + k`` begin in the block.
    """
    _, classes, slots = block.shape
    counts = block.reshape(-1)
    rows = columns.shape[1]
    line = np.empty(rows, np.int64)  # where the slots of the row's value and class begin, or -1
    for row in range(rows):
        value, label = columns[own, row], y[row]
        line[row] = (value * classes + label) * slots if value >= 0 and label >= 0 else -1
    for k in range(first.shape[0] - 1):
        values = columns[start + k]
        begin = first[k]
        for row in range(rows):
            if line[row] >= 0 and values[row] >= 0:
                counts[line[row] + begin + values[row]] += 1.0 if weight is None else weight[row]


@jit
def block_information(block, first, table, out):
    """Mutual information, given the class and in nats, of a feature and each of those in its block.

    With ``f(n) = n log n`` summed over the cells of a marginal, ``N I = f(own, other, class) + f(class) -
    f(own, class) - f(other, class)``. `table` holds the first values of ``f``.
    """
    values, classes, slots = block.shape
    others = first.shape[0] - 1
    by_other = np.zeros((classes, slots))
    by_class = np.zeros((classes, others))
    out[:] = 0.0
    for value in range(values):
        for c in range(classes):
            for k in range(others):
                own, terms = 0.0, 0.0
                for slot in range(first[k], first[k + 1]):
                    n = block[value, c, slot]
                    own += n
                    terms += _xlogx(n, table)
                    by_other[c, slot] += n
                out[k] += terms - _xlogx(own, table)
                by_class[c, k] += own
    for k in range(others):
        total = 0.0
        for c in range(classes):
            total += by_class[c, k]
            out[k] += _xlogx(by_class[c, k], table)
            for slot in range(first[k], first[k + 1]):
                out[k] -= _xlogx(by_other[c, slot], table)
        out[k] = max(0.0, out[k] / total) if total > 0 else 0.0


@jit
def xlogx_table(size):
    """Return ``n log n`` for the integers below `size`."""
    table = np.zeros(size)
    for n in range(1, size):
        table[n] = n * np.log(n)
    return table


@jit
def _xlogx(n, table):
    whole = np.int64(n)
    if whole == n and whole < table.shape[0]:
        return table[whole]
    return n * np.log(n)


@cache
def has_wide_popcount() -> bool:
    """Tell whether the processor counts the ones of eight words by one instruction."""
    return bool(binding.get_host_cpu_features().get("avx512vpopcntdq", False))


@intrinsic
def _equal(typing_context, values, position, wanted):
    """Return as bits which of the 64 bytes from a position on have a value."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(ir.IntType(8), 64)
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        loaded = builder.load(pointer)
        loaded.align = 1
        empty = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(empty, arguments[2], ir.Constant(ir.IntType(32), 0))
        all_of_them = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64))
        return builder.bitcast(builder.icmp_signed("==", loaded, all_of_them), ir.IntType(64))

    return types.uint64(values, types.int64, types.int8), generate


@jit
def add_pairs(columns, y, states, classes, first, second, pair_offset, own_offset, counts):
    """Add the rows to the tables of pairs, with the axes (first, second, class), and of features, (feature, class).

    `columns` holds a feature a row, codes in one byte, -1 where missing.
    """
    features = states.shape[0]
    slot = np.zeros(features + 1, np.int64)
    for j in range(features):
        slot[j + 1] = slot[j] + states[j]
    most = ROWS // 64 + 8 * classes
    sets = np.empty((slot[features], most), np.uint64)
    sizes = np.empty((slot[features], classes), np.int64)
    whole = np.empty(features, np.bool_)  # features without a gap in these rows
    order, buffer = np.empty(ROWS, np.int32), np.empty(most * 64, np.int8)
    first_row = np.empty(classes + 1, np.int64)  # the first row of each class in the order
    word = np.empty(classes + 1, np.int64)  # and the first word
    for low in range(0, y.shape[0], ROWS):
        high = min(low + ROWS, y.shape[0])
        _sort(y[low:high], order, first_row, word)
        for j in range(features):
            _gather(columns[j, low:high], order, first_row, word, buffer)
            mine = slice(slot[j], slot[j + 1])
            known = _make_sets(buffer, word, sets[mine], sizes[mine], counts[own_offset[j] :])
            whole[j] = known == first_row[classes]
        for pair in range(pair_offset.shape[0]):
            i, j = first[pair], second[pair]
            mine, others = slice(slot[i], slot[i + 1]), slice(slot[j], slot[j + 1])
            of_pair = counts[pair_offset[pair] :]
            _intersect(sets[mine], sets[others], sizes[mine], sizes[others], whole[i], whole[j], word, of_pair)


@jit
def _make_sets(buffer, word, sets, sizes, counts):
    """Make the sets of a feature, add their sizes to its table, and return how many rows are in one of them."""
    classes, known = word.shape[0] - 1, 0
    for value in range(sets.shape[0]):
        for w in range(word[classes]):
            sets[value, w] = _equal(buffer, w * 64, np.int8(value))
        for c in range(classes):
            size = _size(sets[value, word[c] : word[c + 1]])
            sizes[value, c] = size
            counts[value * classes + c] += size
            known += size
    return known


@jit
def _sort(y, order, first_row, word):
    classes = first_row.shape[0] - 1
    size = np.zeros(classes + 1, np.int64)
    for row in range(y.shape[0]):
        size[y[row] + 1] += 1
    first_row[0], word[0] = 0, 0
    for c in range(classes):
        first_row[c + 1] = first_row[c] + size[c + 1]
        word[c + 1] = word[c] + ((size[c + 1] + 511) // 512) * 8
    put = first_row[:-1].copy()
    for row in range(y.shape[0]):
        c = y[row]
        if c >= 0:
            order[put[c]] = row
            put[c] += 1


@jit
def _gather(values, order, first_row, word, buffer):
    for c in range(first_row.shape[0] - 1):
        begin, size = word[c] * 64, first_row[c + 1] - first_row[c]
        target, source = buffer[begin : word[c + 1] * 64], order[first_row[c] : first_row[c + 1]]
        for k in range(size):
            target[k] = values[np.uint32(source[k])]
        for k in range(size, target.shape[0]):
            target[k] = -1


@jit
def _size(words):
    total = np.uint64(0)
    for w in range(words.shape[0]):
        total += ones(words[w])
    return total


@jit
def _intersect(mine, others, my_size, other_size, my_whole, other_whole, word, counts):
    """Add the sizes of the intersections to a table; those of the last state are what the others leave of it."""
    classes, many = word.shape[0] - 1, others.shape[0]
    rows, columns = mine.shape[0] - int(my_whole), many - int(other_whole)
    common, column = np.empty(many, np.int64), np.empty(many, np.int64)
    for c in range(classes):  # the sets of one class stay in the first cache
        begin, end = word[c], word[c + 1]
        column[:] = 0
        for u in range(rows):
            _sizes(mine[u, begin:end], others[:columns], begin, end, common)
            if other_whole:
                common[columns] = my_size[u, c] - common[:columns].sum()
            for v in range(many):
                counts[(u * many + v) * classes + c] += common[v]
                column[v] += common[v]
        if my_whole:
            for v in range(many):
                counts[(rows * many + v) * classes + c] += other_size[v, c] - column[v]


@jit
def _sizes(words, others, begin, end, common):
    """Write the size of the intersection of some words with those of each of the others, four sets at a time."""
    four = others.shape[0] // 4 * 4
    for v in range(0, four, 4):
        b0, b1 = others[v, begin:end], others[v + 1, begin:end]
        b2, b3 = others[v + 2, begin:end], others[v + 3, begin:end]
        n0, n1, n2, n3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for w in range(words.shape[0]):
            n0 += ones(words[w] & b0[w])
            n1 += ones(words[w] & b1[w])
            n2 += ones(words[w] & b2[w])
            n3 += ones(words[w] & b3[w])
        common[v], common[v + 1], common[v + 2], common[v + 3] = n0, n1, n2, n3
    for v in range(four, others.shape[0]):
        b = others[v, begin:end]
        n = np.uint64(0)
        for w in range(words.shape[0]):
            n += ones(words[w] & b[w])
        common[v] = n
