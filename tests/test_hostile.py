"""Models and tables made by an attacker: one clear error, before anything endless or huge begins."""

import gzip
import io
import os
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tinybayes import BayesNet, TinybayesError, Variable, export, load, read_dataset, save
from tinybayes.data.encode import encode_frame, encode_matrix
from tinybayes.data.readers import read_frame
from tinybayes.data.variables import Discretization
from tinybayes.data.writers import write_frames
from tinybayes.deploy.price import program_cost
from tinybayes.deploy.programs.names import plain
from tinybayes.errors import FileError, TinybayesWarning
from tinybayes.estimators._base import states_table
from tinybayes.infer import ask, compile_circuit, estimate_width, evaluate, marginals
from tinybayes.infer.alarm import from_metadata
from tinybayes.infer.circuit_properties import is_deterministic
from tinybayes.infer.frames import prediction_frames
from tinybayes.learn import learn_classifier
from tinybayes.learn.circuits.options import CircuitOptions, LatentOptions
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.trees.options import BoostingOptions
from tinybayes.model import (
    CPD,
    Circuit,
    Codebook,
    Dataset,
    DecisionTree,
    Factor,
    Float,
    Inputs,
    Layer,
    NeuralNet,
    TreeEnsemble,
    Trees,
)
from tinybayes.model.circuit import INDICATOR, SUM
from tinybayes.model.variable import distinct_texts, state_array
from tinybayes.report.cards import model_card
from tinybayes.search.explore import Execution

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


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)))
    assert read_frame(path).shape == (1000, 1000)
    monkeypatch.setattr("tinybayes.data.readers.MOST_UNPACKED", 2**20)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("X.npy").file_size > 200 * archive.getinfo("X.npy").compress_size
    with pytest.raises(FileError, match="when unpacked"):
        read_frame(path)


def test_a_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    """3 MB unpacked to a line of 3 GB, which the search for the damaged line read whole."""
    monkeypatch.setattr("tinybayes.data.arff.LONGEST_LINE", 1000)
    for name, content in (
        ("t.csv.gz", "a,b\n1,2\n" + "x" * 5000),
        ("h.csv.gz", "a," * 5000),
        ("t.arff.gz", "x" * 5000),
    ):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(content)
        with pytest.raises(FileError, match="expected lines of up to 0 MiB, got a longer one"):
            read_frame(tmp_path / name)


def test_an_array_without_rows_has_no_more_columns_than_others(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((0, 2**20 + 1)))
    with pytest.raises(TinybayesError, match="at most 1,048,576 columns"):
        read_frame(tmp_path / "x.npz")


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


HUGE = 10**400


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (LatentOptions, "epochs", HUGE),
        (LatentOptions, "epochs", 10**18),  # more than the 32 bits that JAX counts with
        (LatentOptions, "restarts", 10**9),  # each takes its memory
        (LatentOptions, "seed", 2**32),
        (LatentOptions, "batch_size", HUGE),
        (CircuitOptions, "max_edges", -HUGE),
        (CircuitOptions, "edge_price", HUGE),
        (TrainingOptions, "epochs", 10**12),
        (Discretization, "n_bins", 10**9),  # a list of as many cut points
        (Discretization, "max_states", HUGE),
        (Execution, "workers", HUGE),
        (BoostingOptions, "rounds", 10**10),  # for ever
    ],
)
def test_integers_beyond_all_use_are_refused(options, name, value):
    with pytest.raises(TinybayesError, match=f"{name}: expected") as told:
        options(**{name: value})
    assert len(str(told.value)) < 100


@pytest.mark.parametrize("change", [{"threshold": 1e308}, {"threshold": -1e300}, {"unseen": 1e308}, {"unseen": 0.0}])
def test_an_alarm_beyond_the_integers_of_a_device_is_refused(change):
    good = {"threshold": -4.0, "unseen": 5.0, "rate": 0.05, "rows": 60}
    assert from_metadata({"alarm": good}) is not None
    with pytest.raises(TinybayesError, match="alarm: expected numbers of nats up to 1e"):
        from_metadata({"alarm": good | change})


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


def dense_net(**changes):
    """A network of one layer, with changes."""
    inputs = {"feature": [0, 1], "state": [-1, -1], "multiplier": [1, 1], "center": [0, 0]}
    layer = {"codes": np.ones((2, 2), np.uint8), "bits": 1, "bias": np.zeros(2, np.int32)}
    whole = {"variables": (Variable("a", BIT), Variable("b", BIT)), "target": Variable("y", BIT), "scale": 1.0}
    for part in (inputs, layer, whole):
        part.update(
            {name: value for name, value in changes.items() if name in part or (part is layer and name in EXTRA)}
        )
    if "image_shape" in changes:
        whole["image_shape"] = changes["image_shape"]
    return NeuralNet(**whole, inputs=Inputs(**inputs), layers=(Layer(**layer),))


EXTRA = ("before", "after")


@pytest.mark.parametrize(
    "changes",
    [
        {"feature": [0, 2**40]},
        {"feature": np.array([0, 2**32])},  # would wrap around to 0
        {"feature": [0, 10**30]},
        {"feature": [0.0, 0.7]},
        {"feature": [[0], [1]]},
        {"feature": [[0], [1, 2]]},
        {"feature": "ab"},
        {"state": [0, None]},
        {"multiplier": [1, 2**31]},
        {"center": [float("nan"), 0]},
        {"before": 1.5},
        {"after": "3"},
        {"bits": 1.0},
        {"bias": [0.5, 0.5]},
        {"bias": [0]},
        {"scale": "1"},
        {"scale": None},
        {"scale": float("nan")},
        {"scale": 10**400},
        {"variables": (Variable("a", BIT), Variable("a", BIT))},
        {"target": Variable("a", BIT)},
        {"image_shape": (2,)},
        {"image_shape": (1.0, 2.0)},
        {"image_shape": "12"},
    ],
)
def test_neural_nets_of_wrong_parts_are_refused(changes):
    assert dense_net().reach
    with pytest.raises(TinybayesError, match="expected"):
        dense_net(**changes)


@pytest.mark.parametrize(
    ("scope", "feature"),
    [
        (("a",), [0, 1]),
        ((0.5,), [0, 1]),
        (None, [0, 1]),
        ((0,), [0, 2**32]),  # would wrap around to 0
        ((0,), [0, 10**30]),
        ((0,), [0.0, 1.0]),
        ((0,), [[0, 1]]),
        ((0,), []),
        ((0,), [-2, 0]),
        ((0,), [[0], [0, 1]]),
    ],
)
def test_factors_of_wrong_parts_are_refused(scope, feature):
    with pytest.raises(TinybayesError, match="expected"):
        Factor(scope, feature)


@pytest.mark.parametrize("parents", [("a",), (0.5,), 3, (None,)])
def test_parents_that_are_no_numbers_are_refused(parents):
    with pytest.raises(TinybayesError, match="CPD, parents: expected numbers of variables"):
        CPD(parents, np.zeros((1, 2)), Float(64))


def test_a_table_on_a_terminal_does_not_steer_it(monkeypatch, tmp_path):
    steering = "\x1b]0;owned\x07\x9b2J\u202e"
    table = pd.DataFrame({f"name{steering}": [f"state{steering}", "b"]})

    class Screen(io.StringIO):
        def isatty(self):
            return True

    for kind, shown in ((Screen, True), (io.StringIO, False)):  # a file or a pipe gets what there is
        monkeypatch.setattr("sys.stdout", kind())
        write_frames([table, table], "-")
        text = sys.stdout.getvalue()
        monkeypatch.undo()
        assert ("\x1b" not in text) == shown
        assert ("name\\x1b]0;owned\\x07\\x9b2J\\u202e" in text) == shown
        assert text.count("\n") == 5


@pytest.mark.parametrize("place", ["-", "table.csv", "table.parquet"])
def test_half_characters_cannot_be_written(place, tmp_path, monkeypatch):
    table = pd.DataFrame({"a": pd.Series(["\ud800", "b"], dtype=object)})
    if place == "-":
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    with pytest.raises(TinybayesError, match=r"text that utf-?8 can write, got .*ud800"):
        write_frames([table], place if place == "-" else tmp_path / place)
    assert not list(tmp_path.iterdir())


def alike():
    """A network whose states read alike: numbers and texts."""
    cpds = (CPD((1,), np.log([[0.9, 0.1], [0.2, 0.8]]), Float(64)), CPD((), np.log([[0.25, 0.75]]), Float(64)))
    return BayesNet((Variable("x", (1, "1")),), Variable("y", ("True", True)), cpds)


def test_states_that_read_alike_are_told_apart_in_answers():
    assert distinct_texts((1, "1", "a", 1.5)) == ["1", "'1'", "a", "1.5"]
    net = alike()
    rows = Dataset(net.variables, net.target, np.array([[0], [1]], np.int32), None)
    (frame,) = prediction_frames(net, [rows], proba=True)
    assert list(frame.columns) == ["y", "p('True')", "p(True)"]
    assert [type(label) for label in frame["y"]] == [str, bool]
    np.testing.assert_allclose(frame.iloc[:, 1:].sum(axis=1), 1)
    (frame,) = prediction_frames(net, [rows])
    assert [type(label) for label in frame["y"]] == [str, bool]
    told = ask(net, "x=1 | y='True'", posterior=True)
    assert told.probability == pytest.approx(0.9)
    assert ask(net, "x='1' | y='True'").probability == pytest.approx(0.1)
    assert list(told.to_dict(net.nodes)["marginals"]["x"]) == ["1", "'1'"]


@pytest.mark.parametrize("states", [(5, -1, 2**63), (10**299, 3), (True, False), (1.5, 2.5), (7, 1.5), ("a" * 9, "b")])
def test_labels_are_the_states_themselves(states):
    array = state_array(states)
    assert array.tolist() == list(states)
    assert list(map(type, array.tolist())) == list(map(type, states))
    target = Variable("y", states)
    net = BayesNet((), target, (CPD((), np.log(np.array([[0.2] * (len(states) - 1) + [0.8]], np.float32)), Float(32)),))
    (frame,) = prediction_frames(net, [Dataset((), target, np.zeros((1, 0), np.int32), np.zeros(1, np.int32))])
    assert frame["y"].tolist() == [states[-1]]
    table = states_table(np.array([[0], [1]]), [target], as_frame=False)
    assert table[:, 0].tolist() == list(states[:2])


def test_integers_that_are_the_same_double_are_refused_in_a_matrix():
    with pytest.raises(TinybayesError, match="expected states that differ in a table"):
        encode_matrix(np.array([[0], [2**53]]), (Variable("x", (0, 2**53, 2**53 + 1)),))


@pytest.mark.parametrize("states", [(1, "1"), ("True", True), (2**60, 2**60 + 1), ("nan", "b", 1.5, "1.5")])
def test_tables_whose_states_read_alike_are_refused(states):
    frame = pd.DataFrame({"x": ["1", "b"]})
    with pytest.raises(TinybayesError, match=r"variable 'x': expected states that differ in a table, got .* twice"):
        encode_frame(frame, (Variable("x", states),))


def test_a_damaged_model_of_a_run_is_lost_alone(tmp_path):
    from tinybayes.search.conclude import _kept

    (tmp_path / "trials").mkdir()
    path, run = tmp_path / "trials" / "a.tb", SimpleNamespace(key="a", saved=True)
    net = tree_net(2)
    save(net, path)
    assert _kept(run, tmp_path) == net
    assert _kept(SimpleNamespace(key="a", saved=False), tmp_path) is None
    content = path.read_bytes()
    for damage in ("garbage", "half", "link", "pipe", "gone"):
        path.unlink(missing_ok=True)
        if damage == "link":
            (tmp_path / "other").write_bytes(content)
            path.symlink_to(tmp_path / "other")
        elif damage == "pipe":
            os.mkfifo(path)
        elif damage != "gone":
            path.write_bytes(b"x" * 100 if damage == "garbage" else content[: len(content) // 2])
        with pytest.warns(TinybayesWarning, match="the model of a run is lost"):
            assert _kept(run, tmp_path) is None


def test_labels_of_a_search_do_not_steer_the_terminal():
    from rich.console import Console

    from tinybayes.report.front_table import front_table
    from tinybayes.search.measure import ERROR

    label = "[red]\x1b]0;owned\x07[/red][link=http://x]y, 1 kB"
    model = {"id": "a", "label": label, "tables_only": False, "flash": 1, "instructions": 2.0}
    model |= {"validation_error": 0.1, "test_error": 0.2, "on_front": True}
    document = {"budget": {"core": "[bold]core"}}
    result = SimpleNamespace(document=document, measure=ERROR, models=[model], front=[model], chosen=model)
    screen = Console(file=io.StringIO(), width=200)
    screen.print(front_table(result))
    shown = screen.file.getvalue()
    assert "[red]\\x1b]0;owned\\x07[/red][link=http://x]y" in shown
    assert "[bold]core" in shown
    assert "\x1b" not in shown


def test_a_network_of_no_variables_at_all_is_a_sentence(tmp_path):
    nothing = BayesNet((), None, ())
    save(nothing, tmp_path / "nothing.tb")
    assert load(tmp_path / "nothing.tb") == nothing
    assert model_card(nothing)["nodes"] == []
    for act in (
        lambda: export(nothing, to="c"),
        lambda: program_cost(nothing, "cortex-m0+"),
        lambda: compile_circuit(nothing),
        lambda: estimate_width(nothing),
        lambda: marginals(nothing),
        lambda: ask(nothing, ""),
        lambda: save(nothing, tmp_path / "nothing.bif"),
    ):
        with pytest.raises(TinybayesError, match="expected"):
            act()
