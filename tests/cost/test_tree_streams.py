"""The price of trees against streams that are written byte by byte, as the module of prices describes them.

Trees are nested here: a leaf is a tuple of values, an inner node a triple of a test and the trees on both sides.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
import pytest

from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import find_tests, is_symmetric, level_bytes, node_bytes, smallest_form, table_bytes
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.model import TreeEnsemble, Trees, Variable


class Question(NamedTuple):
    """A question about a feature; `chosen` are the codes that go left, if it asks for a set."""

    feature: int
    threshold: int
    missing: bool = True
    chosen: tuple[bool, ...] = ()


@dataclass
class Case:
    """Trees, the class of each one (-1 for all), the states of the features, and the first scores."""

    roots: list
    output: list
    states: list
    start: tuple = (0, 0)

    @cached_property
    def tests(self):
        return sorted({test for root in self.roots for test in questions_of(root)})

    @cached_property
    def leaves(self):
        return [leaf for root in self.roots for leaf in leaves_of(root)]

    @cached_property
    def every(self):
        return self.output[0] < 0

    @cached_property
    def votes(self):
        """Whether each leaf adds the same to one class."""
        most = max(self.leaves[0])
        alone = (*[0] * (len(self.start) - 1), most)
        return self.every and most > 0 and all(tuple(sorted(leaf)) == alone for leaf in set(self.leaves))


def is_leaf(tree):
    return not isinstance(tree[0], Question)


def questions_of(tree):
    return [] if is_leaf(tree) else [tree[0], *questions_of(tree[1]), *questions_of(tree[2])]


def leaves_of(tree):
    return [tree] if is_leaf(tree) else leaves_of(tree[1]) + leaves_of(tree[2])


@cache
def variable(name, states):
    return Variable(name, tuple(range(states)))


def model_of(case):
    """Return the ensemble; each leaf has its own row of values, and one row is used by none."""
    nodes, roots, values, chosen = [], [], [], []
    for root in case.roots:
        roots.append(len(nodes))
        waiting = [(root, len(nodes))]
        nodes.append(None)
        for tree, place in waiting:  # it grows
            if is_leaf(tree):
                nodes[place] = (-1, len(values), -1, False)
                values.append(tree)
                continue
            nodes[place] = (tree[0].feature, tree[0].threshold, len(nodes), tree[0].missing)
            waiting += [(tree[1], len(nodes)), (tree[2], len(nodes) + 1)]
            chosen += [(place, tree[0].chosen)] if tree[0].chosen else []
            nodes += [None, None]
    members = np.zeros((len(chosen), max(case.states)), dtype=bool)
    for row, (_, codes) in zip(members, sorted(chosen), strict=True):
        row[: len(codes)] = codes
    feature, threshold, child, missing = map(np.array, zip(*nodes, strict=True))
    values.append((2**20,) * len(values[0]))
    trees = Trees(feature, threshold, child, missing, members, np.array(roots), np.array(case.output))
    variables = tuple(variable(f"x{i}", states) for i, states in enumerate(case.states))
    target = variable("y", len(case.start))
    return TreeEnsemble(variables, target, trees, np.array(values), np.array(case.start), 1.0)


# The writer


def width_of(highest):
    return next(width for width in (1, 2, 4) if highest < 256**width)


def written(numbers, width=None, *, signed=False):
    """Return numbers as bytes: all in so many, or in as few as will do."""
    for tried in (1, 2, 4) if width is None else (width,):
        try:
            return b"".join(int(number).to_bytes(tried, "little", signed=signed) for number in numbers)
        except OverflowError:
            continue
    raise OverflowError


def written_start(case):
    return b"" if len(set(case.start)) == 1 else written(case.start, signed=True)


def written_tests(case):
    """Return the features, the cuts (the lowest codes that go right), and the sets, as bits."""
    sets = [test for test in case.tests if test.chosen]
    widest = max((case.states[test.feature] for test in sets), default=0)
    bits = [[*test.chosen, *[False] * (widest - len(test.chosen))] for test in sets]
    members = np.packbits(np.array(bits, dtype=bool).reshape(len(sets), widest), axis=1).tobytes()
    cuts = [test.threshold + 1 for test in case.tests if not test.chosen]
    return written([test.feature for test in case.tests]) + written(cuts) + members


def written_nodes(case, *, direct, held):
    """Return the bytes of the trees and of all tables; None where tests or values cannot be in the nodes."""
    tests, values = case.tests, sorted(set(case.leaves))
    if (direct and any(test.chosen for test in tests)) or (held and case.every):
        return None
    first = len(case.states) if direct else len(tests)
    cut_width = width_of(max((test.threshold + 1 for test in tests), default=0))
    value_width = len(written(np.ravel(values), signed=True)) // np.size(values)
    number_of, tables, low = {test: i for i, test in enumerate(tests)}, b"", values[0][0]
    leaf_number = {value: i for i, value in enumerate(values)}
    if case.votes:
        leaf_number = {value: int(np.argmax(value)) for value in values}
        last = len(case.start) - 1
    elif held:
        leaf_number, last = dict.fromkeys(values, 0), 0
    else:
        last, reach = len(values) - 1, values[-1][0] - low
        if not case.every and width_of(first + reach) <= width_of(first + last):
            leaf_number, last = {value: value[0] - low for value in values}, reach
        else:
            tables = written(np.ravel(values), signed=True)
    shared = tables + written_start(case) + (b"" if direct else written_tests(case))

    def numbers(tree, *, short):
        if is_leaf(tree):
            own = written(tree, value_width, signed=True) if held else b""
            return [first + leaf_number[tree], *own]
        test, left, right = tree
        left, right = numbers(left, short=short), numbers(right, short=short)
        length = [len(left)] if not short or len(left) < 255 else [255, *written([len(left)], 2)]
        asked = [test.feature, *written([test.threshold + 1], cut_width)] if direct else [number_of[test]]
        return [*asked, *length, *left, *right]

    if first + last < 256:
        try:
            trees = [numbers(root, short=True) for root in case.roots]
            head = 1 if max(map(len, trees)) + 1 <= 255 else 2
            return joined(case, [written([len(tree) + head], head) + bytes(tree) for tree in trees], head), shared
        except OverflowError:
            pass
    if direct or held:
        return None
    trees = [numbers(root, short=False) for root in case.roots]
    width = width_of(max(first + last, max(map(len, trees)) + 1))
    return joined(case, [written([len(tree) + 1, *tree], width) for tree in trees], width), shared


def joined(case, trees, head):
    """Return trees that begin with their sizes: those of a class behind each other, then a zero; one without both."""
    if len(trees) == 1:
        return trees[0][head:]
    if case.every:
        return b"".join(trees)
    groups = [[tree for tree, own in zip(trees, case.output, strict=True) if own == c] for c in range(len(case.start))]
    return b"".join(b"".join(group) + bytes(head) for group in groups)


def written_levels(case):
    """Return the bytes of the trees and of all tables; None where trees are not symmetric."""
    trees = [levels_of(root) for root in case.roots]
    if case.every or None in trees:
        return None
    tests, values = case.tests, sorted(set(case.leaves))
    depth = max(len(asked) for asked, _ in trees)
    listed, rows = written(np.ravel(values), signed=True), []
    small = len(listed) == len(values)
    for asked, leaves in trees:
        more = depth - len(asked)
        leaves = [leaf for leaf in leaves for _ in range(2**more)]
        numbers = [values.index(leaf) for leaf in leaves]
        if len(values) <= 16:
            numbers = [
                sum(number << 4 * i for i, number in enumerate(numbers[k : k + 2])) for k in range(0, 2**depth, 2)
            ]
        elif small:
            numbers = [leaf[0] % 256 for leaf in leaves]
        rows += [*(tests.index(test) for test in asked), *[0] * more, *numbers]
    if len(values) > 16 and small:
        listed = b""
    counts = [case.output.count(c) for c in range(len(case.start))]
    shared = listed + written_tests(case)
    if len(counts) > 3 or len(set(case.output)) > 1:  # else the scores of all classes are in the code
        shared += written_start(case) + (b"" if len(set(counts)) == 1 else written(counts))
    last = max(len(tests) - 1, len(values) - 1 if len(values) > 256 else 0)
    return written(rows, width_of(last)), shared


def levels_of(tree):
    """Return the tests of the levels and the leaves; None where the two sides of a node differ."""
    if is_leaf(tree):
        return [], [tree]
    left, right = levels_of(tree[1]), levels_of(tree[2])
    if left is None or right is None or left[0] != right[0]:
        return None
    return [tree[0], *left[0]], left[1] + right[1]


def sizes_of(written_form):
    return tuple(map(len, written_form))


def check(case):
    """Compare all prices of bytes."""
    model, sides = model_of(case), (True, False)
    forms = [written_nodes(case, direct=direct, held=held) for direct in sides for held in sides]
    nodes = [sizes_of(form) for form in forms if form is not None]
    levels = written_levels(case)
    assert node_bytes(model) == min(map(sum, nodes))
    assert level_bytes(model) == (None if levels is None else sum(sizes_of(levels)))
    assert is_symmetric(model.trees) == all(levels_of(root) is not None for root in case.roots)
    every = nodes + ([] if levels is None else [sizes_of(levels)])
    assert smallest_form(model) in {form for form in every if sum(form) == min(map(sum, every))}
    return model


# Trees


def grown(tests, values, left=lambda number: number // 2):
    """Return a tree that asks these tests, `left` of those of a node on the left, and takes values from left to right.

    Values are integers, or rows of them.
    """
    values = iter(values)

    def grow(first, number):
        if not number:
            value = next(values)
            return value if isinstance(value, tuple) else (value,)
        less = left(number)
        return (tests[first], grow(first + 1, less), grow(first + 1 + less, number - 1 - less))

    return grow(0, len(tests))


def levels(tests, values):
    """Return a symmetric tree."""
    values = iter(values)

    def grow(depth):
        return (next(values),) if depth == len(tests) else (tests[depth], grow(depth + 1), grow(depth + 1))

    return grow(0)


def thresholds(number, features=4):
    """Return so many different tests."""
    return [Question(i % features, i // features) for i in range(number)]


NUMBERS = {
    "few": [0, 1],
    "one": [7],
    "a byte": [-128, 127],
    "above a byte": [-127, 128, 5],
    "below a byte": [-129, 126, 5],
    "two bytes": [-(2**15), 2**15 - 1, 0],
    "above two bytes": [2**15, 0, 1],
    "below two bytes": [-(2**15) - 1, 0, 1],
    "far from zero": [1000, 1003, 1001],
    "far below zero": [-70_000, -70_003, -70_001],
    "a span of a byte": range(300, 556),
    "a span of two bytes": [-1, 2**16 - 2, 3],
    "a larger span": [-1, 2**16 - 1, 3],
}


@pytest.mark.parametrize("key", NUMBERS)
def test_values_of_leaves(key):
    for trees, tests in ((1, 0), (1, 1), (1, 60), (2, 12), (5, 0), (5, 12)):
        for asked in (thresholds(tests), [Question(0, 3)] * tests):
            check(Case([grown(asked, cycle(NUMBERS[key]))] * trees, [0, 1, 0, 0, 1][:trees], [30] * 4))


def test_the_price_is_the_smaller_form():
    for tree in (levels(thresholds(2), range(4)), grown(thresholds(9), range(10))):
        model = check(Case([tree] * 3, [0, 1, 2], [30] * 4, (1, 2, 3)))
        trees, shared = smallest_form(model)
        assert table_bytes(model) == shared
        assert model_cost(model).bits == 8 * (trees + shared)


@pytest.mark.parametrize("features", [1, 254, 255, 256, 257])
@pytest.mark.parametrize("tests", [1, 127, 253, 254, 255, 256, 257])
def test_numbers_of_tests_and_features(tests, features):
    states, asked = [400] * features, thresholds(tests, features)
    for numbers in ([0, 1], [0, 2**20], range(tests + 1), range(0, 2**10 * (tests + 1), 2**10)):
        one = grown(asked, cycle(numbers))
        check(Case([one], [0], states) if len(numbers) == 2 else Case([one, one], [1, 0], states))


@pytest.mark.parametrize("features", [250, 255, 256])
@pytest.mark.parametrize("step", [1, 300, 2**17])
def test_tests_and_values_in_the_nodes(features, step):
    for tests in (41, 42, 51, 63):
        one = grown(thresholds(tests, features), range(-step * tests, step * tests, step))
        check(Case([one], [0], [99] * features))
        check(Case([one, one], [0, 0], [99] * features, (1, 2, 3)))


@pytest.mark.parametrize("lowest", [-1, 0, 251, 252, 253, 254, 255])
def test_lowest_codes_that_go_right(lowest):
    asked = [Question(i % 2, max(0, lowest + i // 2 - 5)) for i in range(12)]
    for numbers in ([0, 1], range(100)):
        check(Case([grown(asked, cycle(numbers))], [0], [300, 300]))
        check(Case([grown(asked * 4, cycle(numbers)), grown(asked, cycle(numbers))], [0, 1], [300, 300]))


def subset(feature, states, number, missing=True):
    """Return a test of a set: the bits of a number."""
    return Question(feature, -1, missing, tuple(bool(number >> code & 1) for code in range(states)))


@pytest.mark.parametrize("states", [2, 8, 9, 16, 17, 300])
def test_sets_of_codes(states):
    sets = [subset(0, states, number) for number in (1, 2, 3)] + [subset(0, states, 2, missing=False)]
    others = [Question(2, 254), Question(1, 0), Question(1, 0, missing=False), subset(1, 3, 5), Question(2, 254)]
    for asked in (sets, sets + others, sets * 5 + others * 7, others[:3] * 9):
        for features in (3, 300):
            cards = [states, 3, 300] + [2] * (features - 3)
            check(Case([grown(asked, cycle([5, -9, 1]))], [0], cards))
            check(Case([grown(asked, cycle([5, -9, 1])), grown(asked, range(99))], [1, 0], cards, (1, -1)))


@pytest.mark.parametrize("trees", [1, 2, 7])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_values_of_all_classes(classes, trees):
    rows = [tuple(range(k, k + classes)) for k in range(60)]
    wide = [tuple(range(-500 * k, classes - 500 * k)) for k in range(60)]
    for values in (rows, wide):
        for tests in (0, 1, 30, 84, 85):
            roots = [grown(thresholds(tests), cycle(values)) for _ in range(trees)]
            check(Case(roots, [-1] * trees, [99] * 4, tuple(range(classes))))
            check(Case(roots, [-1] * trees, [99] * 4, (9,) * classes))


@pytest.mark.parametrize("classes", [1, 2, 200])
def test_votes(classes):
    values = [tuple(row) for row in (3 * np.eye(classes, dtype=int)).tolist()]
    for tests in (0, 1, 55, 56, 57, 84, 85):
        one = grown(thresholds(tests), cycle(values))
        for trees in (1, 3):
            check(Case([one] * trees, [-1] * trees, [99] * 4, tuple(range(classes))))


@pytest.mark.parametrize("start", [(0, 0, 0), (5, 5, 5), (0, 0, 127), (-129, 0, 0), (0, 2**15, 1), (0, 1, 0, 0)])
def test_first_scores_and_classes_without_trees(start):
    one, two = grown(thresholds(5), range(9)), grown(thresholds(9), cycle([-3, 1]))
    for output in ([0], [1, 1], [2, 0], [0, 1, 2], [0, 0, 0, 1]):
        check(Case([one, two, one, two][: len(output)], output, [30] * 4, start))


@pytest.mark.parametrize("inner", [36, 42, 50, 51, 63, 83, 84, 85])
def test_long_branches(inner):
    """Branches of 255 numbers and more have lengths of three bytes; so do their trees, whose sizes take two."""
    for features, step in ((1, 1), (200, 2), (200, 300), (250, 2**17)):
        states = [999] * features
        one = grown(thresholds(inner, features), range(0, 10**9, step))
        tree = (Question(0, 200), one, (5,))
        check(Case([tree], [0], states))
        check(Case([one, (Question(0, 201), (5,), one)], [0, 0], states))
        shared = grown([Question(0, 7)] * inner, cycle([5, 6]))
        check(Case([(Question(0, 7), shared, shared), one], [0, 1], states))


@pytest.mark.parametrize(("inner", "lowest", "step"), [(42, 300, 1), (42, 0, 300), (36, 300, 300), (63, 0, 1)])
def test_sizes_of_trees(inner, lowest, step):
    """A size of 255 takes a byte, one of 256 two. There are too many tests for a table of them."""
    asked = [Question(i % 255, lowest + i // 255) for i in range(8 * inner)]
    roots = [grown(asked[k * inner : (k + 1) * inner], range(0, 10**9, step)) for k in range(8)]
    check(Case(roots, [0] * 8, [400] * 255))
    held = [grown([Question(0, k) for k in range(8)] * 9, cycle(range(-128, 128))) for _ in range(3)]
    check(Case(held, [0] * 3, [30] * 255))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_values_are_the_numbers_of_leaves_up_to_two_bytes(more):
    """300 tests and values that are at most 65,235 apart have 65,536 numbers."""
    values = [*range(290), *range(65_225 + more, 65_236 + more)]
    check(Case([grown(thresholds(300), values)], [0], [99] * 4))


LEVELS = {
    "one value": [3],
    "16 values": range(16),
    "16 wide values": range(0, 16_000, 1000),
    "17 values": range(17),
    "17 wide values": range(0, 17_000, 1000),
    "256 values": range(-128, 128),
    "256 wide values": range(-127, 129),
    "256 values of two bytes": range(-129, 127),
    "256 values of four bytes": range(0, 256 * 2**10, 2**10),
}


@pytest.mark.parametrize("key", LEVELS)
def test_levels(key):
    values = LEVELS[key]
    for depth, trees in ((0, 3), (1, 1), (2, 9), (5, 9)):
        asked = cycle(thresholds(3 * depth))
        roots = [levels(list(islice(asked, depth)), islice(cycle(values), t, None)) for t in range(trees)]
        for output in ([0] * trees, [t % 3 for t in range(trees)]):
            check(Case(roots, output, [30] * 4, (1, 2, 3)))


@pytest.mark.parametrize("tests", [255, 256, 257, 300])
@pytest.mark.parametrize("values", [range(2), range(20), range(0, 20_000, 1000)])
def test_levels_of_many_tests(tests, values):
    asked = thresholds(tests)
    roots = [levels(asked[i : i + 3], islice(cycle(values), i, None)) for i in range(0, tests, 3)]
    check(Case(roots, [0] * len(roots), [300] * 4))


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
def test_trees_of_levels_in_each_class(classes):
    """All trees in one of up to three classes need no table of scores and of numbers of trees."""
    one, two = levels(thresholds(2), cycle([-3, 1, 5])), levels([Question(3, 1)], [1, 2])
    start = tuple(range(classes))
    for output in ([0], [classes - 1] * 3, [0, classes - 1], [*range(classes)], [0] * 255, [0] * 256, [0] * 257):
        roots = list(islice(cycle([one, two, (4,)]), len(output)))
        check(Case(roots, output, [30] * 4, start))
        check(Case([*roots, one], [*output, classes - 1], [30] * 4, start))


def test_trees_with_other_questions_in_a_level_are_not_symmetric():
    first, second, other = thresholds(3)
    same = levels([first, second], range(4))
    for tree in (
        (first, (second, (0,), (1,)), (other, (0,), (1,))),
        (first, (second, (0,), (1,)), (second._replace(missing=False), (0,), (1,))),
        (first, (2,), (second, (0,), (1,))),
        (first, (second, (0,), (1,)), (2,)),
    ):
        assert not is_symmetric(check(Case([tree], [0], [30] * 4)).trees)
        assert not is_symmetric(check(Case([same, tree, same], [0, 1, 0], [30] * 4)).trees)
        assert not is_symmetric(check(Case([tree, same], [0, 1], [30] * 4)).trees)
    assert is_symmetric(check(Case([same, (2,), (other, (0,), (1,)), same], [0, 1, 0, 1], [30] * 4)).trees)


def test_levels_of_more_than_256_values():
    roots = [levels(thresholds(5), range(t * 10**4, 10**9, 300)) for t in range(9)]
    check(Case(roots, [0] * 9, [30] * 4))


def test_tests_are_numbered_by_feature_threshold_missing_values_and_set():
    asked = [Question(f, t, missing) for f in (2, 0) for t in (1, 0) for missing in (True, False)]
    asked += [subset(f, 3, number, missing) for f in (1, 0) for number in (6, 1, 3) for missing in (False, True)]
    model = model_of(Case([grown(asked, cycle([1, 2])), grown(asked[::-1], cycle([1, 2]))], [0, 1], [3] * 3))
    trees, tests = model.trees, find_tests(model.trees)
    sets = dict(zip(np.flatnonzero(trees.is_set).tolist(), map(tuple, trees.members.tolist()), strict=True))
    inner = np.flatnonzero(~trees.is_leaf).tolist()
    question = {
        node: (trees.feature[node], trees.threshold[node], not trees.missing[node], sets.get(node, ()))
        for node in inner
    }
    ordered = sorted(set(question.values()))
    assert [question[node] for node in tests.node.tolist()] == ordered
    assert [question[node] for node in inner] == [ordered[number] for number in tests.number[inner].tolist()]
    assert tests.node.tolist() == [inner[list(question.values()).index(test)] for test in ordered]  # the first ones


@pytest.mark.parametrize("trees", [1, 2, 4])
def test_parameters_and_operations(trees):
    """A test has two parameters; a row takes a value of each tree and class, and as many tests as trees are deep."""
    tree = (Question(0, 3), (1,), (Question(1, 3), (2,), (3,)))
    cost = model_cost(model_of(Case([tree] * trees, [0] * trees, [9] * 2)))
    assert (cost.parameters, cost.lookups) == ((4 + 3) * trees, trees)
    assert (cost.additions, cost.comparisons) == (0 if trees == 1 else trees, 2 * trees + 1)
    tree = (Question(0, 3), (1, 5, 2), (Question(1, 3), (2, 0, 0), (3, 1, 1)))
    cost = model_cost(model_of(Case([tree] * trees, [-1] * trees, [9] * 2, (0, 0, 0))))
    assert (cost.parameters, cost.lookups) == ((4 + 3 * 3) * trees, 3 * trees)
    assert (cost.additions, cost.comparisons) == (0 if trees == 1 else 3 * trees, 2 * trees + 2)
    tree = (Question(0, 3), (0, 0, 5), (Question(1, 3), (5, 0, 0), (0, 5, 0)))
    cost = model_cost(model_of(Case([tree] * trees, [-1] * trees, [9] * 2, (0, 0, 0))))
    assert (cost.parameters, cost.lookups) == ((4 + 3) * trees, trees)


def exported(case, form):
    """Return the bytes of the tables of a C program."""
    program = classifier_program(make_plan(model_of(case), form=form), Dialect("net", "net_"), "")
    return sum(array.values.nbytes for array in program.arrays)


@pytest.mark.parametrize(
    ("inner", "features", "step"), [(12, 12, 1), (42, 42, 300), (42, 250, 2**17), (60, 60, 2**17), (130, 130, 1000)]
)
def test_programs_have_tables_of_this_size(inner, features, step):
    """Here every test decides, because each one asks for a feature of its own."""
    asked = [Question(i, 3) for i in range(inner)]
    tree = grown(asked, range(0, 10**9, step))
    more = (asked[-1], (2,), (1,))
    case = Case([more, tree, tree], [0, 1, 0], [9] * features, (5, 700, 7))
    check(case)
    assert exported(case, "nodes") == node_bytes(model_of(case))
    roots = [levels(asked[t : t + 3], range(t * step, 10**9, step)) for t in range(0, inner, 3)]
    case = Case(roots[:32], [t % 2 for t in range(32)][: len(roots)], [9] * features)
    assert exported(case, "levels") == level_bytes(model_of(case))


@pytest.mark.parametrize(("inner", "sides"), [(21_668, (2, 3)), (21_759, (1, 3))])
def test_a_tree_of_bytes_has_65533_numbers_at_most(inner, sides):
    """Two bytes can say its size, with these two. The trees have 65,533 and 65,534 numbers."""
    asked = list(islice(cycle(thresholds(3)), inner))
    check(Case([grown(asked, cycle([0, 1]), lambda n: n * sides[0] // sides[1]), (7,)], [0, 1], [99] * 4))


@pytest.mark.parametrize("inner", [21_844, 21_845])
def test_larger_trees_take_four_bytes_a_number(inner):
    """These have 65,533 and 65,536 numbers."""
    tree = grown(list(islice(cycle(thresholds(300)), inner)), cycle([0, 1]))
    check(Case([tree, (7,)], [0, 1], [99] * 4))
