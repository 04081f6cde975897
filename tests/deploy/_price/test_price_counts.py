"""Counts of programs, worked by hand: what the compiler links, and what is on the stack."""

import pytest

import zoo
from networks import classifier
from tinybayes.deploy._price.circuits import count_circuit
from tinybayes.deploy._price.counts import count_program
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.infer import compile_circuit
from tinybayes.model import Fixed


def test_the_library_of_the_compiler_is_linked_once_and_called_at_the_end_of_the_deepest_calls():
    counts = count_program(make_plan(zoo.naive_bayes(), "float"), most=0)
    linked = {kind: count for kind, count in counts.written.items() if kind.startswith("library")}
    assert linked == {"library_float_add": 1.0, "library_float_compare": 1.0}
    assert counts.written["float_add"] == 4
    assert counts.frames["library"] == 1
    integers = count_program(make_plan(classifier("naive", Fixed(3, 1)), "none"), most=0)
    assert "library" not in integers.frames
    assert not [kind for kind in integers.written if kind.startswith("library")]


@pytest.mark.parametrize(("features", "wide"), [(4, 8), (8, 16), (9, 16)])
def test_the_codes_of_a_row_are_on_the_stack_where_raw_values_are_taken(features, wide):
    circuit = compile_circuit(classifier("naive", Fixed(3, 1), features=features, classes=3))  # and the class
    assert count_circuit(make_circuit_plan(circuit, "float"), most=0).arrays == wide
    assert count_circuit(make_circuit_plan(circuit, "none"), most=0).arrays == 0
