"""Model files that are damaged, truncated, hostile or newer: a clear error, bounded memory, never a crash."""

import struct
import tracemalloc
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from mutate import BLANK, ModelFiles, opened, sealed
from tinybayes.deploy import load, save
from tinybayes.deploy.files.native import load_metadata
from tinybayes.errors import FileError
from tinybayes.model import BayesNet, Codebook, DecisionTree, Fixed, Float


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small file with all there is: formats, trees, levels, cut points, states of all types, a class."""
    floats, fixed, levels = Float(32), Fixed(2, 1), Codebook((-2.0, -1.0, 0.0))
    half, third = np.full((9, 2), 1 / 2), np.full((9, 3), 1 / 3)
    deep = DecisionTree([4, -1, 0, -1, -1], [0, 0, 2, 0, 0], [1, 2, 3, 4], [0, 0, 0, 1, 2])
    flat = DecisionTree([2, -1, -1], [0, 0, 0], [2, 1], [0, 0, 1])
    cpds = (
        zoo.cpd(half[:2], [4], number_format=floats),
        zoo.cpd(third[:3], [0, 4], deep, levels),
        zoo.cpd(half[:6], [1, 4], number_format=fixed),
        zoo.cpd(half[:2], [2], flat, floats),
        zoo.cpd(half[:1], number_format=fixed),
    )
    net = BayesNet((*zoo.tan().variables, *zoo.sprinkler().variables[1:]), zoo.tan().target, cpds)
    path = tmp_path_factory.mktemp("sound") / "m.tb"
    save(net, path, metadata={"note": [1, 2.5, None]})
    return path.read_bytes()


@pytest.fixture(scope="module")
def files(sound: bytes) -> ModelFiles:
    return ModelFiles([sound])


def wrong(data: bytes, path: Path, match: str) -> None:
    path.write_bytes(data)
    with pytest.raises(FileError, match=match) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 2000


def harmless(data: bytes, path: Path) -> bool:
    """Load anything: a `FileError`, or a network that can be used."""
    path.write_bytes(data)
    try:
        net = load(path)
        load_metadata(path)
    except FileError:
        return False
    assert isinstance(net, BayesNet)
    assert all(cpd.log_parameters.max() < np.inf for cpd in net.cpds)
    return True


def test_the_test_tools_write_what_save_writes(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.tb").write_bytes(sound)
    (tmp_path / "again.tb").write_bytes(sealed(*opened(sound)))
    assert load(tmp_path / "again.tb") == load(tmp_path / "m.tb")
    document, tensors = opened(sound)
    assert set(tensors) >= {"levels", "tables.float32", "tables.bits2", "tables.bits3", "trees.split"}
    assert any("tree" in cpd for cpd in document["model"]["cpds"])


# Damage.


def test_every_truncation_is_noticed(sound: bytes, tmp_path: Path) -> None:
    for length in range(len(sound)):
        wrong(sound[:length], tmp_path / "m.tb", "expected")
    wrong(sound + b"\0", tmp_path / "m.tb", "expected")


@pytest.mark.exhaustive
def test_every_flipped_bit_is_noticed(sound: bytes, tmp_path: Path) -> None:
    damaged = bytearray(sound)
    for place, octet in enumerate(sound):
        for bit in range(8):
            damaged[place] = octet ^ (1 << bit)
            assert not harmless(damaged, tmp_path / "m.tb"), (place, bit)
        damaged[place] = octet


@given(place=st.integers(0), octet=st.integers(0, 255))
def test_every_changed_byte_is_noticed(sound: bytes, place: int, octet: int, tmp_path_factory) -> None:
    place %= len(sound)
    damaged = bytearray(sound)
    damaged[place] = octet
    assert harmless(damaged, tmp_path_factory.mktemp("d") / "m.tb") == (damaged == sound)


def test_data_damage_is_called_damage(sound: bytes, tmp_path: Path) -> None:
    wrong(sound[:-1] + bytes([sound[-1] ^ 1]), tmp_path / "m.tb", "checksum: expected .* damaged")


@given(data=st.binary(max_size=200), prefix=st.sampled_from([b"", b"{}", b'{"__metadata__":{"tinybayes":"', None]))
def test_random_bytes(data: bytes, prefix: bytes | None, tmp_path_factory: pytest.TempPathFactory) -> None:
    if prefix is not None:
        data = struct.pack("<Q", len(prefix) + len(data) // 2) + prefix + data
    assert not harmless(data, tmp_path_factory.mktemp("r") / "m.tb")


# Hostility, with a checksum that is right.


FIELDS = [
    ("version", 3, r"header\.version: expected a file version up to 2, got 3; upgrade tinybayes"),
    ("version", 0, r"header\.version"),
    ("version", True, r"header\.version"),
    (
        "kind",
        "Forest",
        r"header\.kind: expected BayesNet or .* or TreeEnsemble, got 'Forest'",
    ),
    ("kind", None, r"header\.kind"),
    ("model", [], r"header\.model: expected a value of type dict"),
    ("model.variables", {}, r"model\.variables: expected a value of type list"),
    ("model.variables.1", "b", r"model\.variables\[1\]: expected"),
    ("model.variables.0.name", 3, r"model\.variables\[0\]\.name: expected a value of type str, got 3"),
    ("model.variables.0", {"name": "long" * 10**5, "states": []}, r"model\.variables\[0\]: expected a valid variable"),
    ("model.variables.0.states", [], r"model\.variables\[0\]: .*at least one state"),
    ("model.variables.0.states", [1, True], r"model\.variables\[0\]: .*distinct"),
    ("model.variables.0.states", [1, None], r"model\.variables\[0\]\.states\[1\]"),
    ("model.variables.0.states", [1, {"float": "nan"}], r"model\.variables\[0\]\.states\[1\]"),
    ("model.variables.0.states", [1, {"float": "__import__('os')"}], r"model\.variables\[0\]\.states\[1\]"),
    ("model.variables.0", {"name": "v"}, r"model\.variables\[0\]\.states: .*got nothing"),
    ("model.variables.1.cuts", [2.0, 0.5], r"model\.variables\[1\]: .*increasing"),
    ("model.variables.1.cuts", [0.5, 10**400], r"model\.variables\[1\]\.cuts\[1\]"),
    ("model.variables.0", {"name": "v", "grid": [0.0, 1.0]}, r"model\.variables\[0\]\.grid: expected start, step and"),
    ("model.variables.0", {"name": "v", "grid": [0.0, 1.0, 2.5]}, r"model\.variables\[0\]\.grid: expected start"),
    ("model.variables.0", {"name": "v", "grid": [0.0, 3.0, 2.0]}, r"model\.variables\[0\]: .*power of two"),
    ("model.variables.0", {"name": "v", "grid": [0, 1, 2]}, r"model\.variables\[0\]\.grid\[0\]"),
    ("model.variables.1.integer", 1, r"model\.variables\[1\]\.integer: expected a value of type bool"),
    ("model.variables.1.name", "a", r"model: .*distinct names"),
    ("model.target", "class", r"model\.target"),
    ("model.target", None, r"model\.cpds: expected 4 distributions"),
    ("model.formats", [], r"model\.cpds\[0\]\.format"),
    ("model.formats.0", {"kind": "double"}, r"formats\[0\]\.kind"),
    ("model.formats.0", {"kind": "float", "bits": 16}, r"formats\[0\]: .*32 or 64"),
    ("model.formats.0", {"kind": "fixed", "integer": 40, "fraction": 0}, r"formats\[0\]: .*1 to 32 bits"),
    ("model.formats.0", {"kind": "fixed", "integer": 3 - 10**99, "fraction": 10**99}, r"formats\[0\]: .*1 to 32 bits"),
    ("model.formats.0", {"kind": "codebook", "levels": 10**18}, r"tensor 'levels': .*formats\[0\]"),
    ("model.cpds.0.format", -1, r"cpds\[0\]\.format"),
    ("model.cpds.0.format", 7, r"cpds\[0\]\.format"),
    ("model.cpds.0.parents", [-1], r"cpds\[0\]\.parents"),
    ("model.cpds.0.parents", [10**30], r"cpds\[0\]\.parents"),
    ("model.cpds.0.parents", ["a"], r"cpds\[0\]\.parents\[0\]"),
    ("model.cpds.0.parents", [0] * 10**5, r"tensor|cycle|distinct"),
    ("model.cpds.4.parents", [0, 1, 2, 3, 4], r"tensor 'tables.*more entries for .*cpds\[4\]"),
]


@pytest.mark.parametrize(("place", "value", "match"), FIELDS)
def test_every_wrong_field_is_named(place: str, value: object, match: str, sound: bytes, tmp_path: Path) -> None:
    document, tensors = opened(sound)
    *keys, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder = document
    for key in keys:
        holder = holder[key]
    holder[last] = value
    wrong(sealed(document, tensors), tmp_path / "m.tb", match)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("rows", None, r"cpds\[\d\]\.rows"),
        ("rows", 0, r"cpds\[\d\]\.rows"),
        ("rows", 10**18, r"tensor 'tables.*cpds\[\d\]"),
        ("tree", [1], r"cpds\[\d\]\.tree"),
        ("tree", [0, 0], r"cpds\[\d\]\.tree"),
        ("tree", [-1, 2], r"cpds\[\d\]\.tree"),
        ("tree", [10**18, 2], r"tensor 'trees\.split'.*cpds\[\d\]"),
        ("tree", [3, 10**18], r"tensor 'trees\.children'.*cpds\[\d\]"),
    ],
)
def test_wrong_trees_are_named(key: str, value: object, match: str, sound: bytes, tmp_path: Path) -> None:
    document, tensors = opened(sound)
    next(cpd for cpd in document["model"]["cpds"] if "tree" in cpd)[key] = value
    wrong(sealed(document, tensors), tmp_path / "m.tb", match)


def test_wrong_tensors_are_named(sound: bytes, tmp_path: Path) -> None:
    document, tensors = opened(sound)
    floats = tensors["tables.float32"]
    for name in tensors:
        less = {**tensors, name: tensors[name][:-1]}
        wrong(sealed(document, less), tmp_path / "m.tb", f"tensor '{name}'")
        more = {**tensors, name: np.r_[tensors[name], tensors[name][:1]]}
        wrong(sealed(document, more), tmp_path / "m.tb", f"tensor '{name}'|increasing")
        missing = {other: tensors[other] for other in tensors if other != name}
        wrong(sealed(document, missing), tmp_path / "m.tb", f"tensor '{name}'")
        twisted = {**tensors, name: tensors[name].astype(np.uint16)}
        wrong(sealed(document, twisted), tmp_path / "m.tb", f"tensor '{name}'.*U16")
        flat = {**tensors, name: tensors[name][None]}
        wrong(sealed(document, flat), tmp_path / "m.tb", f"tensor '{name}': expected one axis")
    wrong(sealed(document, {**tensors, "more": floats}), tmp_path / "m.tb", "tensor 'more': expected no such tensor")
    for bad in (np.nan, np.inf):
        other = {**tensors, "tables.float32": np.full_like(floats, bad)}
        wrong(sealed(document, other), tmp_path / "m.tb", "tensor 'tables.float32': expected a valid distribution")
    other = {**tensors, "tables.bits2": np.full_like(tensors["tables.bits2"], 255)}
    wrong(sealed(document, other), tmp_path / "m.tb", "tensor 'tables.bits2': .*codebook3: expected codes from 0 to 2")
    other = {**tensors, "levels": tensors["levels"][::-1].copy()}
    wrong(sealed(document, other), tmp_path / "m.tb", r"model\.formats\[\d\]: .*increasing levels")
    for part in ("split", "first", "children", "row"):
        other = {**tensors, f"trees.{part}": np.full_like(tensors[f"trees.{part}"], 100)}
        wrong(sealed(document, other), tmp_path / "m.tb", r"model: .*tree node")


DOCUMENTS = [
    ("", "header: expected JSON"),
    ("[]", "header: expected a JSON object"),
    ("[" * 10**6, "header: expected JSON"),
    ('{"a":' * 10**6, "header: expected JSON"),
    ('{"version":1,"version":1}', "header: .*a key twice"),
    ('{"version":1,"checksum":NaN}', "header: .*NaN"),
    ('{"version":1,"checksum":[-Infinity]}', "header: .*-Infinity"),
    ('{"version":1,"checksum":1e999}', "header: .*1e999"),
    ('{"version":' + "9" * 5000 + "}", "header: expected JSON"),
    ('{"version":' + "9" * 4000 + "}", r"header\.version"),
    ('{"version":1}', r"header\.checksum: .*got nothing"),
    ('{"version":1,"checksum":""}', r"header\.checksum"),
    ('{"version":1,"checksum":"\\ud800"}', r"header\.checksum"),
    (f'{{"version":1,"checksum":"{BLANK}"}}', r"header\.kind"),
    (f'{{"version":1,"checksum":"{BLANK}","kind":"BayesNet"}}', r"header\.model"),
]


@pytest.mark.parametrize(("document", "match"), DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_documents_that_are_not_ours(document: str, match: str, tmp_path: Path) -> None:
    wrong(sealed(document, {}), tmp_path / "m.tb", match)


HEADERS = [
    (b"{", "header: expected JSON"),
    (b"[]", "header: expected a JSON object"),
    (b"{}", "header: expected a tinybayes model"),
    (b'{"__metadata__":{"tinybayes":1}}', "header: expected a tinybayes model"),
    (b'{"__metadata__":{"format":"pt"}}', "header: expected a tinybayes model"),
    (b'{"__metadata__":{},"__metadata__":{"tinybayes":"{}"}}', "a key twice"),
    (b'{"__metadata__":{"tinybayes":"\xff"}}', "header: expected JSON"),
    ('{"__metadata__":{"tinybayes":"{}"}}'.encode("utf-16"), "header: expected"),
    (b'{"a":' * 10**6, "header: expected JSON"),
    (b'{"__metadata__":{"tinybayes":"{}"},"t":3}', "header: expected sound tensors"),
    *(
        (
            b'{"__metadata__":{"tinybayes":"{}"},"t":{"dtype":"%s","shape":%s,"data_offsets":%s}}' % entry,
            "header: expected sound tensors",
        )
        for entry in (
            (b"U8", b"[4]", b"[0,4]"),  # beyond the end of the file
            (b"U8", b"[-1]", b"[0,0]"),
            (b"U8", b"[4294967296,4294967296]", b"[0,0]"),
            (b"U8", b"[1]", b"[1,0]"),
            (b"X9", b"[0]", b"[0,0]"),
            (b"F64", b"[1099511627776]", b"[0,8796093022208]"),
        )
    ),
]


@pytest.mark.parametrize(("header", "match"), HEADERS, ids=range(len(HEADERS)))
def test_headers_that_are_not_ours(header: bytes, match: str, tmp_path: Path) -> None:
    wrong(struct.pack("<Q", len(header)) + header, tmp_path / "m.tb", match)


def test_sizes_that_are_not_ours(tmp_path: Path) -> None:
    wrong(b"", tmp_path / "m.tb", "expected 8 bytes, .* got 0 bytes")
    wrong(b"1234567", tmp_path / "m.tb", "got 7 bytes")
    wrong(b"\xff" * 100, tmp_path / "m.tb", "a header of 18446744073709551615")
    with open(tmp_path / "sparse.tb", "wb") as file:  # a long header within a longer file, on a sparse disk
        file.write(struct.pack("<Q", 2**26 + 1))
        file.truncate(2**30)
    with pytest.raises(FileError, match="a header of 67108865"):
        load(tmp_path / "sparse.tb")


# Anything at all, in any place.


@given(seed=st.integers(0, 2**48))
def test_mutated_files(seed: int, files: ModelFiles, tmp_path_factory: pytest.TempPathFactory) -> None:
    harmless(files.mutant(Random(seed)), tmp_path_factory.getbasetemp() / "mutated.tb")


# Memory.


def peak(path: Path) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(FileError):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def claims() -> list[tuple[dict, dict[str, np.ndarray]]]:
    two = {"name": "v", "states": [0, 1]}
    many = [{"name": f"v{i}", "states": [0, 1]} for i in range(200)]
    floats, one = {"kind": "float", "bits": 32}, {"kind": "codebook", "levels": 1}
    huge = 10**15

    def model(variables: list, form: dict, cpds: list) -> dict:
        return {"variables": variables, "target": None, "formats": [form], "cpds": cpds}

    root = {"parents": []}
    return [
        (model([two], floats, [{**root, "rows": huge, "tree": [1, 0]}]), {"trees.split": np.full(1, -1, np.int8)}),
        (model([two], floats, [{**root, "rows": 1, "tree": [huge, 0]}]), {"tables.float32": np.zeros(2, np.float32)}),
        (model([two], one, [{**root, "rows": huge, "tree": [1, 0]}]), {"levels": np.zeros(1)}),
        (model([two], {**one, "levels": huge}, [root]), {"levels": np.zeros(1)}),
        (model(many, floats, [root] * 199 + [{"parents": list(range(199))}]), {}),
        (model(many, one, [root] * 199 + [{"parents": list(range(199))}]), {"levels": np.zeros(1)}),
        (
            model(many, one, [{"parents": list(range(199))}, *[root] * 199]),
            {"levels": np.zeros(1), "tables.bits1": np.zeros(10**5, np.uint8)},
        ),
    ]


@pytest.mark.parametrize(("model", "tensors"), claims())
def test_claims_cost_no_memory(model: dict, tensors: dict[str, np.ndarray], tmp_path: Path) -> None:
    data = sealed({"version": 1, "kind": "BayesNet", "metadata": {}, "model": model}, tensors)
    (tmp_path / "m.tb").write_bytes(data)
    with pytest.raises(FileError):
        load(tmp_path / "m.tb")  # once, so that what is imported on first use is not counted
    assert peak(tmp_path / "m.tb") < 40 * len(data) + 200_000


@pytest.mark.parametrize("filler", ["[]", "{}", '"a"', "1.5", '{"a":1}', "123456789"])
def test_crowded_headers_cost_bounded_memory(filler: str, tmp_path: Path) -> None:
    text = f'{{"version":1,"checksum":"{BLANK}","kind":"BayesNet","model":[{",".join([filler] * 100_000)}]}}'
    data = sealed(text, {})
    (tmp_path / "m.tb").write_bytes(data)
    assert peak(tmp_path / "m.tb") < 50 * len(data)
