"""Weighted clauses as text, and UAI files as factors."""

import contextlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from tinybayes.deploy.files.clauses import parse_clauses, read_clauses
from tinybayes.deploy.files.uai import read_uai, read_uai_factors, write_uai
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer import compile_circuit, log_partition, posteriors
from tinybayes.model import LogLinear

TEXT = """
# a comment
variable weather sunny rainy snow   # and another
u = 0.5
u: a | b
u: b | !c
-1.25: !a | weather=rainy | weather = snow
hard: weather!=snow | a
"""


def test_clauses_are_read(tmp_path):
    (tmp_path / "m.clauses").write_text(TEXT)
    model = read_clauses(tmp_path / "m.clauses")
    assert model == parse_clauses(TEXT)
    assert [(v.name, v.states) for v in model.variables] == [
        ("weather", ("sunny", "rainy", "snow")),
        ("a", (0, 1)),
        ("b", (0, 1)),
        ("c", (0, 1)),
    ]
    assert model.weights.tolist() == [0.5, -1.25, -math.inf]
    assert model.ties.tolist() == [0, 0, 1, 2]
    for w, a, b, c in itertools.product(range(3), (0, 1), (0, 1), (0, 1)):
        expected = 0.5 * (a or b) + 0.5 * (b or not c) - 1.25 * (not a or w > 0)
        if w == 2 and not a:
            expected = -math.inf
        assert model.log_weights(np.array([[w, a, b, c]]))[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "a clause, got none"),
        ("# nothing\n\n", 1, "a clause, got none"),
        ("1: a\na | b", 2, "a clause, a named weight or a variable"),
        ("1: a\n\nw: a | b", 3, "a number, 'hard' or a named weight (none so far), got 'w'"),
        ("u = 1\nw: a", 2, "a named weight (u)"),
        ("u = 1\nu = 2\nu: a", 2, "weight 'u' once"),
        ("u = inf\nu: a", 1, "a finite number, got 'inf'"),
        ("1e999: a", 1, "a finite number"),
        ("hard = 2", 1, "the name of a weight"),
        ("1: a | ", 1, "a literal"),
        ("1:", 1, "a literal"),
        ("1: a b", 1, "a literal"),
        ("1: !a=1", 1, "a literal"),
        ("1: a | b | !a", 1, "a clause that can be false, got one that names every state of 'a'"),
        ("variable w x y z\n1: w", 2, "a state of 'w', which has 3"),
        ("variable w x y z\n1: w=q", 2, "a state of 'w' (x, y, z), got 'q'"),
        ("1: w\nvariable w x y z", 2, "variable 'w' once, before it is used"),
        ("variable w x x", 1, "distinct states"),
        ("variable w", 1, "'variable NAME STATE ...'"),
    ],
)
def test_bad_clauses_are_named_with_their_line(text, line, message):
    with pytest.raises(FileError) as caught:
        parse_clauses(text)
    assert str(caught.value).startswith(f"clauses:{line}: expected ")
    assert message in str(caught.value)


@given(st.text(alphabet="ab01|!=: .\n#u-", max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(TinybayesError):
        parse_clauses(text)


MARKOV = """MARKOV
3
2 2 3
4
2 0 1
2 2 1
1 0
0

4
 1 2  3 0
6
 .5 1  1 1  2 4
2
 1 5
1
 10
"""


def test_markov_networks_are_read(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text(MARKOV)
    model = read_uai_factors(path)
    assert model.n_features == 13
    total = 0.0
    for a, b, c in itertools.product(range(2), range(2), range(3)):
        value = [[1, 2], [3, 0]][a][b] * [[0.5, 1], [1, 1], [2, 4]][c][b] * [1, 5][a] * 10
        total += value
        found = math.exp(model.log_weights(np.array([[a, b, c]]))[0])
        assert found == pytest.approx(value)
    assert log_partition(model) == pytest.approx(math.log(total), abs=1e-12)
    with pytest.raises(FileError, match="read_uai_factors"):
        read_uai(path)


def test_bayes_files_are_the_factors_of_their_networks(tmp_path):
    path = tmp_path / "n.uai"
    write_uai(zoo.sprinkler(), path)
    assert read_uai_factors(path) == LogLinear.from_bayes_net(read_uai(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "MARKOW", ":1: expected 'BAYES' or 'MARKOV'"),
        ("4\n 1 2", "5\n 1 2", ":10: expected the number of entries of function 0, 4"),
        ("3 0\n", "3 -1\n", ":11: expected a finite number that is not negative, got -1.0"),
        ("3 0\n", "3 nan\n", ":11: expected a finite number that is not negative"),
        ("3 0\n", "3 x\n", ":11: expected a number, got 'x'"),
        ("2 2 1", "2 1 1", ":6: expected each variable once"),
        ("2 2 1", "2 3 1", ":6: expected the index of a variable"),
        ("2 2 1", "4 2 1", ":6: expected the size of a scope"),
        (" 10\n", "", "expected 1 entries of function 3, got the end of the file"),
        (" 10\n", "10 11\n", ":17: expected the end of the file"),
    ],
)
def test_bad_markov_files_are_refused(tmp_path, old, new, message):
    path = tmp_path / "m.uai"
    path.write_text(MARKOV.replace(old, new, 1))
    with pytest.raises(FileError) as caught:
        read_uai_factors(path)
    assert message in str(caught.value)


def test_tables_too_large_are_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text("MARKOV\n30\n" + "2 " * 30 + "\n1\n30 " + " ".join(map(str, range(30))) + "\n1073741824\n")
    with pytest.raises(FileError, match="at most 16,777,216 numbers in all tables"):
        read_uai_factors(path)
    path.write_text("MARKOV\n1\n16000000\n0\n")
    with pytest.raises(FileError, match="at most 1,048,576 states"):
        read_uai_factors(path)


@pytest.mark.parametrize("name", ["students_03_02-0000", "fs-04"])
def test_marginals_of_real_networks(data_dir, name):
    folder = data_dir / "networks"
    circuit = compile_circuit(read_uai_factors(folder / f"{name}.uai"))
    words = (folder / "truth" / f"{name}.prior.MAR").read_text().split()
    truth, place = [], 2
    for _ in range(int(words[1])):
        count = int(words[place])
        truth += map(float, words[place + 1 : place + 1 + count])
        place += 1 + count
    found = posteriors(circuit, np.full((1, len(circuit.variables)), -1))[0]
    assert found == pytest.approx(truth, abs=1e-9)
