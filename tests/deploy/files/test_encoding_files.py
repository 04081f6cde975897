"""Encodings in model files: they come back equal, and wrong ones are named."""

import numpy as np
import pytest

import zoo
from tinybayes.deploy import load, save
from tinybayes.deploy.bits import unpack_bits
from tinybayes.errors import FileError
from tinybayes.model import BayesNet, Cuts, Grid, Integers, Variable

ENCODINGS = [
    Cuts([]),
    Cuts([-0.1, 2.5e-38, 3e38]),
    Cuts([-7, 2**30 + 1], integer=True),
    Grid(-1.5, 0.25, 40),
    Grid(2.0**41, 2.0**40, 3),
    Grid(-16, 4, 9, integer=True),
    Integers(-3, 5),
]


def network():
    variables = [Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(ENCODINGS)]
    variables.append(Variable("named", ("low", "high"), Grid(0, 1, 2)))
    nodes = [*variables, Variable("y", ("a", "b"))]
    return BayesNet(variables, nodes[-1], [zoo.cpd(np.full(v.cardinality, 1 / v.cardinality)) for v in nodes])


@pytest.mark.parametrize("suffix", ["tb", "bif", "xmlbif"])
def test_encodings_come_back(tmp_path, suffix):
    net = network()
    save(net, tmp_path / f"m.{suffix}")
    found = load(tmp_path / f"m.{suffix}")
    assert [v.encoding for v in found.variables] == [v.encoding for v in net.variables]
    assert [v.states for v in found.variables] == [v.states for v in net.variables]


@pytest.mark.parametrize(
    ("property_text", "message"),
    [
        ("grid = 0 1", "correct or remove the property"),
        ("grid = 0 1 many", "correct or remove the property"),
        ("grid = 0 3 2", "power of two"),
        ("grid = 0 1 3", "3 states"),
        ("cuts = 0.5 nan", "finite, increasing"),
        ("cuts = 0.2 0.7 integer", "differ as integers"),
    ],
)
def test_wrong_encodings_of_text_files(tmp_path, property_text, message):
    net = BayesNet([Variable("a", ("x", "y"))], None, [zoo.cpd([0.5, 0.5])])
    path = tmp_path / "m.bif"
    save(net, path)
    text = path.read_text()
    assert "{ x, y };" in text
    path.write_text(text.replace("{ x, y };", f"{{ x, y }};\n  property {property_text} ;"))
    with pytest.raises(FileError, match=message):
        load(path)


def test_bits_behind_the_last_code_are_no_code():
    assert unpack_bits(np.array([0b11100100, 0b11111111], dtype=np.uint8), 3).tolist() == [4, 4, 7, 7, 7]
