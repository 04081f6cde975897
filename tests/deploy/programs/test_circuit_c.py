"""Circuits as C against Python: the same integers, and posteriors within the bound that the header states."""

import re
import subprocess

import numpy as np
import pytest

from c_host import build
from networks import classifier, codebook
from tinybayes.deploy.programs.c import to_c
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, conditional, integer_posterior
from tinybayes.infer.integer_circuit import add, encode, multiply
from tinybayes.model import Circuit, Fixed, Float, Variable

MAIN = """
#include <stdio.h>
#include "net.h"
int main(void)
{{
    uint8_t x[{nodes}];
    {kind} p[{states}];
    struct net_memory memory;
    unsigned s;
    while (fread(x, 1, {nodes}U, stdin) == {nodes}U) {{
        printf("%d %d", net_posterior(x, &memory, p), (int)net_predict(x, &memory));
        for (s = 0; s < {states}U; ++s) {{
            printf(" {print}", {cast}p[s]);
        }}
        printf("\\n");
    }}
    return 0;
}}
"""


def evidence(circuit, rows, seed=0):
    rng = np.random.default_rng(seed)
    X = np.array([rng.integers(0, v.cardinality, rows) for v in circuit.nodes]).T
    X[rng.random(X.shape) < 0.5] = -1
    return X


def run(directory, circuit, X, query, arithmetic):
    texts = to_c(circuit, name="net", query=circuit.nodes[query].name, arithmetic=arithmetic)
    whole = arithmetic == "integer"
    states = circuit.nodes[query].cardinality
    kinds = {"kind": "uint32_t" if whole else "float", "print": "%lu" if whole else "%.9g"}
    cast = "(unsigned long)" if whole else "(double)"
    main = MAIN.format(nodes=len(circuit.nodes), states=states, cast=cast, **kinds)
    program = build(directory, texts, main)
    codes = np.where(X < 0, 255, X).astype(np.uint8)
    found = subprocess.run([program], input=codes.tobytes(), capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    rows = np.array([[float(v) for v in line.split()] for line in found.stdout.decode().splitlines()])
    bound = float(re.search(r"within (\S+) of the exact", texts["net.c"]).group(1))
    return rows[:, 0].astype(bool), rows[:, 1].astype(int), rows[:, 2:], bound


def exact(circuit, X, query):
    """The posterior by the exact queries of the package, row by row; zeros where the evidence is impossible."""
    known = X.copy()
    known[:, query] = -1
    states = circuit.nodes[query].cardinality
    found = np.zeros((len(X), states))
    for i, row in enumerate(known):
        for s in range(states):
            asked = np.full_like(row, -1)
            asked[query] = s
            try:
                found[i, s] = conditional(circuit, asked[None], row[None])[0]
            except TinybayesError:
                break
    return found


@pytest.mark.parametrize(
    ("structure", "form", "query", "zeros"),
    [
        ("naive", Float(32), 5, False),
        ("tree", Fixed(3, 2), 5, False),
        ("general", Float(64), 2, False),
        ("trees", codebook(13), 5, False),
        ("tree", Float(64), 1, True),
    ],
)
def test_posteriors(tmp_path, structure, form, query, zeros):
    circuit = compile_circuit(classifier(structure, form, seed=7, zeros=zeros))
    X = evidence(circuit, 60)
    wanted = exact(circuit, X, query)
    for arithmetic in ("integer", "float"):
        place = tmp_path / arithmetic
        place.mkdir()
        possible, labels, posterior, bound = run(place, circuit, X, query, arithmetic)
        scaled = posterior / (65536 if arithmetic == "integer" else 1)
        np.testing.assert_array_equal(possible, wanted.any(axis=1))
        assert np.abs(scaled - wanted)[possible].max() <= bound
        assert bound < 1e-4
        if arithmetic == "integer":
            integers, states = integer_posterior(circuit, X, query)
            np.testing.assert_array_equal(posterior, integers)
            np.testing.assert_array_equal(labels, states)


def test_numbers_behave_like_numbers():
    rng = np.random.default_rng(0)
    logs = rng.uniform(-200, 3, 400)
    pairs = np.array([encode(v) for v in logs], dtype=object)
    m, e = pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.int64)
    assert ((m >= 1 << 31) & (m < 1 << 32)).all()
    value = [int(a) * 2.0 ** int(b) for a, b in zip(m, e, strict=True)]
    np.testing.assert_allclose(np.log(value), logs, atol=1e-9)
    half = 200
    a, b = (m[:half], e[:half]), (m[half:], e[half:])
    for function, oracle in ((multiply, np.multiply), (add, np.add)):
        got = function(a, b)
        number = got[0].astype(float) * 2.0 ** got[1].astype(float)
        wanted = oracle(np.array(value[:half]), np.array(value[half:]))
        assert (number <= wanted * (1 + 1e-15)).all()
        assert (number >= wanted * (1 - 2.0**-30)).all()


def long_product(parameters):
    """A circuit whose values are far below what a float can hold."""
    variables = tuple(Variable(f"v{i}", (0,)) for i in range(parameters))
    kind = [0] * parameters + [1] * parameters + [3]
    leaf = [*range(parameters), *range(parameters), -1]
    offsets = [0] * (2 * parameters + 1) + [2 * parameters]
    arrays = [np.array(a) for a in (kind, offsets, list(range(2 * parameters)), leaf)]
    return Circuit(variables, None, *arrays, np.full(parameters, -20.0), Float(64))


def test_what_floats_cannot_hold_is_refused_and_integers_hold_it(tmp_path):
    circuit = long_product(20)
    with pytest.raises(TinybayesError, match=r"arithmetic 'float': expected values from 2\*\*-126 .* use arithmetic"):
        to_c(circuit, query="v0", arithmetic="float")
    possible, labels, posterior, _ = run(tmp_path, circuit, evidence(circuit, 3), 0, "integer")
    assert possible.all()
    assert (labels == 0).all()
    assert (posterior == 65536).all()
    with pytest.raises(TinybayesError, match=r"arithmetic 'integer': expected values from 2\*\*-30000"):
        to_c(long_product(1100), query="v0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": "nobody"}, "query: expected one of the variables"),
        ({"arithmetic": "decimal"}, "arithmetic: expected"),
    ],
)
def test_bad_questions(options, words):
    with pytest.raises(TinybayesError, match=words):
        to_c(compile_circuit(classifier("naive", Float(32))), **options)


@pytest.mark.parametrize("option", ["query", "arithmetic"])
def test_options_of_circuits_are_not_ignored_for_networks(option):
    with pytest.raises(TinybayesError, match=f"{option}: expected a circuit with this option"):
        to_c(classifier("naive", Float(32)), **{option: "integer"})
