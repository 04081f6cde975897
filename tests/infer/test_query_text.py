import numpy as np
import pandas as pd
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit
from tinybayes.infer.ask import parse_query
from tinybayes.infer.frames import encode_evidence, query_frames
from tinybayes.model import Cuts, Variable

NODES = (
    Variable("a", (0, 1)),
    Variable.from_encoding("height", Cuts([150, 180])),
    Variable("x=y", ("no", "yes")),
    Variable("wet", (False, True)),
    Variable("size", (1.0, 2.5)),
)


@pytest.mark.parametrize(
    ("text", "query", "evidence"),
    [
        ("", [-1] * 5, [-1] * 5),
        ("a=1", [1, -1, -1, -1, -1], [-1] * 5),
        (" a = 1 ,wet=true| x=y=yes , size=1", [1, -1, -1, 1, -1], [-1, -1, 1, -1, 0]),
        ("| height=170.5", [-1] * 5, [-1, 1, -1, -1, -1]),
        ("height=>= 180 |", [-1, 2, -1, -1, -1], [-1] * 5),
        ("height=149, a=0, a=0 | a=0", [0, 0, -1, -1, -1], [0, -1, -1, -1, -1]),
        ("size=2.50", [-1, -1, -1, -1, 1], [-1] * 5),
    ],
)
def test_queries_are_read_as_written(text, query, evidence):
    found = parse_query(text, NODES)
    assert [row.tolist() for row in found] == [query, evidence]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b=1", r"one of the variables \(a, height, x=y, wet, size\), got 'b'"),
        ("a=2", r"a state of 'a' \(0, 1\), got '2'"),
        ("a=", "a state of 'a'"),
        ("a", "NAME=STATE"),
        ("a=1, a=0", "one state for 'a', got 1 and 0"),
        ("a=1 | a=0", "one state for 'a', got 1 and 0"),
        ("a=1 | wet=True | size=1", "one bar"),
        ("height=nan", "a state of 'height'"),
    ],
)
def test_wrong_queries_are_refused(text, message):
    with pytest.raises(TinybayesError, match=message):
        parse_query(text, NODES)


def test_tables_of_evidence_are_answered_row_by_row():
    circuit = compile_circuit(zoo.sprinkler())
    frames = [pd.DataFrame({"wet": [True, None]}), pd.DataFrame({"wet": [False]})]
    query, evidence = parse_query("rain=yes", circuit.nodes)
    first, second = query_frames(circuit, frames, query, evidence, posterior=True)
    assert np.exp(first["log_evidence"]).tolist() == pytest.approx([27 / 64, 1])
    assert first["probability"].tolist() == pytest.approx([1 / 3, 1 / 4])
    assert first["rain=yes"].tolist() == pytest.approx(first["probability"].tolist())
    assert first["sprinkler=on"][0] == pytest.approx(20 / 27)
    assert np.exp(second["log_evidence"]).tolist() == pytest.approx([37 / 64])


def test_evidence_with_unknown_columns_states_or_no_probability_is_refused():
    circuit = compile_circuit(zoo.sprinkler())
    query, evidence = parse_query("rain=yes | sprinkler=off", circuit.nodes)

    def ask(**columns):
        return list(query_frames(circuit, [pd.DataFrame(columns)], query, evidence, posterior=False))

    with pytest.raises(TinybayesError, match="columns that are variables of the model, got 'snow'"):
        ask(snow=["yes"])
    with pytest.raises(TinybayesError, match=r"evidence, row 2, column 'rain': expected a state.*got 'maybe'"):
        ask(rain=["yes", "maybe"])
    with pytest.raises(TinybayesError, match="row 1: expected the states that the query says are known"):
        ask(sprinkler=["on"])
    with pytest.raises(TinybayesError, match="row 2: expected evidence with a probability above zero"):
        ask(rain=["yes", "no"], wet=[True, True])
    assert encode_evidence(pd.DataFrame({"rain": [None, "yes"]}), circuit.nodes).tolist() == [[-1, -1, -1], [1, -1, -1]]
