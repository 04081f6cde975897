from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.model import (
    CPD,
    BayesNet,
    Codebook,
    Cuts,
    Dataset,
    DecisionTree,
    Fixed,
    Float,
    Structure,
    Variable,
    with_target,
)
from tinybayes.model.dataset import concatenate

AB = (Variable("a", (0, 1)), Variable("b", ("x", "y", "z")))
UNIFORM_A = CPD((), np.log([[0.5, 0.5]]), Float(64))


def refused(message, make):
    with pytest.raises(TinybayesError, match=message):
        make()


def test_variables_check_themselves():
    refused("at least one state", lambda: Variable("a", ()))
    refused("distinct states", lambda: Variable("a", (1, 1)))
    refused("distinct states", lambda: Variable("a", (1, True)))
    refused("strings, numbers or booleans, got nan", lambda: Variable("a", (float("nan"),)))
    refused("name that is a string", lambda: Variable(3, (0,)))
    refused("increasing cut points", lambda: Variable("a", (0, 1, 2), Cuts((2.0, 1.0))))
    refused("increasing cut points", lambda: Variable("a", (0, 1), Cuts((float("inf"),))))
    refused("2 states for Cuts", lambda: Variable("a", (0, 1, 2), Cuts((1.0,))))


def test_intervals_have_readable_and_distinct_names():
    assert Variable.from_encoding("h", Cuts([])).states == ("any",)
    assert Variable.from_encoding("h", Cuts([1.5])).states == ("< 1.5", ">= 1.5")
    assert Variable.from_encoding("h", Cuts([1, 2.5, 4])).states == ("< 1", "1 to 2.5", "2.5 to 4", ">= 4")
    close = Variable.from_encoding("h", Cuts([1.0000001, 1.0000002]))
    assert close.cardinality == len(set(close.states)) == 3


def test_data_sets_check_themselves():
    X = np.array([[0, 1], [1, -1]])
    data = Dataset(AB, Variable("y", (0, 1)), X, np.array([0, 1]))
    assert data.X.dtype == np.int8
    assert len(data.rows(slice(1))) == 1
    refused("codes from -1 to 1, got 0 to 2", lambda: Dataset(AB, None, np.array([[2, 0], [0, 0]])))
    refused(
        "column 1: expected codes from -1 to 2, got -2 to 0", lambda: Dataset(AB, None, np.array([[0, -2], [0, 0]]))
    )
    refused("2 columns", lambda: Dataset(AB, None, np.zeros((1, 3), dtype=int)))
    refused("integer array with 2 axes", lambda: Dataset(AB, None, np.zeros((1, 2))))
    refused("no y where there is no target", lambda: Dataset(AB, None, X, np.array([0, 1])))
    refused("one entry for each of 2 rows", lambda: Dataset(AB, Variable("y", (0, 1)), X, np.array([0])))
    refused("not negative", lambda: Dataset(AB, None, X, weight=np.array([1.0, -1.0])))
    refused("not negative", lambda: Dataset(AB, None, X, weight=np.array([1.0, np.nan])))


@given(st.lists(st.floats(-40, 0), min_size=1), st.integers(1, 6), st.integers(-3, 8))
def test_fixed_point_is_equation_11(values, integer, fraction):
    if not integer + fraction >= 1:
        return
    theta = np.array(values)
    number_format = Fixed(integer, fraction)
    limit = 2.0**integer - 2.0**-fraction
    wanted = np.clip(np.round(theta * 2.0**fraction) * 2.0**-fraction, -limit, 0)
    codes = number_format.encode(theta)
    assert codes.max() < 2**number_format.bits
    np.testing.assert_array_equal(number_format.decode(codes), wanted)
    np.testing.assert_array_equal(number_format.encode(number_format.decode(codes)), codes)


@given(st.lists(st.floats(-40, 0), min_size=1), st.sets(st.floats(-40, 0), min_size=1, max_size=9))
def test_codebook_takes_the_nearest_level(values, levels):
    book = Codebook(tuple(sorted(levels)))
    decoded = book.decode(book.encode(np.array(values)))
    for value, level in zip(values, decoded, strict=True):
        assert abs(value - level) <= min(abs(value - other) for other in levels) + 1e-12


def test_formats_at_their_limits():
    assert Fixed(1, 0).encode(np.array([-np.inf, -0.5, -1.5, 0.0])).tolist() == [1, 0, 1, 0]
    assert Codebook((-np.inf, -1.0)).encode(np.array([-np.inf, -50.0, -1.0])).tolist() == [0, 1, 1]
    assert [Codebook(tuple(range(-k, 0))).bits for k in (1, 2, 3, 4, 5, 256, 257)] == [0, 1, 2, 2, 3, 8, 9]
    assert (str(Float()), str(Fixed(3, -1)), str(Codebook((-1.0,)))) == ("float32", "fixed3.-1", "codebook1")
    refused("1 to 32 bits in all and a fraction within 1000, got 0", lambda: Fixed(2, -2))
    refused("1 to 32 bits", lambda: Fixed(2000, -1990))
    refused("32 or 64 bits", lambda: Float(16))
    refused("increasing levels", lambda: Codebook((0.0, -1.0)))
    refused("increasing levels", lambda: Codebook(()))
    refused("increasing levels", lambda: Codebook((float("nan"),)))


def test_structures_are_acyclic():
    refused(r"cycle among or above the nodes \[0, 1\]", lambda: Structure(((1,), (0,), ())))
    refused("distinct parents among 0..0", lambda: Structure(((1,),)))
    refused("distinct parents among 0..1", lambda: Structure(((), (-1,))))
    refused("distinct parents among", lambda: Structure(((), (0, 0))))
    structure = Structure(((2,), (0, 2), ()))
    assert structure.order == (2, 0, 1)
    assert structure.families == ((2, 0), (0, 2, 1), (2,))


def test_networks_check_themselves():
    of_b = CPD((0,), np.log(np.full((2, 3), 1 / 3)), Float(64))
    net = BayesNet(AB, None, (UNIFORM_A, of_b))
    assert net.is_normalized()
    assert net == BayesNet(AB, None, (UNIFORM_A, of_b))
    assert net != BayesNet(AB, None, (UNIFORM_A, CPD((0,), np.zeros((2, 3)), Float(64))))
    assert not BayesNet(AB, None, (UNIFORM_A, CPD((0,), np.zeros((2, 3)), Float(64)))).is_normalized()
    refused("2 distributions", lambda: BayesNet(AB, None, (UNIFORM_A,)))
    refused(
        "distribution of 'b': expected 3 columns, one a state, got 2",
        lambda: BayesNet(AB, None, (UNIFORM_A, UNIFORM_A)),
    )
    refused(
        "distribution of 'b': expected 2 rows, one an assignment of the parents, got 4",
        lambda: BayesNet(AB, None, (UNIFORM_A, CPD((0,), np.zeros((4, 3)), Float()))),
    )
    refused("distinct names", lambda: BayesNet((AB[0], AB[0]), None, (UNIFORM_A, UNIFORM_A)))
    refused("cycle", lambda: BayesNet(AB[:1] * 1, AB[1], (CPD((1,), np.zeros((3, 2)), Float()), of_b)))
    refused("rows and columns", lambda: CPD((), np.zeros(3), Float()))


def test_trees_check_themselves():
    def net(split, first, children, row):
        tree = DecisionTree(split, first, children, row)
        return BayesNet(AB, None, (UNIFORM_A, CPD((0,), np.log(np.full((2, 3), 1 / 3)), Float(64), tree)))

    good = net([0, -1, -1], [0, 0, 0], [1, 2], [0, 0, 1])
    assert [good.cpds[1].tree.find({0: v}) for v in (0, 1)] == [0, 1]
    refused("one entry for each node", lambda: net([0, -1], [0], [1], [0, 0]))
    refused("one entry for each node", lambda: DecisionTree([], [], [], []))
    refused("node 2: expected a test of one of the parents", lambda: net([0, -1, 1], [0, 0, 0], [1, 2], [0, 0, 0]))
    refused("a row of 0..1", lambda: net([-1], [0], [], [5]))
    refused("a row of 0..1, got -1", lambda: net([-1], [0], [], [-1]))
    refused("test of one of the parents", lambda: net([1, -1, -1], [0, 0, 0], [1, 2], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [0, 0, 0], [0, 2], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [0, 0, 0], [1], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [-1, 0, 0], [1, 2], [0, 0, 1]))


def test_tables_fit_their_format():
    refused("fixed1.1: expected codes from 0 to 3", lambda: CPD((), np.array([[4]]), Fixed(1, 1)))
    refused("codes from 0 to 3", lambda: CPD((), np.array([[-1, 0]]), Fixed(1, 1)))
    refused("codes from 0 to 1", lambda: CPD((), np.array([[2]]), Codebook((-1.0, 0.0))))
    refused("codes from 0 to 1", lambda: CPD((), np.array([[0.0]]), Codebook((-1.0, 0.0))))
    refused("log-parameters below infinity", lambda: CPD((), np.array([[np.nan, -1.0]]), Float()))
    refused("log-parameters below infinity", lambda: CPD((), np.array([[-1.0, np.inf]]), Float()))
    refused("log-parameters below infinity", lambda: CPD((), np.array([[1]]), Float()))
    assert CPD((), np.array([[3]]), Fixed(1, 1)).table.dtype == np.uint8
    assert CPD((), np.array([[-1.0]]), Float()).table.dtype == np.float32


def joint(net, states):
    """The logarithm of the probability of an assignment by name, looked up entry by entry."""
    codes = {number: node.states.index(states[node.name]) for number, node in enumerate(net.nodes)}
    total = 0.0
    for number, cpd in enumerate(net.cpds):
        row = 0
        for parent in cpd.parents:
            row = row * net.nodes[parent].cardinality + codes[parent]
        if cpd.tree is not None:
            row = cpd.tree.find(codes)
        total += cpd.log_parameters[row, codes[number]]
    return total


@pytest.mark.parametrize("seed", range(4))
def test_another_class_is_the_same_distribution(seed):
    net = zoo.random_net(np.random.default_rng(seed), 4, trees=True)
    names = [node.name for node in net.nodes]
    for name in [*names, None]:
        other = with_target(net, name)
        assert (other.target.name if other.target else None) == name
        assert [node.name for node in other.variables] == [n for n in names if n != name]
        for values in product(*(node.states for node in net.nodes)):
            states = dict(zip(names, values, strict=True))
            assert joint(other, states) == pytest.approx(joint(net, states), rel=1e-12)
    assert with_target(with_target(net, None), net.target.name) == with_target(net, net.target.name) == net


def test_a_class_must_be_one_of_the_variables():
    def many(count):
        variables = [Variable(f"v{i}", (0, 1)) for i in range(count)]
        return BayesNet(variables, None, [UNIFORM_A] * count)

    refused(
        "target: expected one of the variables a, b, class, got 'clas'; did you mean 'class'",
        lambda: with_target(zoo.tan(), "clas"),
    )
    refused("v7, v8, v9, got", lambda: with_target(many(10), "other"))
    refused("v8, v9, ..., got", lambda: with_target(many(11), "other"))


def test_rows_keep_their_class_and_their_weight():
    X = np.array([[0, 1], [1, -1], [1, 2]])
    data = Dataset(AB, Variable("y", (0, 1)), X, np.array([0, 1, -1]), np.array([0.5, 2.0, 0.0]))
    some = data.rows(np.array([2, 0]))
    assert (some.X.tolist(), some.y.tolist(), some.weight.tolist()) == ([[1, 2], [0, 1]], [-1, 0], [0.0, 0.5])
    both = concatenate([some, data.rows(slice(1, 2))])
    assert (both.X.tolist(), both.y.tolist()) == ([[1, 2], [0, 1], [1, -1]], [-1, 0, 1])
    assert both.weight.tolist() == [0.0, 0.5, 2.0]
    assert (both.variables, both.target) == (data.variables, data.target)
    assert concatenate([data]) is data
    plain = concatenate([Dataset(AB, None, X), Dataset(AB, None, X[:1])])
    assert (len(plain), plain.y, plain.weight, plain.nodes) == (4, None, None, AB)
    assert [node.name for node in data.nodes] == ["a", "b", "y"]


@pytest.mark.parametrize(
    ("states", "dtype"), [(128, np.int8), (129, np.int16), (2**15, np.int16), (2**15 + 1, np.int32)]
)
def test_codes_take_the_smallest_type(states, dtype):
    data = Dataset([Variable("a", tuple(range(states)))], None, np.array([[states - 1], [-1]]))
    assert data.X.dtype == dtype
    assert data.X.tolist() == [[states - 1], [-1]]


def test_data_sets_without_rows_or_columns():
    assert len(Dataset(AB, Variable("y", (0,)), np.empty((0, 2), int), np.empty(0, int), np.empty(0))) == 0
    assert Dataset((), None, np.empty((3, 0), int)).X.shape == (3, 0)
    refused("codes from -1 to 0, got 0 to 1", lambda: Dataset(AB, Variable("y", (0,)), np.zeros((2, 2), int), [0, 1]))
    refused(
        "weight: expected one entry for each of 2 rows", lambda: Dataset(AB, None, np.zeros((2, 2), int), None, [1])
    )
    refused("finite weights", lambda: Dataset(AB, None, np.zeros((1, 2), int), None, [np.inf]))


@pytest.mark.parametrize("bits", [8, 9, 16, 17, 32])
def test_codes_of_formats_take_the_smallest_type(bits):
    number_format = Fixed(bits, 0)
    codes = number_format.encode(np.array([0.0, -(2.0**bits) - 5, -np.inf]))
    assert codes.tolist() == [0, 2**bits - 1, 2**bits - 1]
    assert codes.dtype == (np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32)
    assert number_format.checked(np.array([0, 2**bits - 1])).dtype == codes.dtype


def test_values_above_zero_are_stored_as_zero():
    assert Fixed(3, 1).encode(np.array([0.4, 7.0, np.inf])).tolist() == [0, 0, 0]


def test_formats_know_their_bits():
    assert (Float().bits, Float(64).bits, Fixed(3, 2).bits) == (32, 64, 5)
    assert Float().shared_bits == Fixed(3, 2).shared_bits == 0
    assert Codebook((-2.0, -1.0, 0.0)).shared_bits == 96
    assert Float().encode(np.array([-1e300])).tolist() == [-np.inf]
    assert (Float().encode(np.zeros(1)).dtype, Float(64).encode(np.zeros(1)).dtype) == (np.float32, np.float64)
    assert Fixed(1001, -1000).decode(np.array([1])).tolist() == [-(2.0**1000)]
    refused("a fraction within 1000", lambda: Fixed(1002, -1001))
    refused("1 to 32 bits", lambda: Fixed(33, 0))
    assert Fixed(32, 0).bits == 32
    refused("integer numbers of bits", lambda: Fixed(1.5, 0))
    refused("integer numbers of bits", lambda: Fixed(2, 0.0))
    refused("increasing levels", lambda: Codebook((-1.0, -1.0)))
    refused("increasing levels", lambda: Codebook((-1.0, float("inf"))))
    # Of two levels equally near the lower one is taken.
    assert Codebook((-2.0, -1.0)).encode(np.array([-1.5])).tolist() == [0]


def test_children_may_stand_in_any_order():
    tree = DecisionTree([2, -1, 0, -1, -1], [2, 0, 0, 0, 0], [3, 4, 1, 2], [0, 0, 0, 1, 2])
    net = zoo.tree_tan()
    other = BayesNet(net.variables, net.target, (net.cpds[0], replace(net.cpds[1], tree=tree), net.cpds[2]))
    for values in product((0, 1), (0, 1)):
        codes = dict(zip((0, 2), values, strict=True))
        assert other.cpds[1].tree.find(codes) == net.cpds[1].tree.find(codes)


def test_tables_after_a_tree_are_checked_too():
    net = zoo.tree_tan()
    wrong = CPD((), np.zeros((2, 2)), Float(64))
    refused(
        "distribution of 'class': expected 1 rows",
        lambda: BayesNet(net.variables, net.target, (net.cpds[0], net.cpds[1], wrong)),
    )


def test_lists_are_taken_as_tuples():
    net = BayesNet(list(AB[:1]), None, [UNIFORM_A])
    assert (net.variables, net.cpds) == (AB[:1], (UNIFORM_A,))
    assert CPD([np.int64(0)], np.zeros((2, 2)), Float()).parents == (0,)
    assert Structure([[], [0]]).parents == ((), (0,))
    assert Variable("a", [0, 1], Cuts([1])).encoding.points == (1.0,)
    assert Codebook([-2, -1]).values == (-2.0, -1.0)
    data = Dataset(list(AB), None, np.zeros((1, 2), int), weight=[2])
    assert (data.variables, data.weight.tolist(), data.weight.dtype) == (AB, [2.0], np.float64)


def test_messages_show_ten_of_many():
    def shown(make):
        with pytest.raises(TinybayesError) as caught:
            make()
        return str(caught.value).count(",") + str(caught.value).count(";")

    many = [Variable("same", (0, 1))] * 30
    # Nine commas between ten things, and one before "got".
    assert shown(lambda: BayesNet(many, None, [UNIFORM_A] * 30)) == 10
    assert shown(lambda: Variable("a", (0,) * 30)) == 10
    assert shown(lambda: Variable("a", tuple(range(31)), Cuts((1.0,) * 30))) == 11  # and one in "finite, increasing"
    assert shown(lambda: Codebook((1.0,) * 30)) == 10
    assert shown(lambda: Structure(tuple(((n + 1) % 30,) for n in range(30)))) == 10


def test_parts_must_agree():
    X, y = np.zeros((1, 2), int), Variable("y", (0, 1))
    refused("y: expected one entry", lambda: concatenate([Dataset(AB, y, X, [0]), Dataset(AB, y, X)]))
    refused("weight: expected one", lambda: concatenate([Dataset(AB, y, X, None, [1]), Dataset(AB, y, X)]))
    other = Dataset((AB[0], Variable("other", (0, 1, 2))), None, X)
    assert concatenate([Dataset(AB, None, X), other]).variables == AB
    refused("column 0: expected codes from -1 to 1", lambda: Dataset(AB, None, np.array([[2, 3]])))
    refused("codes from -1 to 2147483647", lambda: Dataset(AB, None, np.array([[0, 0, 2**31]])))


def test_the_widest_column_sets_the_type():
    data = Dataset([AB[0], Variable("wide", tuple(range(300)))], None, np.array([[1, 299]]))
    assert data.X.tolist() == [[1, 299]]
