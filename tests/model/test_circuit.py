import pickle
from dataclasses import replace

import numpy as np
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.model import Circuit, Float, Variable


def test_a_circuit_knows_its_size_and_its_indicators():
    circuit = zoo.hand_circuit()
    assert (circuit.n_nodes, circuit.n_edges) == (15, 16)
    assert circuit.first_state.tolist() == [0, 2, 4]
    assert np.exp(circuit.log_parameters).tolist() == pytest.approx([1 / 4, 3 / 4, 1 / 2])
    assert [node.name for node in circuit.nodes] == ["a", "c"]
    assert circuit == zoo.hand_circuit()
    assert circuit != replace(circuit, target=None, variables=circuit.nodes)


def altered(name, index, value):
    array = getattr(zoo.hand_circuit(), name).astype(np.int64)
    array[index] = value
    return {name: array}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (altered("kind", 0, 4), "kinds from 0 to 3, got 4"),
        (altered("kind", 0, 255), "kinds from 0 to 3, got 255"),
        (altered("kind", 0, 2), "node 0: expected children for sums and products"),
        (altered("kind", 14, 0), "node 14: expected children"),
        (altered("children", 0, 7), "node 7: expected children that come before"),
        (altered("children", 3, -1), "node 8: expected children that come before"),
        (altered("leaf", 0, 4), "node 0, a indicator: expected a leaf from 0 to 3, got 4"),
        (altered("leaf", 4, 3), "node 4, a parameter: expected a leaf from 0 to 2, got 3"),
        (altered("leaf", 14, 0), "expected -1 as leaf"),
        *((altered("leaf", n, 0), f"node {n}, a .*: expected -1 as leaf, got 0") for n in range(7, 14)),
        (altered("leaf", 14, -2), "expected -1 as leaf, got -2"),
        (altered("leaf", 14, 2**31 - 1), "expected -1 as leaf, got 2147483647"),
        (altered("leaf", 14, -(2**31)), "expected -1 as leaf, got -2147483648"),
        (altered("offsets", 0, 1), "offsets that grow"),
        (altered("offsets", 8, 99), "offsets that grow"),
        ({"leaf": np.zeros(3, int)}, "a kind and a leaf for each node"),
        ({"table": np.zeros((2, 2))}, "one axis"),
        ({"table": np.array([np.inf])}, "below infinity"),
        ({"kind": np.zeros(15)}, "kind: expected integers"),
        ({"variables": ()}, "a leaf from 0 to 1"),
        ({"variables": (Variable("c", (0, 1)),)}, "distinct names"),
    ],
)
def test_what_is_no_circuit_is_refused(change, message):
    with pytest.raises(TinybayesError, match=message):
        replace(zoo.hand_circuit(), **change)


def test_no_variables_and_no_nodes_are_no_circuit():
    nothing = np.empty(0, int)
    with pytest.raises(TinybayesError, match="one at least"):
        Circuit((), None, nothing, np.zeros(1, int), nothing, nothing, np.empty(0), Float(64))
    with pytest.raises(TinybayesError, match="a kind and a leaf"):
        Circuit((Variable("a", (0,)),), None, nothing, np.zeros(1, int), nothing, nothing, np.empty(0), Float(64))


def test_circuits_are_pickled_without_what_was_computed():
    circuit = zoo.hand_circuit()
    assert circuit.log_parameters.size
    assert set(circuit.__getstate__()) == set(circuit.__dataclass_fields__)
    assert pickle.loads(pickle.dumps(circuit)) == circuit


def test_lists_are_taken_and_ranges_shown():
    circuit = replace(zoo.hand_circuit(), variables=list(zoo.hand_circuit().variables))
    assert circuit.variables == zoo.hand_circuit().variables
    with pytest.raises(TinybayesError, match="integers within uint8, got -7 to 300"):
        replace(circuit, kind=np.array([-7, 300, *circuit.kind[2:]]))


@pytest.mark.parametrize(("name", "value"), [("children", 2**31), ("leaf", -(2**31) - 1), ("kind", 256), ("kind", -1)])
def test_numbers_beyond_their_type_are_refused(name, value):
    with pytest.raises(TinybayesError, match=f"circuit, {name}: expected integers within"):
        replace(zoo.hand_circuit(), **altered(name, 0, value))


def test_circuits_differ_in_each_of_their_parts():
    circuit = zoo.hand_circuit()
    order = circuit.children.copy()
    order[:2] = order[1::-1]
    assert circuit != replace(circuit, children=order)
    assert circuit != replace(circuit, table=circuit.table - 1)
    assert circuit != replace(circuit, table=circuit.table.astype(np.float32), format=Float(32))
    assert circuit != "a circuit"


def test_an_indicator_alone_is_a_circuit():
    none = np.empty(0, int)
    one = Circuit((Variable("a", (0, 1)),), None, [1], [0, 0], none, [1], np.empty(0), Float(64))
    assert (one.n_nodes, one.n_edges, one.first_state.tolist()) == (1, 0, [0, 2])
    for leaf in (2, -1):
        with pytest.raises(TinybayesError, match=f"a leaf from 0 to 1, got {leaf}"):
            replace(one, leaf=[leaf])
