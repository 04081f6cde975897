"""BIF: what is read by hand, exact round trips, and no way to be hurt by a bad file."""

import gzip
import math
import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes.deploy._network_text import decimals
from tinybayes.deploy.bif import read_bif, write_bif
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Fixed, Float, Variable

DOG = """// the rows of dog-out are out of order; its parents have 2 and 3 states
network "Dog problem" { property author = "a { b"; }
variable out { type discrete[2] { "in side" out }; property "position = (1, 2)" ; }
/* probabilities may come
   before the variables { */
probability ( out | bowel, family ) {
  (sick, none) 0.1, 0.9;
  (well, none) 0.2, 0.8; // a comment
  (well, two)  0.4, /* another; one */ 0.6;
  (sick, one)  0.05 0.95;
  (sick, two)  0, 1;
  (well, one)  0.3, 0.7;
}
variable bowel { type discrete [ 2 ] { well, sick }; }
variable family { property url = http://family.example ; type discrete [ 3 ] { none, one, two }; }
probability ( bowel ) { table 0.99, 1e-2; }
probability ( family ) { table .25, 0.25, 0.5; }
"""

SMALL = """network unknown {
}
variable a {
  type discrete [ 2 ] { yes, no };
}
variable b {
  type discrete [ 3 ] { <5, 5-12, 12+ };
}
probability ( a ) {
  table 0.1, 0.9;
}
probability ( b | a ) {
  (yes) 0.2, 0.3, 0.5;
  (no) 0.25, 0.25, 0.5;
}
"""

NAMES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", " ", "a b", '"', "\\", "\\n", "\n", "a//b", "/*", "a/b", "{", "}", ";", "|", ",", "é", "table"]
    ),
    st.sampled_from(["network", "\ud800", "\x00", "\u2028", "< 150", "150 to 180", ">= 180", "variable", "(", "0.5"]),
)


def put(tmp_path: Path, text: str, name: str = "net.bif") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def again(net: BayesNet, tmp_path: Path, **options: object) -> BayesNet:
    write_bif(net, tmp_path / "again.bif", **options)
    return read_bif(tmp_path / "again.bif")


def table(net: BayesNet, name: str) -> list[list[float]]:
    node = [variable.name for variable in net.nodes].index(name)
    return np.exp(net.cpds[node].log_parameters).round(12).tolist()


# ---------------------------------------------------------------- reading


def test_rows_go_to_their_assignment_whatever_their_order(tmp_path):
    net = read_bif(put(tmp_path, DOG))
    assert net.target is None
    assert [(v.name, v.states) for v in net.variables] == [
        ("out", ("in side", "out")),
        ("bowel", ("well", "sick")),
        ("family", ("none", "one", "two")),
    ]
    assert [cpd.parents for cpd in net.cpds] == [(1, 2), (), ()]
    assert all(cpd.format == Float(64) for cpd in net.cpds)
    assert table(net, "out") == [[0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9], [0.05, 0.95], [0, 1]]
    assert net.cpds[0].table[5, 0] == -math.inf
    assert net.cpds[0].table[0, 0] == np.log(0.2)
    assert table(net, "bowel") == [[0.99, 0.01]]


def test_a_table_with_parents_has_the_child_slowest_and_the_last_parent_fastest(tmp_path):
    # The dog problem of the format's own description: P(out | bowel, family) is .99 .97 .9 .3.
    text = """network d {} variable f { type discrete [2] { t n }; } variable b { type discrete [2] { t n }; }
    variable out { type discrete [2] { t n }; }
    probability ( f ) { table .15 .85; } probability ( b ) { table .01 .99; }
    probability ( out b f ) { table 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7 ; }"""
    net = read_bif(put(tmp_path, text))
    assert net.cpds[2].parents == (1, 0)
    assert table(net, "out") == [[0.99, 0.01], [0.97, 0.03], [0.9, 0.1], [0.3, 0.7]]


def test_default_stands_for_the_rows_not_given(tmp_path):
    text = SMALL.replace("(yes) 0.2, 0.3, 0.5;", "default 0.5, 0.25, 0.25;")
    assert table(read_bif(put(tmp_path, text)), "b") == [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]


def test_names_of_the_public_repositories_are_read_bare(tmp_path):
    bare = ["Asy/Patch", "<5", "12+", ">=7.5", "5-12", "Transp.", "0-3_days", "10%", "a'b", "x=y", "-1", "/", "a\\b"]
    text = f"""network unknown {{ }}
    variable a {{ type discrete [ {len(bare)} ] {{ {", ".join(bare)} }}; }}
    variable b {{ type discrete [ 1 ] {{ x }}; }}
    probability ( a ) {{ table {", ".join(["1"] + ["0"] * (len(bare) - 1))}; }}
    probability ( b | a ) {{ {" ".join(f"({state}) 1.0;" for state in bare)} }}"""
    net = read_bif(put(tmp_path, text))
    assert list(net.variables[0].states) == bare
    assert again(net, tmp_path) == net


def test_a_class_named_by_the_file_becomes_the_last_node(tmp_path):
    net = read_bif(put(tmp_path, SMALL.replace("{\n}", "{ property target = a; }", 1)))
    assert net.target == Variable("a", ("yes", "no"))
    assert [variable.name for variable in net.variables] == ["b"]
    assert [cpd.parents for cpd in net.cpds] == [(1,), ()]
    assert table(net, "b") == [[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]


def test_windows_and_old_mac_line_ends_a_byte_order_mark_and_gzip(tmp_path):
    net = read_bif(put(tmp_path, SMALL))
    for change in ("\r\n", "\r"):
        (tmp_path / "w.bif").write_bytes(("// a comment\n" + SMALL).replace("\n", change).encode("utf-8-sig"))
        assert read_bif(tmp_path / "w.bif") == net
    for name in ("packed.bif.gz", "packed.bif"):
        (tmp_path / name).write_bytes(gzip.compress(SMALL.encode()))
        assert read_bif(tmp_path / name) == net


# ---------------------------------------------------------------- writing


def test_the_text_is_plain(tmp_path):
    write_bif(read_bif(put(tmp_path, SMALL)), tmp_path / "out.bif")
    assert (tmp_path / "out.bif").read_text() == SMALL


def test_class_cut_points_and_kinds_of_states_survive(tmp_path):
    states = Variable("s", (True, False)), Variable("i", (3, -1)), Variable("f", (0.1, math.inf))
    mixed = Variable("mixed", ("a", 2, 0.5, False)), Variable.from_edges("none", [])
    nodes = (*states, *mixed, Variable.from_edges("cut", [0.1, 1e300]), Variable("x; y", ("", "< 150")))
    cpds = [zoo.cpd(np.full(node.cardinality, 1 / node.cardinality)) for node in nodes]
    net = BayesNet(nodes[:-1], nodes[-1], cpds)
    found = again(net, tmp_path)
    assert found == net
    kinds = [[type(state) for state in node.states] for node in found.nodes]
    assert kinds == [[type(state) for state in node.states] for node in nodes]
    text = (tmp_path / "again.bif").read_text()
    assert "property states = int ;" in text
    assert "property states = str int float bool ;" in text
    assert "property edges = 0.1 1e+300 ;" in text
    assert "property edges = ;" in text


@pytest.mark.parametrize("make", [zoo.sprinkler, zoo.naive_bayes, zoo.tan])
def test_hand_worked_networks_come_back_equal(make, tmp_path):
    assert again(make(), tmp_path) == make()


@given(st.data())
def test_any_names_states_and_tables_come_back_equal(tmp_path_factory, data):
    seed = data.draw(st.integers(0, 2**32))
    states = st.lists(
        st.one_of(NAMES, st.integers(), st.floats(allow_nan=False), st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=lambda state: str(state) if isinstance(state, str) else repr(float(state) + 0.0),
    )
    names = data.draw(st.lists(NAMES, min_size=3, max_size=5, unique=True))
    variables = [Variable(name, tuple(data.draw(states))) for name in names]
    for index, variable in enumerate(variables):
        texts = [str(state) for state in variable.states]
        if len(set(texts)) != len(texts):
            variables[index] = Variable(variable.name, ("a", "b"))
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, len(names) - 1, formats=[Float(64)], variables=variables)
    assert again(net, tmp_path_factory.mktemp("bif")) == net


def test_the_same_network_gives_the_same_gzip(tmp_path):
    net = zoo.tan()
    for name in ("a.bif.gz", "b.bif.gz"):
        write_bif(net, tmp_path / name)
    assert (tmp_path / "a.bif.gz").read_bytes() == (tmp_path / "b.bif.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.bif.gz").read_bytes()).startswith(b"network")
    assert read_bif(tmp_path / "a.bif.gz") == net


def test_trees_are_written_as_full_tables(tmp_path):
    rng = np.random.default_rng(5)
    nets = [zoo.tree_tan(), *(zoo.random_net(rng, 4, 3, trees=True, formats=[Float(64)]) for _ in range(10))]
    assert sum(cpd.tree is not None for net in nets for cpd in net.cpds) > 10
    for net in nets:
        found = again(net, tmp_path)
        assert all(cpd.tree is None for cpd in found.cpds)
        for row in np.ndindex(*(node.cardinality for node in net.nodes)):
            assert oracle.log_joint(found, list(row)) == pytest.approx(oracle.log_joint(net, list(row)), rel=1e-12)


def test_a_tree_over_too_many_parents_is_refused(tmp_path):
    nodes = tuple(Variable(f"v{i}", (0, 1)) for i in range(40))
    tree = DecisionTree(split=[0, -1, -1], first=[0, 0, 0], children=[1, 2], row=[0, 0, 1])
    wide = zoo.cpd([[0.5, 0.5], [0.25, 0.75]], range(39), tree)
    net = BayesNet(nodes, None, (*(zoo.cpd([0.5, 0.5]) for _ in range(39)), wide))
    with pytest.raises(TinybayesError, match=r"16,777,216.*'v39' has 39 parents"):
        write_bif(net, tmp_path / "wide.bif")
    assert not list(tmp_path.iterdir())


def test_quantised_networks_need_normalize(tmp_path):
    levels = Codebook((-math.inf, -3.0, -1.0, 0.5))
    for number_format in (Fixed(2, 1), levels):
        net = zoo.random_net(np.random.default_rng(1), 4, formats=[number_format])
        with pytest.raises(TinybayesError, match=r"sum to one.*normalize=True"):
            write_bif(net, tmp_path / "q.bif")
        found = again(net, tmp_path, normalize=True)
        for before, after in zip(net.cpds, found.cpds, strict=True):
            weights = np.exp(before.log_parameters)
            expected = weights / weights.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(np.exp(after.log_parameters), expected, rtol=1e-12)


def test_a_row_without_any_probability_cannot_be_normalised(tmp_path):
    net = BayesNet((Variable("v", (0, 1)),), None, (CPD((), np.full((1, 2), -np.inf), Float(64)),))
    with pytest.raises(TinybayesError, match="sum to one, got 0 in row 1"):
        write_bif(net, tmp_path / "q.bif", normalize=True)


def test_states_that_look_the_same_are_refused(tmp_path):
    net = BayesNet((Variable("v", (1, "1")),), None, (zoo.cpd([0.5, 0.5]),))
    with pytest.raises(TinybayesError, match="distinct as text"):
        write_bif(net, tmp_path / "v.bif")


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "directory.bif").mkdir()
    for path in (tmp_path / "no" / "net.bif", tmp_path / "directory.bif"):
        with pytest.raises(FileError, match="expected"):
            write_bif(zoo.tan(), path)
    assert [path.name for path in tmp_path.iterdir()] == ["directory.bif"]


# ---------------------------------------------------------------- decimals


@given(st.lists(st.floats(0, 1, exclude_min=True), min_size=1))
def test_decimals_have_the_same_logarithm(values):
    logs = np.log(np.array(values))
    found = decimals(logs)
    assert np.array_equal(np.log(np.array([float(text) for text in found])), logs)


@given(st.integers(1, 999_999_999), st.integers(9, 12))
def test_decimals_are_the_shortest(digits, places):
    value = float(f"{digits}e-{places}")
    text = decimals(np.log(np.array([value])))[0]
    assert len(text) <= len(repr(value))
    assert float(text) == value


def test_decimals_of_the_ends():
    assert decimals(np.array([-np.inf, 0.0, np.log(0.1), np.log(1e-5)])).tolist() == ["0", "1", "0.1", "1e-05"]
    # No double has this logarithm: the nearest probability is one.
    assert decimals(np.array([[-1e-20]])).tolist() == [["1.0"]]


# ---------------------------------------------------------------- bad files


def outcome(path: Path) -> BayesNet | str:
    try:
        return read_bif(path)
    except FileError as problem:
        return str(problem)


def swap(old: str, new: str) -> str:
    assert SMALL.count(old) >= 1
    return SMALL.replace(old, new, 1)


BAD = {
    "empty": ("", 1, "a network, got an empty file"),
    "only a comment": ("// nothing\n", 1, "'network', got the end of the file"),
    "another format": ("BAYES\n1\n", 1, "'network', got 'BAYES'"),
    "no variable": ("network unknown {\n}\n", 2, "at least one variable"),
    "no semicolon": (swap("0.1, 0.9;", "0.1, 0.9"), 11, "a number or ';', got '}'"),
    "unknown block": (swap("variable b", "node b"), 6, "'variable' or 'probability', got 'node'"),
    "open comment": (swap("variable b", "/* variable b"), 6, "the '*/' of this comment"),
    "open quote": (swap("<5", '"<5'), 7, "a second quote on the line"),
    "open property": (SMALL + "\nvariable c { property x", 17, "a semicolon after this property"),
    "truncated": (SMALL[: SMALL.index("(no)")], 13, "got the end of the file; is the file complete?"),
    "number of states": (swap("[ 2 ]", "[ 1000000000 ]"), 4, "2, the number of the states listed, got '1000000000'"),
    "continuous": (swap("discrete", "continuous"), 4, "'discrete'"),
    "no states": (swap("type discrete [ 2 ] { yes, no };", ""), 5, "the states of 'a'"),
    "states twice": (swap("yes, no };", "yes, no }; type discrete [1] {a};"), 4, "'property' or '}'"),
    "a state twice": (swap("yes, no", "yes, yes"), 4, "distinct states"),
    "a variable twice": (swap("variable b", "variable a"), 6, "distinct names, got 'a' again"),
    "unknown variable": (swap("probability ( b", "probability ( c"), 12, "a variable of the file, got 'c'"),
    "unknown parent": (swap("b | a", "b | z"), 12, "a variable of the file, got 'z'"),
    "unknown state": (swap("(yes)", "(maybe)"), 13, "a state of 'a', got 'maybe'"),
    "parents of a row": (swap("(yes)", "(yes, no)"), 13, "1 states, one for each parent, got 2"),
    "too few": (swap("0.2, 0.3, 0.5", "0.2, 0.8"), 13, "3 probabilities, got 2"),
    "too many": (swap("0.1, 0.9", "0.1, 0.9, 0"), 10, "2 probabilities, got more"),
    "no number": (swap("0.2,", "zero,"), 13, "a number, got 'zero'"),
    "an underscore": (swap("0.2,", "0_2,"), 13, "a number, got '0_2'"),
    "other digits": (swap("0.2,", "\u0660.2,"), 13, "a number"),
    "negative": (swap("0.2, 0.3", "-0.2, 0.7"), 13, "between 0 and 1, got -0.2"),
    "above one": (swap("0.2, 0.3", "1.2, -0.7"), 13, "between 0 and 1, got 1.2"),
    "nan": (swap("0.2, 0.3", "nan, 0.3"), 13, "between 0 and 1, got nan"),
    "infinite": (swap("0.2, 0.3", "inf, -inf"), 13, "between 0 and 1, got inf"),
    "sum": (swap("0.25, 0.25, 0.5", "0.25, 0.25, 0.4"), 14, "sum to one, got 0.9 in row 2 of 2"),
    "sum of a table": (swap("0.1, 0.9", "0.1, 0.8"), 10, "'a' that sum to one, got 0.9"),
    "missing row": (swap("(yes) 0.2, 0.3, 0.5;", ""), 12, "for each assignment of its parents, got none for 'yes'"),
    "no row": (swap("table 0.1, 0.9;", ""), 9, "each assignment"),
    "row twice": (swap("(no)", "(yes)"), 14, "each row of 'b' once, got 'yes' again"),
    "row and table": (swap("(yes)", "table 1 1 0 0 0 0; (yes)"), 13, "each row of 'b' once"),
    "two defaults": (swap("(yes)", "default 1 0 0; default 1 0 0; (yes)"), 13, "each row of 'b' once"),
    "no distribution": (SMALL[: SMALL.index("probability ( b")], 11, "a distribution of 'b', got none"),
    "distribution twice": (SMALL + "probability ( a ) { table 1, 0; }", 16, "one distribution of 'a'"),
    "parent twice": (swap("b | a", "b | a, a"), 12, "distinct parents of 'b'"),
    "own parent": (swap("b | a", "b | b"), 12, "distinct parents of 'b', not itself"),
    "cycle": (
        swap("( a ) {\n  table 0.1, 0.9;", "( a | b ) {\n default 0.1, 0.9;"),
        9,
        "without cycles, got the cycle 'a' -> 'b' -> 'a'",
    ),
    "target": (swap("{\n}", "{ property target = z; }"), 1, "as property 'target', got 'z'"),
    "kind of states": (
        swap("{ yes, no };", "{ yes, no }; property states = int;"),
        3,
        "correct or remove the property",
    ),
    "unknown kind": (swap("{ yes, no };", "{ yes, no }; property states = date;"), 3, "str, int, float or bool"),
    "edges": (swap("{ yes, no };", "{ yes, no }; property edges = 1 2;"), 3, "3 states for 2 cut points"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_names_the_place_and_what_is_wrong(name, tmp_path):
    text, line, message = BAD[name]
    path = put(tmp_path, text)
    with pytest.raises(FileError) as caught:
        read_bif(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_sums_may_be_off_by_a_thousandth_and_are_kept(tmp_path):
    net = read_bif(put(tmp_path, swap("0.1, 0.9", "0.333, 0.668")))
    assert table(net, "a") == [[0.333, 0.668]]
    assert again(net, tmp_path) == net
    with pytest.raises(FileError, match=r"1\.0011"):
        read_bif(put(tmp_path, swap("0.1, 0.9", "0.333, 0.6681")))


def test_files_that_are_no_text(tmp_path):
    bad = tmp_path / "net.bif"
    with pytest.raises(FileError, match=r"net.bif: expected a file that can be read, got No such file"):
        read_bif(bad)
    with pytest.raises(FileError, match="can be read"):
        read_bif(tmp_path)
    with pytest.raises(FileError, match="can be read"):
        read_bif("a\0b")
    bad.write_bytes(b"network x {\n}\nvariable \xff {")
    with pytest.raises(FileError, match=r"net.bif:3: expected text in UTF-8, got the byte 0xff"):
        read_bif(bad)
    packed = gzip.compress(SMALL.encode())
    for content in (b"network", packed[:-9], packed[:30] + b"\0\0\0" + packed[33:], b""):
        (tmp_path / "net.bif.gz").write_bytes(content)
        with pytest.raises(FileError, match=r"net.bif.gz"):
            read_bif(tmp_path / "net.bif.gz")


@pytest.mark.parametrize("children", [1, 3])
def test_hostile_sizes_are_refused_before_memory_is_taken(children, tmp_path):
    states = ", ".join(f"s{i}" for i in range(10))
    parents = [f"p{i}" for i in range(40)]
    text = "network x { }\n" + "".join(f"variable {p} {{ type discrete [ 10 ] {{ {states} }}; }}\n" for p in parents)
    if children == 1:  # one table of 10**40 entries
        text += f"probability ( p0 | {', '.join(parents[1:])} ) {{ default {'0.1 ' * 10}; }}"
    else:  # each table is allowed, all together are not
        for child in parents[:children]:
            family = [p for p in parents if p != child][:6]
            text += f"probability ( {child} | {', '.join(family)} ) {{ default {'0.1 ' * 10}; }}\n"
    path = put(tmp_path, text)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"at most 16,777,216 probabilities, got more"):
            read_bif(path)
        assert tracemalloc.get_traced_memory()[1] < (2**22 if children == 1 else 2**29)
    finally:
        tracemalloc.stop()


def test_a_small_gzip_of_a_large_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tinybayes.deploy._network_text.MAX_BYTES", 2**20)
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(b" " * 2**24))
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="at most 1 MiB of text"):
            read_bif(tmp_path / "bomb.bif.gz")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["/" * 200_000, "a/" * 100_000, "/**/" * 50_000, '"\\' * 100_000, "(" * 200_000])
def test_hostile_text_takes_no_time(text, tmp_path):
    for content in (text, SMALL + text, swap("yes, no", text), swap("0.1, 0.9", text)):
        path = put(tmp_path, content)
        start = time.perf_counter()
        outcome(path)
        assert time.perf_counter() - start < 2


PIECES = st.sampled_from(["network", "variable", "probability", "property", "type", "table", "default", "target", "a"])
MARKS = st.sampled_from('{}()[];,|"/*\\\n= -.019eé\0') | st.sampled_from(["nan", "//", "*/", "property states = int;"])


def mutations(text: str) -> st.SearchStrategy[bytes]:
    place = st.integers(0, len(text))
    change = st.tuples(place, place, st.one_of(st.just(""), MARKS, PIECES, st.text(max_size=3)))

    def apply(changes: list[tuple[int, int, str]]) -> bytes:
        found = text
        for start, stop, piece in changes:
            found = found[: min(start, stop)] + piece + found[min(max(start, stop), min(start, stop) + 5) :]
        return found.encode("utf-8", "surrogatepass")

    return st.lists(change, min_size=1, max_size=4).map(apply)


@given(st.one_of(mutations(SMALL), mutations(DOG), st.binary(max_size=200), st.lists(PIECES | MARKS).map(" ".join)))
def test_only_our_errors_escape_and_what_is_read_is_a_network(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.bif"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    net = outcome(path)
    if isinstance(net, str):
        assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", net)
    else:
        assert net.is_normalized(2e-3)
        assert again(net, path.parent) == net


# ---------------------------------------------------------------- real networks

SIZES = {  # variables, arcs and free parameters as the repository states them
    "alarm": (37, 46, 509),
    "andes": (223, 338, 1157),
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "child": (20, 25, 230),
    "hailfinder": (56, 66, 2656),
    "hepar2": (70, 123, 1453),
    "insurance": (27, 52, 1008),
    "munin1": (186, 273, 15622),
    "pigs": (441, 592, 5618),
    "win95pts": (76, 112, 574),
}


@pytest.mark.parametrize("name", SIZES)
def test_public_networks_come_back_equal(name, data_dir, tmp_path):
    net = read_bif(data_dir / "networks" / "bif" / f"{name}.bif.gz")
    free = sum(cpd.table.shape[0] * (cpd.table.shape[1] - 1) for cpd in net.cpds)
    assert (len(net.nodes), sum(len(cpd.parents) for cpd in net.cpds), free) == SIZES[name]
    assert net.is_normalized(1e-6)
    assert again(net, tmp_path) == net
    write_bif(net, tmp_path / "net.bif.gz")
    assert read_bif(tmp_path / "net.bif.gz") == net


def test_munin1_loads_at_once(data_dir):
    start = time.perf_counter()
    read_bif(data_dir / "networks" / "bif" / "munin1.bif.gz")
    assert time.perf_counter() - start < 1


def test_rows_of_a_public_network(data_dir):
    net = read_bif(data_dir / "networks" / "bif" / "child.bif.gz")
    names = [node.name for node in net.nodes]
    node = names.index("HypoxiaInO2")
    mixing, lungs = (net.nodes[parent] for parent in net.cpds[node].parents)
    assert (mixing.name, lungs.name) == ("CardiacMixing", "LungParench")
    row = mixing.states.index("Transp.") * lungs.cardinality + lungs.states.index("Normal")
    assert table(net, "HypoxiaInO2")[row] == [0.02, 0.18, 0.8]  # "(Transp., Normal) 0.02, 0.18, 0.80;"
    assert net.nodes[names.index("ChestXray")].states[-1] == "Asy/Patch"
