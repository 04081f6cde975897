"""Circuits in files: the native format and Libra's text."""

import json
import math

import numpy as np
import pytest
from test_native_hostile import opened, sealed

import oracle
import zoo
from tinybayes.deploy import load, read_network, save
from tinybayes.deploy.files.ac import read_ac, write_ac
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer import compile_circuit, log_evidence
from tinybayes.model import BayesNet, Codebook, Fixed, Float, Variable

FORMATS = (Float(), Float(64), Fixed(3, 2), Codebook((-math.inf, -2.0, -1.0, -0.5, 0.0)), Codebook((-1.0,)))


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_saved_circuit_comes_back_bit_by_bit(form, tmp_path):
    circuit = compile_circuit(zoo.random_net(np.random.default_rng(1), 5, formats=(form,), trees=True))
    save(circuit, tmp_path / "c.tb", metadata={"by": "hand"})
    assert load(tmp_path / "c.tb") == circuit
    save(circuit, tmp_path / "again.tb", metadata={"by": "hand"})
    assert (tmp_path / "c.tb").read_bytes() == (tmp_path / "again.tb").read_bytes()


def test_a_circuit_of_one_leaf_and_an_empty_table(tmp_path):
    net = BayesNet((Variable("a", ("only",)),), None, (zoo.cpd([1.0]),))
    circuit = compile_circuit(net)
    save(circuit, tmp_path / "c.tb")
    assert load(tmp_path / "c.tb") == circuit


def changed(tmp_path, change):
    save(zoo.hand_circuit(), tmp_path / "c.tb")
    document, tensors = opened((tmp_path / "c.tb").read_bytes())
    tensors = {name: array.copy() for name, array in tensors.items()}
    change(document["model"], tensors)
    (tmp_path / "bad.tb").write_bytes(sealed(document, tensors))
    return tmp_path / "bad.tb"


def test_the_unchanged_parts_make_a_sound_file(tmp_path):
    assert load(changed(tmp_path, lambda model, tensors: None)) == zoo.hand_circuit()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: m.update(nodes=10**9), "more entries"),
        (lambda m, t: m.update(nodes=0), "an integer from 1"),
        (lambda m, t: m.update(parameters=4), "more entries"),
        (lambda m, t: m.update(parameters=-1), "an integer from 0"),
        (lambda m, t: m.pop("format"), "format"),
        (lambda m, t: m["variables"].clear(), "a leaf from 0|variables"),
        (lambda m, t: t["circuit.sizes"].__setitem__(0, 0), "one child or more"),
        (lambda m, t: t["circuit.sizes"].__setitem__(0, 100), "more entries"),
        (lambda m, t: t["circuit.children"].__setitem__(0, 14), "come before their node"),
        (lambda m, t: t["circuit.children"].__setitem__(0, -1), "come before their node"),
        (lambda m, t: t["circuit.leaves"].__setitem__(0, 9), "a leaf from 0 to 3"),
        (lambda m, t: t["circuit.leaves"].__setitem__(5, 3), "a leaf from 0 to 2"),
        (lambda m, t: t["circuit.children"].__setitem__(1, 1), "decomposable"),
        (lambda m, t: t.update(more=np.zeros(3)), "no such tensor"),
    ],
)
def test_wrong_circuits_are_refused_by_place(change, message, tmp_path):
    path = changed(tmp_path, change)
    with pytest.raises(FileError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


HAND = "(2 2)\nv 0 0\nv 0 1\nv 1 0\nv 1 1\nn 0.25\nn 0.75\n* 0 4\n* 1 5\n+ 6 7\n+ 2 3\n* 8 9\nEOF\n"


def test_libra_text_is_read_as_it_is_written_there(tmp_path):
    (tmp_path / "c.ac").write_text(HAND)
    circuit = read_ac(tmp_path / "c.ac")
    assert [node.cardinality for node in circuit.nodes] == [2, 2]
    assert oracle.circuit_value(circuit, [1, -1])[-1] == 0.75 * 2
    write_ac(circuit, tmp_path / "again.ac")
    assert (tmp_path / "again.ac").read_text() == HAND


def test_a_compiled_network_keeps_its_distribution_as_text(tmp_path):
    net = zoo.random_net(np.random.default_rng(2), 4, trees=True)
    for name in ("c.ac", "c.ac.gz"):
        save(net, tmp_path / name)
        rows, logs = oracle.joint(net)
        np.testing.assert_allclose(log_evidence(load(tmp_path / name), rows), logs, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ("2 2\nEOF\n", ":1: expected numbers of states in brackets"),
        ("(2 0)\nEOF\n", "one state or more"),
        ("(2)\nEOF\n", "one node or more"),
        (HAND.removesuffix("EOF\n"), "'EOF' after the last node"),
        ("(2)\nv 0 2\nEOF\n", ":2: expected a state of one of the variables"),
        ("(2)\nv 1 0\nEOF\n", ":2: expected a state of one of the variables"),
        ("(2)\nv 0\nEOF\n", ":2: expected 2 integers"),
        ("(2)\nn -1\nEOF\n", ":2: expected a constant that is not negative"),
        ("(2)\nn nan\nEOF\n", ":2: expected a constant"),
        ("(2)\nn one\nEOF\n", ":2: expected a constant"),
        ("(2)\nv 0 0\n+ 1\nEOF\n", ":3: expected children on lines before"),
        ("(2)\nv 0 0\n+\nEOF\n", ":3: expected one or more integers"),
        ("(2)\nv 0 0\nx 0\nEOF\n", ":3: expected a node"),
        ("(2)\nv 0 0\nv 0 1\n* 0 1\nEOF\n", "expected a decomposable circuit, got node 2"),
    ],
)
def test_wrong_text_is_refused_by_line(text, message, tmp_path):
    (tmp_path / "c.ac").write_text(text)
    with pytest.raises(FileError, match=message):
        read_ac(tmp_path / "c.ac")


def test_a_circuit_is_no_network(tmp_path):
    with pytest.raises(TinybayesError, match=r"expected a Bayesian network, got a circuit"):
        save(zoo.hand_circuit(), tmp_path / "c.bif")
    assert not (tmp_path / "c.bif").exists()
    save(zoo.hand_circuit(), tmp_path / "c.tb")
    with pytest.raises(TinybayesError, match=r"expected a Bayesian network, got a circuit"):
        read_network(tmp_path / "c.tb")
    assert json.dumps(opened((tmp_path / "c.tb").read_bytes())[0]["kind"]) == '"Circuit"'
