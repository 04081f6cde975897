"""ARFF; the oracle is SciPy's reader where it understands the file, and the values that were written elsewhere."""

import gzip
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

from tinybayes.data import _table, arff
from tinybayes.data.arff import Attribute, read_arff
from tinybayes.data.readers import as_table, read_frame
from tinybayes.errors import FileError

WEATHER = """\
% a comment
@RELATION 'the weather'

@Attribute outlook {sunny, overcast, 'light rain'}
@attribute\ttemperature\treal
@attribute "wind speed" Integer
@attribute 'it\\'s' STRING
@attribute when date "yyyy-MM-dd"
@attribute play {yes,no}
@DATA
% another
sunny, 85.5, 3, 'a, b', 2020-01-31, no
'light rain' ,?, ?,"say \\"x\\"", '2020-02-01', ?

overcast,-1e3,-7,?,?,yes
"""


def parse(text: str) -> tuple[tuple[Attribute, ...], pd.DataFrame]:
    attributes, frames = read_arff(io.BytesIO(text.encode()), "t.arff")
    return attributes, pd.concat(frames, ignore_index=True)


def values(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame.columns}


def test_a_dense_file() -> None:
    attributes, frame = parse(WEATHER)
    assert attributes == (
        Attribute("outlook", "nominal", ("sunny", "overcast", "light rain")),
        Attribute("temperature", "number"),
        Attribute("wind speed", "integer"),
        Attribute("it's", "text"),
        Attribute("when", "text"),
        Attribute("play", "nominal", ("yes", "no")),
    )
    assert values(frame) == {
        "outlook": ["sunny", "light rain", "overcast"],
        "temperature": [85.5, None, -1000.0],
        "wind speed": [3, None, -7],
        "it's": ["a, b", 'say "x"', None],
        "when": ["2020-01-31", "2020-02-01", None],
        "play": ["no", None, "yes"],
    }
    assert frame["outlook"].cat.categories.tolist() == ["sunny", "overcast", "light rain"]
    assert (str(frame["temperature"].dtype), str(frame["wind speed"].dtype)) == ("float64", "Int64")


def test_a_table_declares_its_nominal_values(tmp_path: Path) -> None:
    (tmp_path / "t.arff.gz").write_bytes(gzip.compress(WEATHER.encode()))
    table = as_table(tmp_path / "t.arff.gz")
    assert table.columns == ("outlook", "temperature", "wind speed", "it's", "when", "play")
    assert table.declared == {"outlook": ("sunny", "overcast", "light rain"), "play": ("yes", "no")}
    pd.testing.assert_frame_equal(read_frame(table), parse(WEATHER)[1])


def test_sparse_rows_leave_out_zeros_and_first_values() -> None:
    head = "@attribute n real\n@attribute i integer\n@attribute c {u,v,'w x'}\n@attribute q {'?',r}\n@data\n"
    _, frame = parse(head + "{}\n{ 0 2.5 , 2 v }\n{2 'w x',1 4, 3 r}\n{0 ?, 3 ?}\n1,2,v,'?'\n{ }\n")
    assert values(frame) == {
        "n": [0.0, 2.5, 0.0, None, 1.0, 0.0],
        "i": [0, 0, 4, 0, 2, 0],
        "c": ["u", "v", "w x", "u", "v", "u"],
        "q": ["?", "?", "r", None, "?", "?"],
    }


def test_blocks_give_the_same_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "@attribute a {x,y}\n@attribute b real\n@data\n" + "".join(f"{'xy'[i % 2]},{i}\n" for i in range(100))
    (tmp_path / "t.arff").write_text(text)
    whole = read_frame(tmp_path / "t.arff")
    monkeypatch.setattr(_table, "SMALL", 40)
    monkeypatch.setattr(_table, "BLOCK", 10)
    monkeypatch.setattr(arff, "CELLS", 14)
    table = as_table(tmp_path / "t.arff")
    for _ in range(2):
        batches = list(table.batches())
        assert [len(batch) for batch in batches] == [7] * 14 + [2]
        pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), whole)
    assert table.declared == {"a": ("x", "y")}
    assert whole["b"].tolist() == list(range(100))
    (tmp_path / "bad.arff").write_text(text + "z,1\n")
    with pytest.raises(FileError, match=r"bad\.arff:104: expected one of"):
        list(as_table(tmp_path / "bad.arff").batches())


NUMBER = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(-(10**9), 10**9).map(str)


@given(
    columns=st.lists(st.sampled_from(["numeric", "REAL", "{a,b,c}", "{no, yes}"]), min_size=1, max_size=4),
    data=st.data(),
    rows=st.integers(1, 6),
    gap=st.sampled_from(["", " ", "  "]),
)
def test_dense_files_as_scipy_reads_them(columns: list[str], data: st.DataObject, rows: int, gap: str) -> None:
    lines = ["@relation r", *(f"@attribute c{i} {kind}" for i, kind in enumerate(columns)), "@data"]
    for _ in range(rows):
        cells = [
            data.draw(
                (st.sampled_from(kind.strip("{}").split(",")).map(str.strip) if "{" in kind else NUMBER) | st.just("?")
            )
            for kind in columns
        ]
        lines.append(f",{gap}".join(cells))
    text = "\n".join(lines) + "\n"
    ours = values(parse(text)[1])
    theirs, _ = scipy_arff.loadarff(io.StringIO(text))
    for i, kind in enumerate(columns):
        expected = theirs[f"c{i}"].tolist()
        if "{" in kind:
            expected = [None if value == b"?" else value.decode() for value in expected]
        else:
            expected = [None if value != value else value for value in expected]
        assert ours[f"c{i}"] == expected


def quoted(value: str, quote: str) -> str:
    for plain, escape in (("\\", "\\\\"), (quote, "\\" + quote), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        value = value.replace(plain, escape)
    return f"{quote}{value}{quote}"


TEXT = st.text("ab?{}%, '\"\\\t\né日@0", max_size=8)


@given(
    states=st.lists(TEXT, min_size=1, max_size=5, unique=True),
    data=st.data(),
    quote=st.sampled_from("'\""),
    sparse=st.booleans(),
)
def test_quoted_values_survive(states: list[str], data: st.DataObject, quote: str, sparse: bool) -> None:
    rows = data.draw(st.lists(st.tuples(st.none() | st.sampled_from(states), st.none() | TEXT), min_size=1, max_size=5))
    name = data.draw(TEXT.filter(lambda text: text != "other"))

    def cell(value: str | None) -> str:
        return "?" if value is None else quoted(value, quote)

    lines = [f"@attribute {quoted(name, quote)} {{{','.join(map(cell, states))}}}", "@attribute other string", "@data"]
    for first, second in rows:
        lines.append(f"{{0 {cell(first)}, 1 {cell(second)}}}" if sparse else f"{cell(first)}, {cell(second)}")
    attributes, frame = parse("\n".join(lines))
    assert attributes == (Attribute(name, "nominal", tuple(states)), Attribute("other", "text"))
    assert values(frame) == {name: [first for first, _ in rows], "other": [second for _, second in rows]}


HEAD = "@relation r\n@attribute a real\n@attribute b {x,y}\n@data\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.arff: expected a line @data, got the end of the file"),
        ("@relation r\n@data\n1\n", "t.arff:2: expected at least one attribute"),
        ("@relation r\n1,2\n", "t.arff:2: expected @relation, @attribute or @data, got '1,2'"),
        ("@attribute a\n", r"t.arff:1: expected numeric, real.*, got '' after 'a'"),
        ("@attribute sepal length real\n", "got 'length real' after 'sepal' .a name with blanks must be quoted"),
        ("@attribute 'a real\n", "t.arff:1: expected @attribute NAME TYPE"),
        ("@attribute a relational\n", "t.arff:1: expected numeric"),
        ("@attribute a {x,y\n", "t.arff:1: expected the values between"),
        ("@attribute a {x,y,x}\n", "t.arff:1: expected at least one value, all distinct"),
        ("@attribute a {}\n", "t.arff:1: expected at least one value"),
        ("@attribute a {'x\n", "t.arff:1: expected the values between"),
        ("@attribute a real\n@attribute a real\n", "t.arff:2: expected distinct names of attributes, got 'a' again"),
        (HEAD + "1,x\n\n2\n", "t.arff:7: expected 2 cells, got 1"),
        (HEAD + "1,x,3\n", "t.arff:5: expected 2 cells, got 3"),
        (HEAD + "1,x\n1,z\n", r"t.arff:6: expected one of \['x', 'y'\] for 'b', got 'z'"),
        (HEAD + "1,x\n%\none,x\n", "t.arff:7: expected a number for 'a', got 'one'"),
        (HEAD + ",x\n", "t.arff:5: expected a number for 'a', got ''"),
        (HEAD + "1_000,x\n", "t.arff:5: expected a number"),
        (HEAD + "1,'x\n", 't.arff:5: expected a cell and a comma, got "\'x"'),
        (HEAD + "1,'x' y\n", "t.arff:5: expected a cell and a comma"),
        (HEAD + "1,x, {5}\n", "t.arff:5: expected rows without weights"),
        (HEAD + "{0 1}, {5}\n", "t.arff:5: expected rows without weights"),
        (HEAD + "{0 1\n", "t.arff:5: expected a closing }"),
        (HEAD + "{2 1}\n", "t.arff:5: expected distinct indices from 0 to 1, got 2"),
        (HEAD + "{0 1, 0 2}\n", "t.arff:5: expected distinct indices from 0 to 1, got 0"),
        (HEAD + "{" + "9" * 9999 + " 1}\n", "t.arff:5: expected distinct indices"),
        (HEAD + "{a 1}\n", "t.arff:5: expected a cell and a comma, got 'a 1'"),
        (HEAD + "{-1 1}\n", "t.arff:5: expected a cell and a comma"),
        ("@attribute s string\n@attribute a real\n@data\n{1 2}\n", "t.arff:4: expected a value of 's'"),
        ("@attribute i integer\n@data\n1\n2.5\n", "t.arff:4: expected an integer for 'i', got '2.5'"),
        ("@attribute i integer\n@data\ninf\n", "t.arff:3: expected an integer for 'i', got 'inf'"),
    ],
)
def test_bad_files_say_the_line(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        parse(text)


def test_a_file_without_rows_and_one_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "t.arff"
    path.write_text(HEAD)
    with pytest.raises(FileError, match=r"t\.arff: expected at least one row"):
        as_table(path)
    path.write_bytes(HEAD.encode() + b"1,x\n2,caf\xe9\n")
    with pytest.raises(FileError, match=r"t\.arff:6: expected UTF-8, got the byte 0xe9 at position .*iconv"):
        as_table(path)
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + b"1,x\r\n")
    assert values(read_frame(path)) == {"a": [1.0], "b": ["x"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                "@attribute",
                " a",
                " 'b'",
                " real",
                " {",
                "}",
                "x",
                ",",
                "'",
                '"',
                "\\",
                "?",
                "%",
                "\n",
                "@data",
                "0 ",
                "1",
                "\\ud800",
                "\t",
            ]
        )
        | st.text(max_size=2),
        max_size=40,
    ),
    start=st.sampled_from(["", HEAD, WEATHER]),
)
def test_only_our_errors_escape(tmp_path: Path, pieces: list[str], start: str) -> None:
    path = tmp_path / "t.arff"
    path.write_bytes((start + "".join(pieces)).encode("utf-8", "surrogatepass"))
    message = ""
    try:
        assert len(read_frame(path)) > 0
    except FileError as problem:
        message = str(problem)
    assert message == "" or str(path) in message
