"""Models and tables made by an attacker: one clear error, before anything endless or huge begins."""

import subprocess
import zipfile

import numpy as np
import pandas as pd
import pytest

from tinybayes import BayesNet, TinybayesError, Variable, export, load, read_dataset, save
from tinybayes.data.readers import read_frame
from tinybayes.deploy.programs.names import plain
from tinybayes.errors import FileError, TinybayesWarning
from tinybayes.infer import evaluate
from tinybayes.infer.circuit_properties import is_deterministic
from tinybayes.learn import learn_classifier
from tinybayes.model import CPD, Circuit, Codebook, Dataset, DecisionTree, Float, TreeEnsemble, Trees
from tinybayes.model.circuit import INDICATOR, PRODUCT, SUM

BIT = ("a", "b")


def tree_net(parents, split=None):
    """A network whose last node has a small decision tree over many parents: it tests them one after another."""
    count = parents
    split = [*range(count), -1, -1] if split is None else split
    children = [child for node in range(count) for child in (node + 1, count + 1)]
    first = [*range(0, 2 * count, 2), 0, 0]
    tree = DecisionTree(np.array(split), np.array(first), np.array(children), np.array([0] * count + [0, 1]))
    half = np.log(np.full((1, 2), 0.5, dtype=np.float32))
    cpds = [CPD((), half, Float(32)) for _ in range(count)]
    cpds.append(CPD(tuple(range(count)), np.log(np.array([[0.4, 0.6], [0.5, 0.5]], np.float32)), Float(32), tree))
    return BayesNet(tuple(Variable(f"x{i}", BIT) for i in range(count)), Variable("y", BIT), tuple(cpds))


def test_a_split_below_minus_one_is_refused():
    for wrong in (-5, -2, -(2**31)):
        with pytest.raises(TinybayesError, match="split"):
            tree_net(2, [0, 1, wrong, -1])
    with pytest.raises(TinybayesError, match="integers within int32"):
        tree_net(2, [0, 1, 2**32 - 1, -1])  # would wrap around
    with pytest.raises(TinybayesError, match="integers with one axis"):
        tree_net(2, [0, 1, 0.5, -1])


@pytest.mark.parametrize("part", ["feature", "threshold", "child", "root", "output"])
def test_trees_have_no_numbers_below_minus_one_or_beyond_their_type(part):
    nodes = {"feature": [0, -1, -1], "threshold": [0, 0, 1], "child": [1, -1, -1], "root": [0], "output": [-1]}
    rest = {"missing": np.zeros(3, bool), "members": np.zeros((0, 0), bool)}
    good = Trees(**{k: np.array(v) for k, v in nodes.items()}, **rest)
    values = np.array([[1, 0], [0, 1]])
    TreeEnsemble((Variable("x", BIT),), Variable("y", BIT), good, values, np.zeros(2, np.int32), 1.0)
    for wrong in (-5, 2**32 - 1):
        changed = {k: np.array(v) for k, v in nodes.items()}
        changed[part] = np.concatenate([changed[part][:-1], [wrong]])
        with pytest.raises(TinybayesError, match=f"trees, {part}"):
            Trees(**changed, **rest)


def test_exports_that_would_be_huge_say_so_first(tmp_path):
    with pytest.raises(TinybayesError, match="compile the network to a circuit"):
        export(tree_net(24), to="c")
    with pytest.raises(TinybayesError, match="full tables only"):
        save(tree_net(24), tmp_path / "net.bif")


def test_a_large_file_is_announced(tmp_path, monkeypatch):
    monkeypatch.setattr("tinybayes.deploy.files.network_text.MANY_ENTRIES", 100)
    with pytest.warns(TinybayesWarning, match=r"network: 270 numbers are written out"):
        save(tree_net(7), tmp_path / "net.bif")
    with pytest.warns(TinybayesWarning, match=r"distribution of 'y': 256 numbers"):
        export(tree_net(7), to="c")


@pytest.mark.parametrize("states", [[10**400, 1], [1, 2, -(10**301)], ["a", -(10**400)]])
def test_states_that_cannot_be_written_are_refused(states):
    with pytest.raises(TinybayesError, match="variable 'x'"):
        Variable("x", states)


def test_long_integers_are_states():
    assert Variable("x", [10**299, 1, "1.0"]).cardinality == 3


def test_metadata_may_not_be_nested_deeply(tmp_path):
    def nested(depth):
        value = 1
        for level in range(depth):
            value = [value] if level % 2 else {"a": value}
        return {"m": value}

    net = tree_net(2)
    save(net, tmp_path / "good.tb", metadata=nested(60))
    assert load(tmp_path / "good.tb") == net
    for depth in (70, 500):
        with pytest.raises(TinybayesError, match="deep"):
            save(net, tmp_path / "bad.tb", metadata=nested(depth))


def test_a_file_of_deep_metadata_is_refused(tmp_path, monkeypatch):
    save(tree_net(2), tmp_path / "good.tb", metadata={"m": [[[[1]]]]})
    monkeypatch.setattr("tinybayes.deploy.files.fields.DEEPEST", 4)
    with pytest.raises(FileError, match="up to 4 deep"):
        load(tmp_path / "good.tb")


def test_a_class_of_very_many_states_is_refused_before_its_matrix_is_made():
    names = tuple(map(str, range(100_000)))
    target, table = Variable("y", names), np.zeros((1, len(names)), np.float32)
    net = BayesNet((), target, (CPD((), table, Float(32)),))
    rows = Dataset((), target, np.zeros((3, 0), np.int32), np.zeros(3, np.int32))
    with pytest.raises(TinybayesError, match="at most 8,192 classes"):
        evaluate(net, rows)


def test_a_wide_sum_takes_no_memory_for_its_pairs():
    count = 100_000  # with all pairs of children, 5 GB
    kind = np.array([INDICATOR] * count + [SUM])
    offsets = np.array([0] * (count + 1) + [count])
    circuit = Circuit(
        (Variable("x", range(count)),), None, kind, offsets, np.arange(count), np.array([*range(count), -1]),
        np.zeros(0, np.float32), Float(32),
    )  # fmt: skip
    assert is_deterministic(circuit)
    twice = Circuit(
        (Variable("x", range(count)),), None, kind, offsets, np.zeros(count, np.int32),
        np.array([*range(count), -1]), np.zeros(0, np.float32), Float(32),
    )  # fmt: skip
    with pytest.raises(TinybayesError, match="pairs of children"):
        is_deterministic(twice)


def test_pairs_are_compared_where_no_variable_tells_all_children_apart():
    # Children x0 y0, x0 y1, x1: each pair differs in x or in y. Without the first y it does not.
    kind = np.array([INDICATOR] * 4 + [PRODUCT, PRODUCT, SUM])

    def made(first):
        children = np.array([0, first, 0, 3, 4, 5, 1])
        offsets = np.array([0, 0, 0, 0, 0, 2, 4, 7])
        leaf = np.array([0, 1, 2, 3, -1, -1, -1])
        two = (Variable("x", BIT), Variable("y", BIT))
        return Circuit(two, None, kind, offsets, children, leaf, np.zeros(0, np.float32), Float(32))

    assert is_deterministic(made(2))
    assert not is_deterministic(made(3))


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)))
    assert read_frame(path).shape == (1000, 1000)
    monkeypatch.setattr("tinybayes.data.readers.MOST_UNPACKED", 2**20)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("X.npy").file_size > 200 * archive.getinfo("X.npy").compress_size
    with pytest.raises(FileError, match="when unpacked"):
        read_frame(path)


@pytest.mark.parametrize(
    "name", ["/* a", "// b", "*/ int x; /*", "??/", "a\\", "/" * 9 + "*", "\x1b[2J", "é\u202e\x07", "*" * 9 + "/"]
)
def test_comments_have_nothing_that_compilers_warn_of(name, tmp_path):
    text = plain(name)
    assert text.isascii()
    assert text.isprintable()
    source = tmp_path / "x.c"
    source.write_text(f"/* {text} */\n// {text}\nint x;\n")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wcomment", "-Wtrigraphs", "-Werror", "-fsyntax-only"]
    subprocess.run(["gcc", *flags, str(source)], check=True)


def test_a_name_of_any_length_has_a_short_comment():
    assert len(plain("x" * 100_000)) < 3000


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5])
def test_seeds_that_a_generator_refuses_are_refused_first(seed):
    rows = read_dataset(pd.DataFrame({"a": [0, 1] * 10, "y": ["u", "v"] * 10}), target="y")
    with pytest.raises(TinybayesError, match="seed: expected an integer from 0 to 4294967295"):
        learn_classifier(rows, structure="random", seed=seed)


def test_a_header_longer_than_a_cell_of_python_may_be(tmp_path):
    names = [f"column_{i:05}" for i in range(20_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * 20_000) + "\n" + ",".join("2" * 20_000) + "\n")
    frame = read_frame(path)
    assert list(frame.columns) == names
    assert frame.shape == (2, 20_000)
    (tmp_path / "long.csv").write_text(f"a,b\n{'x' * 200_000},1\ny,2,3\n")
    with pytest.raises(TinybayesError, match=r"long.csv:3: expected 2 cells"):
        read_frame(tmp_path / "long.csv")


def test_levels_that_no_float32_holds_are_refused():
    with pytest.raises(TinybayesError, match="levels of magnitudes up to 1e"):
        Codebook((-1e308, -0.5))
    book = Codebook((-1e38, -0.5))
    cpds = CPD((1,), np.array([[0, 1], [1, 0]]), book), CPD((), np.array([[1, 1]]), book)
    assert export(BayesNet((Variable("x", BIT),), Variable("y", BIT), cpds), to="c")
