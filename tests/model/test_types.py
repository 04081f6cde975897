import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.errors import TinybayesError
from tinybayes.model import CPD, BayesNet, Codebook, Dataset, DecisionTree, Fixed, Float, Structure, Variable

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
    refused("increasing cut points", lambda: Variable("a", (0, 1, 2), (2.0, 1.0)))
    refused("increasing cut points", lambda: Variable("a", (0, 1), (float("inf"),)))
    refused("2 states for 1 cut points, got 3", lambda: Variable("a", (0, 1, 2), (1.0,)))


def test_intervals_have_readable_and_distinct_names():
    assert Variable.from_edges("h", []).states == ("any",)
    assert Variable.from_edges("h", [1.5]).states == ("< 1.5", ">= 1.5")
    close = Variable.from_edges("h", [1.0000001, 1.0000002])
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
    found = book.decode(book.encode(np.array(values)))
    for value, level in zip(values, found, strict=True):
        assert abs(value - level) <= min(abs(value - other) for other in levels) + 1e-12


def test_formats_at_their_limits():
    assert Fixed(1, 0).encode(np.array([-np.inf, -0.5, -1.5, 0.0])).tolist() == [1, 0, 1, 0]
    assert Codebook((-np.inf, -1.0)).encode(np.array([-np.inf, -50.0, -1.0])).tolist() == [0, 1, 1]
    assert [Codebook(tuple(range(-k, 0))).bits for k in (1, 2, 3, 4, 5, 256, 257)] == [0, 1, 2, 2, 3, 8, 9]
    assert (str(Float()), str(Fixed(3, -1)), str(Codebook((-1.0,)))) == ("float32", "fixed3.-1", "codebook1")
    refused("1 to 32 bits", lambda: Fixed(2, -2))
    refused("1 to 32 bits", lambda: Fixed(2000, -1990))
    refused("32 or 64 bits", lambda: Float(16))
    refused("increasing levels", lambda: Codebook((0.0, -1.0)))
    refused("increasing levels", lambda: Codebook(()))
    refused("increasing levels", lambda: Codebook((float("nan"),)))


def test_structures_are_acyclic():
    refused("cycle among or above the nodes", lambda: Structure(((1,), (0,))))
    refused("distinct parents among", lambda: Structure(((1,),)))
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
    refused("distribution of 'b': expected 3 columns", lambda: BayesNet(AB, None, (UNIFORM_A, UNIFORM_A)))
    refused(
        "distribution of 'b': expected 2 rows",
        lambda: BayesNet(AB, None, (UNIFORM_A, CPD((0,), np.zeros((3, 3)), Float()))),
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
    refused("a row of 0..1", lambda: net([-1], [0], [], [5]))
    refused("test of one of the parents", lambda: net([1, -1, -1], [0, 0, 0], [1, 2], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [0, 0, 0], [0, 2], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [0, 0, 0], [1], [0, 0, 1]))
    refused("2 children after the node", lambda: net([0, -1, -1], [-1, 0, 0], [1, 2], [0, 0, 1]))


def test_tables_fit_their_format():
    refused("fixed1.1: expected codes from 0 to 3", lambda: CPD((), np.array([[4]]), Fixed(1, 1)))
    refused("codes from 0 to 3", lambda: CPD((), np.array([[-1]]), Fixed(1, 1)))
    refused("codes from 0 to 1", lambda: CPD((), np.array([[2]]), Codebook((-1.0, 0.0))))
    refused("codes from 0 to 1", lambda: CPD((), np.array([[0.0]]), Codebook((-1.0, 0.0))))
    refused("log-parameters below infinity", lambda: CPD((), np.array([[np.nan]]), Float()))
    refused("log-parameters below infinity", lambda: CPD((), np.array([[1]]), Float()))
    assert CPD((), np.array([[3]]), Fixed(1, 1)).table.dtype == np.uint8
    assert CPD((), np.array([[-1.0]]), Float()).table.dtype == np.float32
