"""XMLBIF: what is read by hand, exact round trips, and no way to be hurt by a bad file."""

import gzip
import math
import re
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from mutate import Corpus, mutants
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.uai import read_uai, write_uai
from tinybayes.deploy.files.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import BayesNet, Cuts, Fixed, Float, Variable

DTD = """<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT NAME (#PCDATA)>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME | PROPERTY )* ) >
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
  <!ELEMENT TABLE (#PCDATA)>
]>
"""

DOG = f"""<?xml version="1.0" encoding="US-ASCII"?>
<!-- the parents of out have 2 and 3 states -->
{DTD}<BIF VERSION="0.3" xmlns="http://www.example.org/XMLBIFv0_3">
<NETWORK>
<NAME>Dog problem</NAME>
<PROPERTY>credal = none</PROPERTY>
<DEFINITION>
  <FOR>out</FOR>
  <GIVEN>bowel</GIVEN>
  <GIVEN> family </GIVEN>
  <TABLE> <!-- well --> 0.2 0.8  0.3 0.7  0.4 0.6
          <!-- sick --> 0.1 0.9  5e-2 0.95  0 1 </TABLE>
</DEFINITION>
<VARIABLE TYPE="nature"><NAME>out</NAME><OUTCOME> in &amp; out </OUTCOME><OUTCOME>&lt;5</OUTCOME></VARIABLE>
<VARIABLE><NAME>bowel</NAME><OUTCOME>well</OUTCOME><OUTCOME>sick</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>family</NAME><OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME><OUTCOME>2</OUTCOME>
  <PROPERTY>position = (1, 2)</PROPERTY>
  <PROPERTY>states = int</PROPERTY>
</VARIABLE>
<DEFINITION><FOR>bowel</FOR><TABLE>0.99 0.01</TABLE></DEFINITION>
<DEFINITION><FOR>family</FOR><TABLE>0.25 0.25 0.5</TABLE></DEFINITION>
</NETWORK>
</BIF>
"""

SMALL = """<BIF VERSION="0.3">
<NETWORK>
<NAME>small</NAME>
<VARIABLE TYPE="nature">
<NAME>a</NAME>
<OUTCOME>yes</OUTCOME>
<OUTCOME>no</OUTCOME>
</VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>
<DEFINITION>
<FOR>a</FOR>
<TABLE>0.1 0.9</TABLE>
</DEFINITION>
<DEFINITION>
<FOR>b</FOR>
<GIVEN>a</GIVEN>
<TABLE>
0.2 0.8
0.25 0.75
</TABLE>
</DEFINITION>
</NETWORK>
</BIF>
"""


def put(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "net.xml"
    path.write_text(text, encoding="utf-8")
    return path


def again(net: BayesNet, tmp_path: Path, **options: object) -> BayesNet:
    write_xmlbif(net, tmp_path / "again.xml", **options)
    return read_xmlbif(tmp_path / "again.xml")


def table(net: BayesNet, node: int) -> list[list[float]]:
    return np.exp(net.cpds[node].log_parameters).round(12).tolist()


def test_given_variables_run_slowest_and_the_child_fastest(tmp_path):
    net = read_xmlbif(put(tmp_path, DOG))
    assert net.target is None
    assert [(v.name, v.states) for v in net.variables] == [
        ("out", ("in & out", "<5")),
        ("bowel", ("well", "sick")),
        ("family", (0, 1, 2)),
    ]
    assert [cpd.parents for cpd in net.cpds] == [(1, 2), (), ()]
    assert all(cpd.format == Float(64) for cpd in net.cpds)
    assert table(net, 0) == [[0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9], [0.05, 0.95], [0, 1]]
    assert net.cpds[0].table[5, 0] == -math.inf


def test_a_class_named_by_the_file_becomes_the_last_node(tmp_path):
    text = SMALL.replace("<NAME>small</NAME>", "<PROPERTY> target = a </PROPERTY>")
    net = read_xmlbif(put(tmp_path, text))
    assert net.target == Variable("a", ("yes", "no"))
    assert [cpd.parents for cpd in net.cpds] == [(1,), ()]
    assert table(net, 0) == [[0.2, 0.8], [0.25, 0.75]]


def test_other_encodings_and_gzip(tmp_path):
    text = SMALL.replace("yes", "é")
    expected = read_xmlbif(put(tmp_path, text))
    assert expected.variables[0].states == ("é", "no")
    for encoding in ("iso-8859-1", "utf-16", "windows-1252"):
        raw = f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'.encode(encoding)
        (tmp_path / "net.xml").write_bytes(raw)
        assert read_xmlbif(tmp_path / "net.xml") == expected
        (tmp_path / "net.xml.gz").write_bytes(gzip.compress(raw))
        assert read_xmlbif(tmp_path / "net.xml.gz") == expected


def test_another_parser_sees_the_same(tmp_path):
    write_xmlbif(zoo.sprinkler(), tmp_path / "net.xml")
    network = ElementTree.parse(tmp_path / "net.xml").getroot().find("NETWORK")
    assert [variable.findtext("NAME") for variable in network.iter("VARIABLE")] == ["rain", "sprinkler", "wet"]
    wet = network.findall("DEFINITION")[2]
    assert [given.text for given in wet.iter("GIVEN")] == ["rain", "sprinkler"]
    assert wet.findtext("TABLE").split() == ["1", "0", "0.25", "0.75", "0.5", "0.5", "0", "1"]


@pytest.mark.parametrize("make", [zoo.sprinkler, zoo.naive_bayes, zoo.tan])
def test_hand_worked_networks_come_back_equal(make, tmp_path):
    assert again(make(), tmp_path) == make()


def test_quantised_networks_need_normalize(tmp_path):
    net = zoo.random_net(np.random.default_rng(1), 3, formats=[Fixed(2, 1)])
    with pytest.raises(TinybayesError, match=r"sum to one.*normalize=True"):
        write_xmlbif(net, tmp_path / "q.xml")
    assert again(net, tmp_path, normalize=True).is_normalized(1e-12)


NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=5),
    st.sampled_from(["", " ", " a ", "\n", "\r", "\r\n", "a\tb", "&", "]]>", '"', "<b>", "&amp;", "\u00a0x", "= ;"]),
)


@given(st.data())
def test_any_names_states_and_tables_come_back_equal(tmp_path_factory, data):
    values = st.one_of(NAMES, st.integers(), st.floats(allow_nan=False), st.booleans())
    key = lambda state: state if isinstance(state, str) else float(state)  # noqa: E731
    names = data.draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    states = [data.draw(st.lists(values, min_size=1, max_size=4, unique_by=key)) for _ in names]
    variables = [Variable(name, tuple(found)) for name, found in zip(names, states, strict=True)]
    variables[0] = Variable.from_encoding(
        names[0], Cuts(sorted(set(data.draw(st.lists(st.floats(-10, 10, width=32))))))
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    net = zoo.random_net(rng, len(names) - 1, formats=[Float(64)], variables=variables)
    found = again(net, tmp_path_factory.mktemp("xml"))
    assert found == net
    assert [[type(s) for s in node.states] for node in found.nodes] == [[type(s) for s in v.states] for v in variables]


@pytest.mark.parametrize("name", ["\x00", "a\x1b", "\ud800", "\uffff"])
def test_characters_that_xml_has_not_are_refused(name, tmp_path):
    for variable in (Variable(name, ("a",)), Variable("v", (name,))):
        with pytest.raises(TinybayesError, match="characters that XML has"):
            write_xmlbif(BayesNet((variable,), None, (zoo.cpd([1.0]),)), tmp_path / "net.xml")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- bad files


def swap(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, 1)


LAUGHS = '<!DOCTYPE BIF [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;">\n]>\n'
BAD = {
    "empty": ("", 1, "a network, got an empty file"),
    "no XML": ("network unknown {\n}\n", 1, "well-formed XML"),
    "truncated": (SMALL[: SMALL.index("<GIVEN>")], 16, "well-formed XML, got no element found"),
    "wrong end": (swap("</NAME>", "</NAM>"), 3, "well-formed XML, got mismatched tag"),
    "entities": (LAUGHS + SMALL, 2, "no entities of its own, got the entity 'a'"),
    "external entity": ('<!DOCTYPE BIF [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + SMALL, 1, "no entities"),
    "parameter entity": ('<!DOCTYPE BIF [<!ENTITY % a "b">]>' + SMALL, 1, "no entities"),
    "skipped entity": ('<!DOCTYPE BIF SYSTEM "bif.dtd">\n' + swap("yes", "&y;"), 7, "the entity 'y'"),
    "undefined entity": (swap("yes", "&y;"), 6, "undefined entity"),
    "encoding": ('<?xml version="1.0" encoding="none"?>' + SMALL, 1, "unknown encoding"),
    "other root": ("<html>\n</html>", 1, "the element BIF of an XMLBIF file, got 'HTML'"),
    "no network": ("<BIF>\n</BIF>", 1, "one element NETWORK in BIF, got none"),
    "two networks": ("<BIF>\n<NETWORK/><NETWORK/></BIF>", 1, "got 2 of them"),
    "no variable": ("<BIF>\n<NETWORK>\n</NETWORK>\n</BIF>", 4, "at least one variable"),
    "no name": (swap("<NAME>a</NAME>", ""), 4, "one element NAME in VARIABLE, got none"),
    "no states": (swap("<OUTCOME>yes</OUTCOME>\n<OUTCOME>no</OUTCOME>", ""), 4, "at least one state"),
    "a state twice": (swap("yes", "no"), 4, "distinct states"),
    "a variable twice": (swap("<NAME>b", "<NAME>a"), 9, "distinct names, got 'a' again"),
    "decision": (swap("nature", "decision"), 4, "TYPE='nature', got 'a' of type 'decision'"),
    "unknown variable": (swap("<FOR>b", "<FOR>c"), 15, "a variable of the file, got 'c'"),
    "unknown parent": (swap("<GIVEN>a", "<GIVEN>z"), 16, "a variable of the file, got 'z'"),
    "no child": (swap("<FOR>b</FOR>", ""), 14, "one element FOR in DEFINITION, got none"),
    "no table": (swap("<TABLE>0.1 0.9</TABLE>", ""), 10, "one element TABLE in DEFINITION, got none"),
    "too few": (swap("0.25 0.75", "1"), 17, "4 probabilities, got 3"),
    "too many": (swap("0.25 0.75", "0.25 0.75 1"), 17, "4 probabilities, got more"),
    "no number": (swap("0.25", "0,25"), 17, "a number, got '0,25'"),
    "negative": (swap("0.1 0.9", "-0.1 1"), 12, "between 0 and 1, got -0.1"),
    "nan": (swap("0.1 0.9", "nan 1"), 12, "between 0 and 1, got nan"),
    "sum": (swap("0.25 0.75", "0.25 0.7"), 17, "sum to one, got 0.95 in row 2 of 2"),
    "distribution twice": (
        SMALL.replace("<FOR>b</FOR>\n<GIVEN>a</GIVEN>", "<FOR>a</FOR>"),
        14,
        "one distribution of 'a'",
    ),
    "no distribution": (re.sub("(?s)<DEFINITION>.*?</DEFINITION>", "", SMALL, count=1), 20, "distribution of 'a'"),
    "own parent": (swap("<GIVEN>a", "<GIVEN>b"), 14, "distinct parents of 'b', not itself"),
    "cycle": (
        swap("<TABLE>0.1 0.9</TABLE>", "<GIVEN>b</GIVEN><TABLE>0.1 0.9 0.1 0.9</TABLE>"),
        10,
        "the cycle 'a' -> 'b' -> 'a'",
    ),
    "target": (swap("<NAME>small</NAME>", "<PROPERTY>target = z</PROPERTY>"), 2, "as property 'target', got 'z'"),
    "edges": (swap("<NAME>a</NAME>", "<NAME>a</NAME><PROPERTY>cuts = one</PROPERTY>"), 4, "correct or remove"),
    "depth": ("<BIF>\n" + "<a>" * 1000 + "</a>" * 1000 + "</BIF>", 2, "elements at most 32 deep"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_names_the_place_and_what_is_wrong(name, tmp_path):
    text, line, message = BAD[name]
    path = put(tmp_path, text)
    with pytest.raises(FileError) as caught:
        read_xmlbif(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "net.xml"
    path.write_bytes(SMALL.replace("yes", "\xff").encode("latin-1"))
    with pytest.raises(FileError, match=r"net.xml:6: expected well-formed XML, got not well-formed"):
        read_xmlbif(path)
    with pytest.raises(FileError, match="No such file"):
        read_xmlbif(tmp_path / "none.xml")


def test_attribute_defaults_and_wide_tables_take_no_memory(tmp_path):
    default = f'<!DOCTYPE BIF [<!ATTLIST OUTCOME x CDATA "{"x" * 10_000}">]>'
    wide = "".join(f"<VARIABLE><NAME>{i}</NAME>{'<OUTCOME>s</OUTCOME>' * 10}</VARIABLE>" for i in range(40))
    wide = wide.replace("<OUTCOME>s</OUTCOME>" * 10, "".join(f"<OUTCOME>{i}</OUTCOME>" for i in range(10)))
    given = "".join(f"<GIVEN>{i}</GIVEN>" for i in range(1, 40))
    text = f"{default}<BIF><NETWORK>{wide}<DEFINITION><FOR>0</FOR>{given}<TABLE>1</TABLE></DEFINITION></NETWORK></BIF>"
    path = put(tmp_path, text)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="at most 16,777,216 probabilities"):
            read_xmlbif(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


WORDS = [
    "<",
    ">",
    "/",
    "&",
    "<NAME>",
    "</NAME>",
    "<FOR>",
    "<GIVEN>a</GIVEN>",
    "<TABLE>",
    "<!--",
    "]]>",
    "<![CDATA[",
    "]>",
]
WORDS += ["]>", '<!ENTITY a "b">', "<!DOCTYPE BIF [", '<?xml version="1.0" encoding="', '"?>', "0.5 0.5", "&#0;"]


def outcome(path: Path) -> BayesNet | str:
    try:
        return read_xmlbif(path)
    except FileError as problem:
        return str(problem)


@given(mutants(Corpus([text.encode() for text in (SMALL, DOG, LAUGHS + SMALL)], WORDS)) | st.binary(max_size=100))
def test_only_our_errors_escape_and_what_is_read_is_a_network(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.xml"
    path.write_bytes(content)
    net = outcome(path)
    if isinstance(net, str):
        assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", net)
    else:
        assert net.is_normalized(2e-3)
        assert again(net, path.parent) == net


CODECS = ["hex", "rot13", "idna", "utf-7", "utf-32", "shift_jis", "undefined", "punycode", "base64", "cp037", "ascii"]


@given(st.sampled_from(CODECS) | st.text(st.characters(max_codepoint=127), max_size=8))
def test_any_encoding_is_known_or_refused(tmp_path_factory, encoding):
    path = tmp_path_factory.getbasetemp() / "encoding.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{SMALL}'.encode())
    net = outcome(path)
    assert net.startswith(f"{path}:") if isinstance(net, str) else len(net.nodes) == 2


# ---------------------------------------------------------------- real networks


@pytest.mark.exhaustive
def test_public_networks_survive_the_way_through_all_formats(data_dir, tmp_path):
    files = sorted((data_dir / "networks" / "bif").glob("*.bif.gz"))
    assert len(files) > 10
    for file in files:
        net = read_bif(file)
        write_xmlbif(net, tmp_path / "net.xml.gz")
        middle = read_xmlbif(tmp_path / "net.xml.gz")
        assert middle == net
        write_uai(middle, tmp_path / "net.uai")
        last = read_uai(tmp_path / "net.uai")
        assert last.cpds == net.cpds
        write_bif(last, tmp_path / "net.bif")
        assert read_bif(tmp_path / "net.bif") == last
