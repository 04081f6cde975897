"""BIF: no way to be hurt by a bad file."""

import gzip
import re
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bif_texts import DOG, SMALL, again, put, table
from mutate import Corpus, mutants
from tinybayes.deploy.files.bif import read_bif
from tinybayes.errors import FileError
from tinybayes.model import BayesNet


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
    "edges": (swap("{ yes, no };", "{ yes, no }; property cuts = 1 2;"), 3, "3 states for Cuts"),
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
    monkeypatch.setattr("tinybayes.deploy.files.network_text.MAX_BYTES", 2**20)
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
    """With the square of its length it would take minutes of the processor."""
    for content in (text, SMALL + text, swap("yes, no", text), swap("0.1, 0.9", text)):
        path = put(tmp_path, content)
        start = time.process_time()
        outcome(path)
        assert time.process_time() - start < 20


WORDS = ["network", "variable", "probability", "property", "type", "table", "default", "target", "a", *'{}()[];,|"=']
WORDS += ["//", "/*", "*/", "property states = int;"]


@given(mutants(Corpus([SMALL.encode(), DOG.encode()], WORDS)) | st.binary(max_size=200))
def test_only_our_errors_escape_and_what_is_read_is_a_network(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.bif"
    path.write_bytes(content)
    net = outcome(path)
    if isinstance(net, str):
        assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", net)
    else:
        assert net.is_normalized(2e-3)
        assert again(net, path.parent) == net
