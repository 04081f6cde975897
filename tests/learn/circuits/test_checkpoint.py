"""Growths that end in the middle and go on from their checkpoint."""

import os
import signal

import numpy as np
import pytest
from test_learn_ac import dependent

from tinybayes.errors import FileError, TinybayesError
from tinybayes.learn.circuits import checkpoint, learn_ac
from tinybayes.learn.circuits.checkpoint import Snapshot, learn_circuit_resumable, read_checkpoint, write_checkpoint
from tinybayes.learn.circuits.learn_ac import learn_circuit
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.model import Dataset


@pytest.fixture
def few_looks(monkeypatch):
    """Many short runs instead of one long one, so that there is a middle to end in."""
    monkeypatch.setattr(learn_ac, "LOOKS", 7)
    monkeypatch.setattr(learn_ac, "SECONDS_A_REPORT", 0.0)


def stop_after(reports):
    """Press Ctrl-C at the n-th report."""
    seen = []

    def report(growth):
        seen.append(growth)
        if len(seen) == reports:
            os.kill(os.getpid(), signal.SIGINT)

    return report


@pytest.mark.parametrize("method", ["quick", "greedy"])
@pytest.mark.parametrize("seed", range(4))
def test_a_growth_that_was_interrupted_goes_on_as_if_nothing_had_happened(tmp_path, few_looks, method, seed):
    data = dependent(seed, rows=500, features=8)
    options = {"edge_price": 0.05, "parameter_price": 0.1, "method": method}
    whole = learn_circuit(data, **options)
    path = tmp_path / "c.ckpt"
    parts = []
    while not parts or not parts[-1].complete:
        parts.append(learn_circuit_resumable(data, path, CircuitOptions(**options), report=stop_after(3)))
        assert len(parts) < 500
    assert len(parts) > 3
    assert [len(p.splits) for p in parts] == sorted(len(p.splits) for p in parts)
    assert parts[-1].splits.tolist() == whole.splits.tolist()
    assert parts[-1].net == whole.net
    assert parts[-1].circuit.n_edges == whole.circuit.n_edges
    assert parts[-1].growth.score == pytest.approx(whole.growth.score)


def test_without_an_interrupt_it_is_learn_ac(tmp_path):
    data = dependent(3, rows=300, features=6)
    path = tmp_path / "c"
    found, plain = (
        learn_circuit_resumable(data, path, CircuitOptions(edge_price=0.2)),
        learn_circuit(data, edge_price=0.2),
    )
    assert found.net == plain.net
    assert found.circuit == plain.circuit
    assert found.complete
    again = learn_circuit_resumable(data, path, CircuitOptions(edge_price=0.2))
    assert again.net == plain.net
    assert again.looks <= found.looks


def test_limits_may_change_between_runs(tmp_path):
    data = dependent(5, rows=400, features=8, binary=True)
    whole = learn_circuit(data, edge_price=0.05, method="greedy")
    options = {"edge_price": 0.05, "method": "greedy"}
    small = learn_circuit_resumable(
        data, tmp_path / "c", CircuitOptions(max_edges=whole.circuit.n_edges // 2, **options)
    )
    assert small.circuit.n_edges <= whole.circuit.n_edges // 2
    more = learn_circuit_resumable(data, tmp_path / "c", CircuitOptions(**options))
    assert more.splits[: len(small.splits)].tolist() == small.splits.tolist()
    assert more.circuit.n_edges > small.circuit.n_edges


def test_it_is_written_now_and_then(tmp_path, few_looks, monkeypatch):
    data = dependent(1, rows=500, features=8)
    written = []
    keep = checkpoint.write_checkpoint
    monkeypatch.setattr(checkpoint, "write_checkpoint", lambda *a: (written.append(len(a[1].splits)), keep(*a)))
    learn_circuit_resumable(data, tmp_path / "c", CircuitOptions(edge_price=0.05), every=0.0)
    assert len(written) > 3
    assert written == sorted(written)
    written.clear()
    learn_circuit_resumable(data, tmp_path / "d", CircuitOptions(edge_price=0.05), every=1e9)
    assert len(written) == 2  # at the first report and at the end


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_price": 0.2}, "edge_price 0.2, got one with 0.1"),
        ({"parameter_price": 0.5}, "parameter_price 0.5"),
        ({"method": "greedy"}, "method greedy, got one with quick"),
        ({"smoothing": 2.0}, "smoothing 2.0"),
        ({"data": "rows"}, "a checkpoint of the same data"),
        ({"data": "weights"}, "a checkpoint of the same data"),
        ({"data": "names"}, "a checkpoint of the same data"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_and_left_alone(tmp_path, change, message):
    data = dependent(2, rows=200, features=5)
    path = tmp_path / "c.ckpt"
    learn_circuit_resumable(data, path)
    before = path.read_bytes()
    which = change.pop("data", None)
    if which == "rows":
        data = data.rows(slice(1, None))
    elif which == "weights":
        data = Dataset(data.variables, None, data.X, weight=np.full(len(data), 2.0))
    elif which == "names":
        renamed = type(data.variables[0])("other", data.variables[0].states)
        data = Dataset((renamed, *data.variables[1:]), None, data.X)
    with pytest.raises(FileError, match=message):
        learn_circuit_resumable(data, path, CircuitOptions(**change))
    assert path.read_bytes() == before


def test_damaged_files_are_refused(tmp_path):
    data = dependent(2, rows=200, features=5)
    path = tmp_path / "c.ckpt"
    learn_circuit_resumable(data, path, CircuitOptions(edge_price=0.1))
    sound = path.read_bytes()
    for bad in (b"", b"\0" * 100, sound[:50], sound[:-5], b"a,b\n1,2\n", sound.replace(b'"about"', b'"obout"')):
        path.write_bytes(bad)
        with pytest.raises(FileError, match=r"c\.ckpt: expected a checkpoint"):
            learn_circuit_resumable(data, path, CircuitOptions(edge_price=0.1))
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match=r"c\.ckpt"):
        learn_circuit_resumable(data, path, CircuitOptions(edge_price=0.1))


def test_splits_and_costs_that_cannot_be_are_refused(tmp_path, monkeypatch):
    data = dependent(2, rows=200, features=5)
    path, about = tmp_path / "c", {}
    monkeypatch.setattr(checkpoint, "write_checkpoint", lambda where, snapshot, a: about.update(a))
    learn_circuit_resumable(data, path)
    none = np.empty(0, np.int32)
    for snapshot, message in (
        (Snapshot(np.array([[0, 0]], np.int32), none.astype(np.int64), none, none), "splits of an earlier growth"),
        (Snapshot(none.reshape(0, 2), np.array([10**6]), np.array([1]), np.array([1])), "costs of known candidates"),
        (Snapshot(none.reshape(0, 2), np.array([0]), none, none), "costs of known candidates"),
    ):
        write_checkpoint(path, snapshot, about)
        with pytest.raises(TinybayesError, match=message):
            learn_circuit_resumable(data, path)


def test_reading_gives_what_was_written(tmp_path):
    some = Snapshot(np.array([[0, 1]], np.int32), np.array([3, 4]), np.array([5, 6]), np.array([-1, 1]))
    write_checkpoint(tmp_path / "c", some, {"data": "x", "n": 0.1})
    back = read_checkpoint(tmp_path / "c", {"data": "x", "n": 0.1})
    for name, array in vars(some).items():
        np.testing.assert_array_equal(getattr(back, name), array)


def test_bad_options_leave_no_file(tmp_path):
    data = dependent(0)
    for options in ({"edge_price": -1.0}, {"method": "fast"}, {"smoothing": 0.0}, {"max_edges": 0}):
        with pytest.raises(TinybayesError):
            learn_circuit_resumable(data, tmp_path / "c", CircuitOptions(**options))
    with pytest.raises(FileError, match="directory"):
        learn_circuit_resumable(data, tmp_path / "no" / "c")
    assert list(tmp_path.iterdir()) == []
