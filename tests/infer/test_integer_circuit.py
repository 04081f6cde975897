"""Circuits in integers against Python's unbounded integers and fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.infer.integer_circuit import ONE, _share, add, analyse, encode, integer_posterior, multiply
from tinybayes.model import Circuit, Float, Variable
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM

TOP = 1 << 31
MANTISSAS = st.one_of(st.just(0), st.sampled_from([TOP, TOP + 1, 2 * TOP - 1]), st.integers(TOP, 2 * TOP - 1))
NUMBERS = st.tuples(MANTISSAS, st.integers(-80, 40)).map(lambda pair: pair if pair[0] else (0, 0))


def arrays(number):
    return np.array([number[0]], dtype=np.uint64), np.array([number[1]], dtype=np.int64)


def plain(number):
    return int(number[0][0]), int(number[1][0])


def added(a, b):
    """Add as the definition says: the smaller number loses the bits below the unit of the larger one."""
    if not a[0] or not b[0]:
        return a if a[0] else b
    (m, e), (low, under) = (a, b) if a[1] >= b[1] else (b, a)
    total = m + (low >> (e - under) if e - under <= 31 else 0)
    return (total >> 1, e + 1) if total >= 2 * TOP else (total, e)


def multiplied(a, b):
    product = a[0] * b[0]
    if not product:
        return 0, 0
    shift = product.bit_length() - 32
    return product >> shift, a[1] + b[1] + shift


@given(NUMBERS, NUMBERS)
def test_sums_and_products_are_those_of_unbounded_integers(a, b):
    total, product = plain(add(arrays(a), arrays(b))), plain(multiply(arrays(a), arrays(b)))
    assert total[0] == added(a, b)[0]
    assert product == multiplied(a, b)
    if total[0]:
        assert total == added(a, b)


@pytest.mark.parametrize(("a", "b"), [((0, 0), (TOP, -60)), ((TOP, -60), (0, 0)), ((TOP, 0), (TOP, -5))])
def test_zero_adds_nothing_and_takes_nothing(a, b):
    assert plain(add(arrays(a), arrays(b))) == added(a, b)
    assert plain(add(arrays(b), arrays(a))) == added(a, b)


@given(NUMBERS, NUMBERS)
@example((TOP, 0), (TOP, 1))  # an exponent of zero is not a zero
def test_shares_are_rounded_down(value, total):
    if not total[0]:
        return
    down = total[1] - value[1]
    if down < 0:
        return  # no value is larger than the sum that it is part of
    wanted = (value[0] << 16) // total[0] >> down if value[0] else 0
    assert _share(arrays(value), arrays(total)).tolist() == [wanted]


@pytest.mark.parametrize(
    "value", [0.0, -0.7, 3.0, -1e-17, 1e-17, np.log(0.5), np.log(2.0), -700.0, 25.0, -8388568 * np.log(2.0)]
)
def test_numbers_are_the_nearest(value):
    m, e = encode(value)
    assert TOP <= m < 2 * TOP
    assert np.log(m) + e * np.log(2.0) == pytest.approx(value, abs=2.0**-31 + 1e-13, rel=1e-15)
    assert encode(-np.inf) == (0, 0)
    assert encode(0.0) == (int(ONE[0]), int(ONE[1]))


def exact(circuit, row, query):
    """The joint values of a row and each state of the query, as fractions of the parameters as doubles."""
    parameters = [Fraction(float(np.exp(value))) for value in circuit.log_parameters]
    first = circuit.first_state
    found = []
    for state in range(circuit.nodes[query].cardinality):
        known = [state if v == query else code for v, code in enumerate(row)]
        values = []
        for n in range(circuit.n_nodes):
            below = [values[c] for c in circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]]
            leaf = int(circuit.leaf[n])
            if circuit.kind[n] == PARAMETER:
                values.append(parameters[leaf])
            elif circuit.kind[n] == INDICATOR:
                v = int(np.searchsorted(first, leaf, side="right")) - 1
                values.append(Fraction(known[v] in (-1, leaf - first[v])))
            elif circuit.kind[n] == SUM:
                values.append(sum(below))
            else:
                values.append(Fraction(np.prod([Fraction(1), *below])))
        found.append(values[-1])
    return found


def mixture():
    """One variable of three states, whose second one is impossible where the other variable is 1."""
    kind = [PARAMETER] * 5 + [INDICATOR] * 5 + [PRODUCT] * 5 + [SUM]
    leaf = [*range(5), *range(5), *[-1] * 6]
    below = [(0, 5, 8), (1, 6, 8), (2, 7, 8), (3, 5, 9), (4, 7, 9), range(10, 15)]
    offsets = np.cumsum([0] * 11 + [len(part) for part in below])
    variables = Variable("a", (0, 1, 2)), Variable("b", (0, 1))
    table = np.log([0.2, 0.1, 0.15, 0.25, 0.28])
    return Circuit(variables, None, kind, offsets, [c for part in below for c in part], leaf, table, Float(64))


@pytest.mark.parametrize("make", [zoo.hand_circuit, mixture])
@pytest.mark.parametrize("query", [0, 1])
def test_posteriors_and_states_are_those_of_fractions(make, query):
    circuit = make()
    rows = np.array(list(itertools.product(*(range(-1, card) for card in circuit.cardinalities))))
    posterior, best = integer_posterior(circuit, rows, query)
    for row, share, state in zip(rows.tolist(), posterior.tolist(), best.tolist(), strict=True):
        values = exact(circuit, row, query)
        total = sum(values)
        if not total:
            assert not any(share)
            continue
        assert state == values.index(max(values))
        for got, value in zip(share, values, strict=True):
            assert abs(got - 2**16 * value / total) <= 1 + Fraction(1, 2**10)
            assert bool(got) <= bool(value)
    with pytest.raises(TinybayesError, match="rows of 2 codes"):
        integer_posterior(circuit, rows[:, :1], query)


def test_values_are_bounded_and_roundings_counted_by_hand():
    """A product of three factors has two roundings of its own and one of its parameter; four sums of five follow."""
    found = analyse(mixture())
    assert found.roundings == 3 + 4
    assert found.low == pytest.approx(np.log2(0.1))
    assert found.high == 0.0  # of indicators
    kind, leaf = [PARAMETER, INDICATOR, INDICATOR, PRODUCT, PRODUCT, SUM], [0, 0, 1, -1, -1, -1]
    variable = (Variable("a", (0, 1)),)
    large = Circuit(variable, None, kind, [0, 0, 0, 0, 2, 4, 6], [0, 1, 0, 2, 3, 4], leaf, np.log([8.0]), Float(64))
    assert (analyse(large).low, analyse(large).high) == (0.0, pytest.approx(4.0))
    kind = [PARAMETER] * 2 + [INDICATOR] * 3 + [PRODUCT] * 3 + [SUM]
    below = [(0, 2), (1, 3), (1, 4), (5, 6, 7)]
    offsets, children = [0] * 6 + [2, 4, 6, 9], [c for part in below for c in part]
    with np.errstate(divide="ignore"):
        logs = np.log([0.0, 8.0])
    three = (Variable("a", (0, 1, 2)),)
    some = Circuit(three, None, kind, offsets, children, [0, 1, 0, 1, 2, -1, -1, -1, -1], logs, Float(64))
    assert (analyse(some).low, analyse(some).high) == (0.0, pytest.approx(4.0))  # zero needs no room, and takes none


@pytest.mark.parametrize(("bits", "low", "high"), [((-10, -10, 20), -20, 20), ((10, 10, -20), -20, 20), ((3, 4), 0, 7)])
def test_products_of_the_first_few_factors_have_to_fit(bits, low, high):
    count = len(bits)
    kind, leaf = [PARAMETER] * count + [INDICATOR, PRODUCT], [*range(count), 0, -1]
    offsets = [0] * (count + 2) + [count + 1]
    logs = np.array(bits) * np.log(2.0)
    circuit = Circuit((Variable("a", (0,)),), None, kind, offsets, range(count + 1), leaf, logs, Float(64))
    found = analyse(circuit)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.roundings == count + count  # of the parameters, and of the products with the indicator
