"""The native model file: exact round trips, and writing that fails cleanly; bad files are in test_native_hostile.py."""

import base64
import errno
import math
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import zoo
from tinybayes.deploy import load, save
from tinybayes.deploy.bits import pack_bits, unpack_bits
from tinybayes.deploy.files.native import load_metadata, read_native
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import CPD, BayesNet, Codebook, Cuts, Fixed, Float, Variable

LEVELS = Codebook((-math.inf, -7.5, -1 / 3, -0.1, 0.0))
FORMATS = (
    Float(32),
    Float(64),
    *(Fixed(bits - 2, 2) for bits in range(1, 33)),
    Fixed(6, -3),
    LEVELS,
    Codebook((-1.0,)),
    Codebook(tuple(float(level) for level in range(-299, 1))),
)


GOLDEN = """
OAMAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJ0aW55YmF5ZXMiOiJ7XCJjaGVja3N1bVwiOlwiYzY4MWI2ODkzZDU1NmVlYzhkNWQx
NTc0NTE5OWYyZmQ2YmU1ZjhiMjhjYmYwMzIzMTIzOGMzZGM1MmQ5NmUwMlwiLFwia2luZFwiOlwiQmF5ZXNOZXRcIixcIm1ldGFk
YXRhXCI6e1wiYnlcIjpcImhhbmRcIn0sXCJtb2RlbFwiOntcImNwZHNcIjpbe1wicGFyZW50c1wiOlsyXX0se1wicGFyZW50c1wi
OlswLDJdLFwicm93c1wiOjMsXCJ0cmVlXCI6WzUsNF19LHtcInBhcmVudHNcIjpbXX1dLFwiZm9ybWF0c1wiOlt7XCJiaXRzXCI6
NjQsXCJraW5kXCI6XCJmbG9hdFwifV0sXCJ0YXJnZXRcIjp7XCJuYW1lXCI6XCJjbGFzc1wiLFwic3RhdGVzXCI6W1wiaGFtXCIs
XCJzcGFtXCJdfSxcInZhcmlhYmxlc1wiOlt7XCJuYW1lXCI6XCJhXCIsXCJzdGF0ZXNcIjpbMCwxXX0se1wiZWRnZXNcIjpbMC41
LDIuMF0sXCJuYW1lXCI6XCJiXCJ9XX0sXCJ2ZXJzaW9uXCI6MX0ifSwidGFibGVzLmZsb2F0NjQiOnsiZHR5cGUiOiJGNjQiLCJz
aGFwZSI6WzE1XSwiZGF0YV9vZmZzZXRzIjpbMCwxMjBdfSwidHJlZXMuY2hpbGRyZW4iOnsiZHR5cGUiOiJJOCIsInNoYXBlIjpb
NF0sImRhdGFfb2Zmc2V0cyI6WzEyMCwxMjRdfSwidHJlZXMuZmlyc3QiOnsiZHR5cGUiOiJJOCIsInNoYXBlIjpbNV0sImRhdGFf
b2Zmc2V0cyI6WzEyNCwxMjldfSwidHJlZXMucm93Ijp7ImR0eXBlIjoiSTgiLCJzaGFwZSI6WzVdLCJkYXRhX29mZnNldHMiOlsx
MjksMTM0XX0sInRyZWVzLnNwbGl0Ijp7ImR0eXBlIjoiSTgiLCJzaGFwZSI6WzVdLCJkYXRhX29mZnNldHMiOlsxMzQsMTM5XX19
ICAgICAgIJLbNBFiadK/7zn6/kIu9r/vOfr+Qi72v5LbNBFiadK/7zn6/kIu5r/vOfr+Qi72v+85+v5CLva/7zn6/kIu9r/vOfr+
Qi72v+85+v5CLua/c6s7P7KiAMBzqzs/sqIAwJLbNBFiadK/kts0EWJp0r/vOfr+Qi72vwECAwQAAAIAAAAAAAECAv8A//8=
"""


def written(model: BayesNet, path: Path, **options: object) -> bytes:
    save(model, path, **options)
    return path.read_bytes()


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# Round trips.

numbers = st.floats(allow_nan=False)
states = st.one_of(
    st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=4, unique=True),
    st.lists(numbers, min_size=1, max_size=4, unique=True),
    st.permutations([False, True]),
    st.just(["1", 1, 0.5, False]),
)
cuts = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=3, unique=True).map(sorted)


@st.composite
def networks(draw: st.DrawFn) -> BayesNet:
    n, target = draw(st.integers(0, 4)), draw(st.booleans())
    names = draw(st.lists(st.text(), min_size=n + target, max_size=n + target, unique=True))
    variables = []
    for name in names:
        if draw(st.booleans()):
            variables.append(Variable(name, tuple(draw(states))))
        elif draw(st.booleans()):
            variables.append(Variable.from_encoding(name, Cuts(draw(cuts))))
        else:
            edges = draw(cuts)
            variables.append(Variable(name, tuple(range(len(edges) + 1)), Cuts(edges)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    formats = draw(st.lists(st.sampled_from(FORMATS), min_size=1, max_size=4))
    return zoo.random_net(rng, n, 3, target, formats, draw(st.booleans()), variables)


def fingerprint(net: BayesNet) -> list[object]:
    """All that equality overlooks: 1, 1.0 and True, the sign of zero, the types of arrays."""
    return [
        [(v.name, [(type(s), repr(s)) for s in v.states], repr(v.encoding)) for v in net.nodes],
        [(c.parents, repr(c.format), c.table.dtype, c.table.tobytes()) for c in net.cpds],
    ]


@given(net=networks())
def test_round_trip_is_exact_and_deterministic(net: BayesNet, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("net")
    first = written(net, folder / "first.tb")
    back = load(folder / "first.tb")
    assert back == net
    assert fingerprint(back) == fingerprint(net)
    assert written(back, folder / "second.tb") == first


@pytest.mark.parametrize("number_format", FORMATS, ids=str)
def test_every_format_with_every_code(number_format: Float | Fixed | Codebook, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    if isinstance(number_format, Float):
        codes = number_format.encode(
            np.array([0.0, -0.0, -math.inf, 5e-324, -1e300 if number_format.bits == 64 else -1])
        )
    else:
        limit = len(number_format.values) if isinstance(number_format, Codebook) else 2**number_format.bits
        codes = np.r_[0, limit - 1, rng.integers(0, limit, 99)].astype(number_format.encode(np.zeros(1)).dtype)
    net = BayesNet((Variable("v", range(len(codes))),), None, (CPD((), codes[None], number_format),))
    save(net, tmp_path / "m.tb")
    assert fingerprint(load(tmp_path / "m.tb")) == fingerprint(net)


@given(bits=st.integers(1, 32), seed=st.integers(0, 2**32), count=st.integers(1, 50))
def test_packed_codes_are_one_long_number(bits: int, seed: int, count: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 2**bits, count).astype(np.min_scalar_type(2**bits - 1))
    whole = sum(int(code) << (bits * place) for place, code in enumerate(codes))
    packed = pack_bits(codes, bits)
    assert packed.tobytes() == whole.to_bytes((bits * count + 7) // 8, "little")
    back = unpack_bits(packed, bits)
    assert back.dtype == codes.dtype
    np.testing.assert_array_equal(back[:count], codes)


def test_tables_take_on_disk_the_bits_of_their_format(tmp_path: Path) -> None:
    pair, single = Codebook((-1.0, 0.0)), Codebook((-0.5,))  # a single level still takes a bit
    for number_format, bits in (
        (Float(32), 32),
        (Fixed(2, 1), 3),
        (Fixed(5, 7), 12),
        (LEVELS, 3),
        (pair, 1),
        (single, 1),
    ):
        codes = number_format.encode(np.full((1, 4000), -0.5))
        net = BayesNet((Variable("v", range(4000)),), None, (CPD((), codes, number_format),))
        data = written(net, tmp_path / "m.tb")
        levels = 8 * len(number_format.values) if isinstance(number_format, Codebook) else 0
        assert len(data) - 8 - struct.unpack("<Q", data[:8])[0] == 4000 * bits // 8 + levels


def test_states_keep_their_types(tmp_path: Path) -> None:
    variables = [
        (math.inf, -math.inf, 0.0),
        (1.0, 2),
        (True, 0),
        ("inf", "1", "true"),
        (-0.0, 0.1 + 0.2),
        ("\ud800", "é\0"),
    ]
    nodes = [Variable(f"v{i}", some) for i, some in enumerate(variables)]
    net = zoo.random_net(np.random.default_rng(0), len(nodes), 1, False, variables=nodes)
    save(net, tmp_path / "m.tb")
    assert fingerprint(load(tmp_path / "m.tb")) == fingerprint(net)


def test_many_distributions_share_few_tensors(tmp_path: Path) -> None:
    net = zoo.random_net(np.random.default_rng(0), 400, 3, formats=(Float(), Fixed(3, 1), LEVELS), trees=True)
    save(net, tmp_path / "m.tb")
    with safe_open(tmp_path / "m.tb", framework="numpy") as file:
        names = set(file.keys())
        levels = file.get_tensor("levels")
    trees = {"trees.split", "trees.first", "trees.children", "trees.row"}
    assert names == {"levels", "tables.bits3", "tables.bits4", "tables.float32"} | trees
    np.testing.assert_array_equal(levels, LEVELS.values)
    assert load(tmp_path / "m.tb") == net


def test_version_1_files_stay_readable(tmp_path: Path) -> None:
    # Written by the first release of the format. If this fails, raise the version and keep reading the old one.
    assert load(put(tmp_path / "m.tb", base64.b64decode(GOLDEN))) == zoo.tree_tan()
    assert load_metadata(tmp_path / "m.tb") == {"by": "hand"}


@pytest.mark.parametrize(("number_format", "factor"), [(Float(32), 4), (Fixed(8, 0), 6), (Fixed(1, 0), 32)], ids=str)
def test_large_files_cost_a_multiple_of_their_size(number_format: Float | Fixed, factor: int, tmp_path: Path) -> None:
    variables = tuple(Variable(f"v{i}", "ab") for i in range(20))
    small = CPD((), number_format.encode(np.zeros((1, 2))), number_format)
    large = CPD(range(19), number_format.encode(np.zeros((2**19, 2))), number_format)
    save(BayesNet(variables, None, (*[small] * 19, large)), tmp_path / "m.tb")
    tracemalloc.start()
    load(tmp_path / "m.tb")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < factor * (tmp_path / "m.tb").stat().st_size + 300_000


# Metadata and errors when writing.


@pytest.mark.parametrize("metadata", [None, {}, {"π": [1, 2.5, None, {"deep": True}], "0" * 64: "0" * 64}])
def test_metadata(metadata: dict | None, tmp_path: Path) -> None:
    save(zoo.sprinkler(), tmp_path / "m.tb", metadata=metadata)
    assert load_metadata(tmp_path / "m.tb") == (metadata or {})
    assert load(tmp_path / "m.tb") == zoo.sprinkler()


def test_the_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    first = written(zoo.sprinkler(), tmp_path / "m.tb", metadata={"a": 1, "b": 2})
    assert first == written(zoo.sprinkler(), tmp_path / "m.tb", metadata={"b": 2, "a": 1})


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "metadata",
    [[1], {"a": math.nan}, {1: "a"}, {"a": (1, 2)}, {"a": b"x"}, {"a": 10**5000}, {"a": nested(10**5)}],
    ids=["list", "nan", "key", "tuple", "bytes", "digits", "depth"],
)
def test_metadata_that_json_cannot_hold(metadata: dict, tmp_path: Path) -> None:
    with pytest.raises(TinybayesError, match="metadata: expected"):
        save(zoo.sprinkler(), tmp_path / "m.tb", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_other_refusals_when_writing(tmp_path: Path) -> None:
    with pytest.raises(TinybayesError, match="NeuralNet or TreeEnsemble, got dict"):
        save({}, tmp_path / "m.tb")
    with pytest.raises(TinybayesError, match="up to 300 digits"):
        Variable("v", (10**5000,))


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.tb").mkdir()
    (tmp_path / "folder.tb" / "inside").touch()
    for place in ("missing/m.tb", "file/m.tb", "folder.tb"):
        with pytest.raises(FileError, match=place.split("/")[0]):
            save(zoo.sprinkler(), tmp_path / place)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.tb"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_unwritable_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(FileError, match="Permission denied"):
            save(zoo.sprinkler(), tmp_path / "m.tb")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_interrupted_writing_keeps_the_old_file(
    problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(zoo.sprinkler(), tmp_path / "m.tb")

    def half(path: Path, data: bytes) -> None:
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
        raise problem

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises((FileError, KeyboardInterrupt)) as caught:
        save(zoo.naive_bayes(), tmp_path / "m.tb")
    if isinstance(problem, OSError):
        assert "No space left" in str(caught.value)
    assert (tmp_path / "m.tb").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_things_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        load(tmp_path / "missing.tb")
    with pytest.raises(FileError, match="got a directory"):
        read_native(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.tb")
        with pytest.raises(FileError, match="got a pipe or a device"):
            load(tmp_path / "pipe.tb")
