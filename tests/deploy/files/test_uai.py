"""UAI: what is read by hand, exact round trips, and no way to be hurt by a bad file."""

import gzip
import math
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from cases import exhaustive
from mutate import Corpus, mutants
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.uai import read_evidence, read_uai, write_uai
from tinybayes.deploy.files.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import BayesNet, Fixed, Float, Variable

# x1 has the parents x2 (three states, slowest) and x0; functions are out of order, and so are the line breaks.
SMALL = """BAYES
3
2 2 3
3
3 2 0 1
1 2
1 0

12
 0.2 0.8  0.3 0.7
 0.4 0.6  0.1 0.9
 0 1
 5e-2 0.95
3
 0.25 0.25 0.5

2 0.5
  0.5
"""

NAMES = ["50-14-1", "75-18-1", "90-20-1", "BN_0", "bn2o-30-15-150-1a", "bn2o-30-20-200-1a", "fs-04", "mastermind1"]
NAMES.append("students_03_02-0000")


def put(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "net.uai"
    path.write_text(text, encoding="utf-8")
    return path


def again(net: BayesNet, tmp_path: Path, **options: object) -> BayesNet:
    write_uai(net, tmp_path / "again.uai", **options)
    return read_uai(tmp_path / "again.uai")


def table(net: BayesNet, node: int) -> list[list[float]]:
    return np.exp(net.cpds[node].log_parameters).round(12).tolist()


def test_the_child_runs_fastest_and_the_first_parent_slowest(tmp_path):
    net = read_uai(put(tmp_path, SMALL))
    assert net.target is None
    assert net.variables == (Variable("x0", (0, 1)), Variable("x1", (0, 1)), Variable("x2", (0, 1, 2)))
    assert [cpd.parents for cpd in net.cpds] == [(), (2, 0), ()]
    assert all(cpd.format == Float(64) for cpd in net.cpds)
    assert table(net, 1) == [[0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9], [0, 1], [0.05, 0.95]]
    assert net.cpds[1].table[4, 0] == -math.inf
    assert table(net, 2) == [[0.25, 0.25, 0.5]]
    assert again(net, tmp_path) == net


def test_the_text_is_plain(tmp_path):
    write_uai(zoo.sprinkler(), tmp_path / "net.uai")
    assert (tmp_path / "net.uai").read_text() == (
        "BAYES\n3\n2 2 2\n3\n1 0\n2 0 1\n3 0 1 2\n"
        "\n2\n 0.75 0.25\n\n4\n 0.5 0.5\n 0.875 0.125\n\n8\n 1 0\n 0.25 0.75\n 0.5 0.5\n 0 1\n"
    )


@given(st.integers(0, 2**32), st.booleans())
def test_tables_come_back_equal_and_names_are_lost(tmp_path_factory, seed, target):
    net = zoo.random_net(np.random.default_rng(seed), 4, 3, target=target, formats=[Float(64)])
    found = again(net, tmp_path_factory.mktemp("uai"))
    assert found.cpds == net.cpds
    assert found.target is None
    assert [node.name for node in found.nodes] == [f"x{i}" for i in range(len(net.nodes))]
    assert [node.states for node in found.nodes] == [tuple(range(node.cardinality)) for node in net.nodes]


def test_gzip(tmp_path):
    net = read_uai(put(tmp_path, SMALL))
    write_uai(net, tmp_path / "net.uai.gz")
    assert gzip.decompress((tmp_path / "net.uai.gz").read_bytes()).startswith(b"BAYES\n")
    assert read_uai(tmp_path / "net.uai.gz") == net


def test_quantised_networks_need_normalize(tmp_path):
    net = zoo.random_net(np.random.default_rng(1), 3, formats=[Fixed(2, 1)])
    with pytest.raises(TinybayesError, match=r"sum to one.*normalize=True"):
        write_uai(net, tmp_path / "q.uai")
    assert again(net, tmp_path, normalize=True).is_normalized(1e-12)


def test_comments_as_pyagrum_writes_them(tmp_path):
    lines = SMALL.splitlines()
    commented = "\n".join([f"{line}  # {i} 0.5" for i, line in enumerate(lines)])
    (tmp_path / "plain.uai").write_text(SMALL)
    (tmp_path / "commented.uai").write_text(commented)
    assert read_uai(tmp_path / "commented.uai") == read_uai(tmp_path / "plain.uai")
    (tmp_path / "bad.uai").write_text(commented.replace("0.1 0.9", "0.1 o.9"))
    with pytest.raises(FileError, match=r"bad\.uai:11: expected a number, got 'o\.9'"):
        read_uai(tmp_path / "bad.uai")


# ---------------------------------------------------------------- bad files


def swap(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, 1)


BAD = {
    "empty": (" \n", 1, "a network, got an empty file"),
    "another format": ("network unknown {\n}\n", 1, "'BAYES', the first word of a UAI file, got 'network'"),
    "Markov": (swap("BAYES", "MARKOV"), 1, "a Markov network, which is not a Bayesian network"),
    "only the kind": ("BAYES\n", 1, "the number of variables, got the end of the file; is the file complete?"),
    "no variables": ("BAYES\n0\n0\n", 2, "the number of variables, from 1 to 16777216, got '0'"),
    "a million digits": (swap("BAYES\n3", "BAYES\n" + "9" * 10**6), 2, "the number of variables"),
    "no number of states": (swap("2 2 3", "2 -2 3"), 3, "a number of states, from 1 to 16777216, got '-2'"),
    "too many states": (swap("2 2 3", "2 2 1000000000"), 3, "a number of states"),
    "functions": (swap("2 2 3\n3", "2 2 3\n2"), 4, "the number of functions, one for each variable, 3, got '2'"),
    "scope": (swap("1 0", "0 0"), 7, "the size of a scope, from 1 to 3, got '0'"),
    "unknown variable": (swap("3 2 0 1", "3 2 0 3"), 5, "the index of a variable, from 0 to 2, got '3'"),
    "parent twice": (swap("3 2 0 1", "3 2 2 1"), 5, "distinct parents of 'x1'"),
    "own parent": (swap("3 2 0 1", "3 2 1 1"), 5, "distinct parents of 'x1', not itself"),
    "distribution twice": (swap("1 0\n", "1 2\n"), 7, "one distribution of 'x2', got a second one"),
    "size": (swap("12\n", "11\n"), 9, "the number of probabilities of 'x1', 12, got '11'"),
    "no size": (swap("\n3\n 0.25", "\n 0.25"), 14, "the number of probabilities of 'x2', 3, got '0.25'"),
    "no number": (swap("0.1 0.9", "0.1 o.9"), 11, "a number, got 'o.9'"),
    "negative": (swap("0.1 0.9", "-0.1 1"), 11, "probabilities of 'x1' between 0 and 1, got -0.1"),
    "nan": (swap("0.1 0.9", "nan 1"), 11, "between 0 and 1, got nan"),
    "above one": (swap("5e-2", "5e2"), 13, "between 0 and 1, got 500.0"),
    "sum": (swap("5e-2", "6e-2"), 13, "sum to one, got 1.01 in row 6 of 6"),
    "truncated": (SMALL[: SMALL.index("5e-2")], 12, "12 probabilities of 'x1', got the end of the file"),
    "trailing": (SMALL + "\n1\n", 20, "the end of the file, got '1'"),
    "cycle": (
        "BAYES\n2\n2 2\n2\n2 1 0\n2 0 1\n4 1 0 1 0\n4 1 0 1 0\n",
        5,
        "without cycles, got the cycle 'x0' -> 'x1' -> 'x0'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_names_the_place_and_what_is_wrong(name, tmp_path):
    text, line, message = BAD[name]
    path = put(tmp_path, text)
    with pytest.raises(FileError) as caught:
        read_uai(path)
    assert str(caught.value).startswith(f"{path}:{line}: expected ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 200


@pytest.mark.parametrize(
    "text",
    [
        "BAYES 1 16000000 1 1 0 16000000 0.5",
        "BAYES 3 16000000 16000000 16000000 3 1 0 1 1 1 2 16000000 0.5",
        "BAYES 16000000 2 2",
        "BAYES 40 " + "10 " * 40 + "40 40 " + " ".join(map(str, range(40))) + " 1 0" * 39,
    ],
)
def test_hostile_sizes_are_refused_before_memory_is_taken(text, tmp_path):
    path = put(tmp_path, text)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="expected"):
            read_uai(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def outcome(path: Path) -> BayesNet | str:
    try:
        return read_uai(path)
    except FileError as problem:
        return str(problem)


@given(mutants(Corpus([SMALL.encode()], ["BAYES", "MARKOV", "0", "1", "2", "0.5", " "])) | st.binary(max_size=100))
def test_only_our_errors_escape_and_what_is_read_is_a_network(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.uai"
    path.write_bytes(content)
    net = outcome(path)
    if isinstance(net, str):
        assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", net)
    else:
        assert net.is_normalized(2e-3)
        assert again(net, path.parent) == net


# ---------------------------------------------------------------- evidence


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ("0", [{}]),
        ("2 3 1 0 0\n", [{3: 1, 0: 0}]),
        ("1\n2 3 1 0 0\n", [{3: 1, 0: 0}]),
        ("2\n1 3 1\n1 0 0\n", [{3: 1}, {0: 0}]),
        ("1 0", [{}]),
    ],
)
def test_evidence(text, cases, tmp_path):
    assert read_evidence(put(tmp_path, text)) == cases


@pytest.mark.parametrize("text", ["", "x", "2 3 1", "1 3 1 4", "2 3 1 3 0", "1 3 -1", "1 1 0.5"])
def test_bad_evidence(text, tmp_path):
    with pytest.raises(FileError, match=r"net.uai:1: expected"):
        read_evidence(put(tmp_path, text))


# ---------------------------------------------------------------- real networks


@pytest.mark.parametrize("name", [NAMES[0], *exhaustive(*NAMES[1:])])
def test_public_networks_come_back_equal_through_all_formats(name, data_dir, tmp_path):
    net = read_uai(data_dir / "networks" / f"{name}.uai")
    assert again(net, tmp_path) == net
    write_bif(net, tmp_path / "net.bif")
    assert read_bif(tmp_path / "net.bif") == net
    write_xmlbif(net, tmp_path / "net.xml")
    assert read_xmlbif(tmp_path / "net.xml") == net


@pytest.mark.parametrize(
    "name", ["50-14-1", "BN_0", "bn2o-30-15-150-1a", "fs-04", "mastermind1", "students_03_02-0000"]
)
def test_marginals_that_need_no_inference_agree_with_the_published_ones(name, data_dir):
    """Parents that are roots are independent, so that the child's marginal is a plain product."""
    networks = data_dir / "networks"
    net = read_uai(networks / f"{name}.uai")
    words = (networks / "truth" / f"{name}.prior.MAR").read_text().split()
    truth = []
    at = 2 if words[1] == str(len(net.nodes)) else 3  # some say how many samples there are
    while at < len(words):
        size = int(words[at])
        truth.append([float(word) for word in words[at + 1 : at + 1 + size]])
        at += 1 + size
    assert len(truth) == len(net.nodes)
    checked = 0
    for cpd, marginal in zip(net.cpds, truth, strict=True):
        if all(not net.cpds[parent].parents for parent in cpd.parents):
            weight = np.ones(1)
            for parent in cpd.parents:
                weight = np.outer(weight, np.exp(net.cpds[parent].log_parameters[0])).ravel()
            np.testing.assert_allclose(weight @ np.exp(cpd.log_parameters), marginal, atol=2e-6)
            checked += len(cpd.parents) > 0
    assert checked >= 2


def test_evidence_of_the_public_networks(data_dir):
    for file in (data_dir / "networks" / "truth").glob("*.evid"):
        net = read_uai(data_dir / "networks" / f"{file.name.split('.')[0]}.uai")
        (case,) = read_evidence(file)
        assert all(state < net.nodes[variable].cardinality for variable, state in case.items())
