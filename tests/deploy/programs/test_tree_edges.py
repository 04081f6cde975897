"""Programs of trees at their edges: how leaves and tests are stored, and answers where one number more would not fit.

The C code runs in Python, as prices read it.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.deploy.programs.tree_layout import make_layout
from tinybayes.deploy.programs.tree_levels import Levels, level_trees
from tinybayes.deploy.programs.tree_nodes import Nodes, node_sums
from tinybayes.deploy.programs.trees import LEAF, TEST, WIDE, _nested_bytes
from tinybayes.deploy.programs.verilog_trees import trees_to_verilog
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Cuts, TreeEnsemble, Trees, Variable
from tree_ensembles import tree_ensemble

DIALECT = Dialect("net", "net_")
LOWEST, HIGHEST = -(2**31), 2**31 - 1


def ensemble(trees, values, *, output=None, classes=3, cards=(4, 4, 4), start=None):
    """Make an ensemble of nested tuples: (feature, threshold, side of gaps, left, right), and rows of values."""
    nodes, roots = [], []
    for tree in trees:
        roots.append(len(nodes))
        waiting = [tree]
        while waiting:
            tree = waiting.pop(0)
            if isinstance(tree, int):
                nodes.append((-1, tree, -1, False))
                continue
            feature, threshold, missing, left, right = tree
            nodes.append((feature, threshold, len(nodes) + len(waiting) + 1, missing))
            waiting += [left, right]
    feature, threshold, child, missing = map(np.array, zip(*nodes, strict=True))
    values = np.array(values)
    values = values[:, None] if values.ndim == 1 else values
    output = [-1] * len(trees) if output is None else output
    made = Trees(feature, threshold, child, missing, np.zeros((0, max(cards)), bool), np.array(roots), np.array(output))
    variables = tuple(Variable(f"f{i}", tuple(range(k))) for i, k in enumerate(cards))
    first = np.zeros(classes, int) if start is None else np.array(start)
    return TreeEnsemble(variables, Variable("y", tuple(range(classes))), made, values, first, 0.01)


def chain(feature, rows, thresholds):
    """A tree whose right branches are leaves: the left branch of its root holds all others."""
    tree = rows[0]
    for row, threshold in zip(rows[1:], thresholds, strict=True):
        tree = (feature, threshold, True, tree, row)
    return tree


def with_cuts(model, cuts, *, integer=False):
    """Give all features these cut points."""
    variables = [Variable.from_encoding(f"f{i}", Cuts(cuts, integer=integer)) for i in range(len(model.variables))]
    return replace(model, variables=tuple(variables))


def answers(model, rows, raw="none", *, gaps=True, form="nodes"):
    """Return the labels and scores of a program, run in Python."""
    plan = make_plan(model, raw, gaps=gaps, form=form)
    machine = Machine(classifier_program(plan, DIALECT, ""), DIALECT)
    labels, scores = [], []
    for row in rows:
        labels.append(machine.call(f"net_{plan.predict_name}", [(list(row), 0)]))
        scores.append([0] * plan.classes)
        machine.call("net_scores", [(list(row), 0), (scores[-1], 0)])
    return labels, scores


def check(model, codes, rows=None, **options):
    """Compare a program with Python; without rows it takes the codes, 255 where they are missing."""
    exact = tree_scores(model, np.array(codes, dtype=np.int32))
    rows = np.where(np.array(codes) < 0, 255, codes).tolist() if rows is None else rows
    labels, scores = answers(model, rows, **options)
    assert scores == exact.tolist()
    assert labels == exact.argmax(axis=1).tolist()


def all_codes(model):
    axes = [range(-1, v.cardinality) for v in model.variables]
    return np.array(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1).T


# Levels


def symmetric(values, *, classes=3, outputs=None):
    """Three symmetric trees of eight leaves whose leaves have these values."""
    model = tree_ensemble(3, leaves=8, symmetric=True, classes=classes, states=[4, 4, 4], sets=0, seed=2)
    trees = model.trees
    threshold = trees.threshold.copy()
    threshold[trees.is_leaf] = np.arange(24) % len(values)
    output = trees.output if outputs is None else np.array(outputs)
    return replace(model, trees=replace(trees, threshold=threshold, output=output), values=np.array(values)[:, None])


@pytest.mark.parametrize(
    ("low", "high", "held"), [(-128, 127, True), (-129, 127, False), (-128, 128, False), (0, 20, True)]
)
def test_values_of_eight_bits_are_in_the_leaves(low, high, held):
    model = symmetric(sorted({low, high, *range(1, 16)}))
    plan = make_plan(model, gaps=True, form="levels")
    levels = Levels(plan, tuple(level_trees(plan)), DIALECT)
    assert not levels.packed
    assert (levels.values is None) == held
    check(model, all_codes(model), form="levels")


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_trees_of_one_class_need_no_loop_over_few_classes(classes):
    model = symmetric(range(1, 9), classes=classes, outputs=[1, 1, 1])
    plan = make_plan(model, gaps=True, form="levels")
    add_up = classifier_program(plan, DIALECT, "").functions
    body = next(function for function in add_up if function.name == "add_up").body
    assert any("for (c = 0" in line for line in body) == (classes > 3)
    check(model, all_codes(model), form="levels")


# Nested comparisons


@pytest.mark.parametrize("form", ["nested", "nodes"])
def test_votes_of_which_some_class_gets_none(form):
    trees = [(0, 1, True, 0, 1), (1, 2, False, 1, 0), (2, 0, True, 0, (0, 2, False, 1, 0))]
    for voted in ([0, 2], [1, 2], [3, 0]):
        model = ensemble(trees, 7 * np.eye(4, dtype=int)[voted], classes=4)
        assert model.votes
        check(model, all_codes(model), form=form)


def test_a_small_leaf_is_taken_to_need_less_code():
    def size(largest, **more):
        model = ensemble([(0, 1, True, 0, 1)] * 2, [1, largest], output=[0, 1], **more)
        plan = make_plan(model, form="nested")
        return _nested_bytes(plan, make_layout(plan))

    tests = 2 * TEST["codes"]
    assert [size(largest) for largest in (17, 255, 256)] == [tests + 4 * LEAF, tests + 4 * LEAF, tests + 4 * WIDE]
    rows = make_plan(ensemble([(0, 1, True, 0, 1)] * 2, [[1, 2, 3], [400, 5, 6]]), form="nested")
    assert _nested_bytes(rows, make_layout(rows)) == tests + 4 * LEAF + 2 * 6  # a table of 16 bits
    votes = make_plan(ensemble([(0, 1, True, 0, 1)] * 2, 400 * np.eye(3, dtype=int)[:2]), form="nested")
    assert _nested_bytes(votes, make_layout(votes)) == tests + 4 * LEAF


# Streams of nodes


def test_one_tree_of_several_has_a_long_branch():
    model = ensemble([chain(0, range(100), range(99)), (1, 3, True, 0, 7)], range(100), output=[0, 1], cards=(100, 9))
    plan = make_plan(model, gaps=True, form="nodes")
    nodes = Nodes(plan, make_layout(plan), DIALECT, direct=True)
    assert nodes.short
    assert nodes._long_branches
    check(model, all_codes(model)[::7])


@pytest.mark.parametrize(("tests", "short"), [(99, True), (100, False)])
def test_256_numbers_are_bytes_and_one_more_is_not(tests, short):
    values = np.arange(157) * 1000  # too far apart to be numbers themselves
    trees = [chain(0, range(57), range(56)), chain(1, range(57, 101), range(43)), chain(2, range(101, 157), range(55))]
    plan = make_plan(ensemble(trees, values, output=[0, 1, 2], cards=(60, 60, 60)), gaps=True, form="nodes")
    layout = make_layout(plan)
    assert len(layout.rows) == 157
    made = replace(layout, tests=layout.tests[:1] * tests)  # so many numbers are those of tests
    assert Nodes(plan, made, DIALECT, direct=False).short == short


@pytest.mark.parametrize(
    ("tests", "highest", "lowest"),
    [
        (199, 56, 0),  # the last number is 199 + 56, a byte, for the number of a value or for the value itself
        (199, 57, None),  # the value would take another byte
        (200, 57, 0),  # two bytes in either case
    ],
)
def test_leaves_are_values_where_these_take_no_more_bytes(tests, highest, lowest):
    plan = make_plan(ensemble([(0, 1, True, 0, 1)] * 2, [0, 1], output=[0, 1]), gaps=True, form="nodes")
    layout = make_layout(plan)
    values = np.array([*range(56), highest])[:, None]
    made = replace(layout, tests=layout.tests[:1] * tests, rows=values)
    assert Nodes(plan, made, DIALECT, direct=False).lowest == lowest


def test_values_that_few_leaves_share_are_in_the_leaves():
    trees = [chain(f, range(90 * f, 90 * f + 90), range(89)) for f in range(3)]
    model = ensemble(trees, np.arange(270) * 7919, output=[0, 1, 2], cards=(90, 90, 90))
    plan = make_plan(model, gaps=True, form="nodes")
    sums = node_sums(plan, make_layout(plan), DIALECT)
    tables = {array.name: array.values for function in sums.functions for array in function.arrays}
    assert "leaf_value" not in tables
    assert tables["node"].dtype == np.uint8  # the numbers of 270 values would not be bytes
    check(model, np.random.default_rng(0).integers(-1, 90, (60, 3)))


# Raw values


SIDES = [
    (0, 0, False, 0, (1, 2, True, 1, 2)),  # a number of the first cut point on, and what is missing, goes right
    (1, 3, False, 3, 4),  # all numbers go left
    (2, 1, True, (0, 3, False, 5, 0), 1),
]


@pytest.mark.parametrize("form", ["nested", "nodes"])
@pytest.mark.parametrize("cuts", [[-1.0, 0.5, 2.0], [-1.1, 0.7, 2.3]], ids=["short keys", "long keys"])
def test_floats_that_are_missing_go_to_their_side(form, cuts):
    model = with_cuts(ensemble(SIDES, [3, -5, 8, 40, -70, 1000], output=[0, 1, 2]), cuts)
    numbers = np.array(
        [-np.inf, -3e38, *np.nextafter(np.float32(cuts), np.float32(-9)), *cuts, 0, 3e38, np.inf, np.nan]
    )
    numbers = numbers.astype(np.float32)
    cut = np.float32(cuts)
    code = np.where(np.isnan(numbers), -1, (numbers[:, None] >= cut).sum(axis=1))
    at = np.random.default_rng(0).integers(0, len(numbers), (80, 3))
    check(model, code[at], numbers[at].tolist(), raw="float", form=form)


@pytest.mark.parametrize("form", ["nested", "nodes"])
def test_integers_at_both_ends_go_to_their_side(form):
    cuts = [LOWEST + 2, 0, HIGHEST - 1]
    model = with_cuts(ensemble(SIDES, [3, -5, 8, 40, -70, 1000], output=[0, 1, 2]), cuts, integer=True)
    numbers = np.array([LOWEST, LOWEST + 1, LOWEST + 2, -1, 0, 1, HIGHEST - 2, HIGHEST - 1, HIGHEST])
    code = np.where(numbers == LOWEST, -1, (numbers[:, None] >= np.array(cuts)).sum(axis=1))
    at = np.random.default_rng(0).integers(0, len(numbers), (80, 3))
    check(model, code[at], numbers[at].tolist(), raw="int", form=form)


@pytest.mark.parametrize("states", [7, 8, 9, 31, 32, 33])
@pytest.mark.parametrize("form", ["nested", "nodes"])
def test_sets_of_as_many_states_as_a_word_has_bits(form, states):
    model = tree_ensemble(5, leaves=6, sets=1, states=[states] * 2, seed=states)
    check(model, all_codes(model)[::3], form=form)
    codes = all_codes(model)[::3]
    check(model, codes[(codes >= 0).all(axis=1)], form=form, gaps=False)


def test_the_facts_count_trees():
    one, two = (make_plan(ensemble([(0, 1, True, 0, 1)] * n, [1, 2], output=[0] * n)) for n in (1, 2))
    assert one.facts()[0].startswith("One decision tree of 3 features")
    assert two.facts()[0].startswith("2 decision trees of 3 features")


def test_verilog_gives_the_value_of_a_tree_the_bits_that_it_needs():
    model = ensemble([(0, 1, True, 0, 1), (1, 2, True, 2, 3)], [1, -3, 1000, 5], output=[0, 1])
    text = trees_to_verilog(model, name="net", note="", pipelined=False, checks=0)["net.v"]
    assert re.findall(r"wire (\[\d+:0\]) tree\d", text) == ["[2:0]", "[10:0]"]
