"""What worker processes give back between two pieces of work."""

import sys
from types import SimpleNamespace

import pytest

from tinybayes.search import memory, workers

glibc = pytest.mark.skipif(memory.Memory()._trim is None, reason="memory is given back on Linux with glibc only")


@glibc
@pytest.mark.parametrize(("growth", "cleared"), [(-(2**50), 1), (2**50, 0)])
def test_programs_of_jax_go_once_the_process_has_grown(growth, cleared, monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "GROWTH", growth)
    monkeypatch.setattr(memory, "resident", lambda: 2 * memory.AGAIN)  # whatever the tests before have left
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(clear_caches=lambda: calls.append(1)))
    memory.Memory().give_back()
    assert len(calls) == cleared


@glibc
def test_programs_stay_where_something_else_takes_the_memory(monkeypatch):
    held, calls = [], []

    def clear():
        calls.append(1)
        held.pop()

    monkeypatch.setattr(memory, "GROWTH", 400_000_000)
    monkeypatch.setattr(memory, "resident", lambda: 100_000_000 + sum(held))
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(clear_caches=clear))
    own = memory.Memory()
    held += [450_000_000, 200_000_000]  # the rows of a lesson, and programs
    for _ in range(5):
        own.give_back()
    assert calls == [1]
    held.append(150_000_000)  # further programs
    for _ in range(5):
        own.give_back()
    assert calls == [1, 1]
    held[:] = [350_000_000]  # no lesson any more: the same limit as before it
    own.give_back()
    held.append(120_000_000)
    own.give_back()
    assert calls == [1, 1, 1]


@glibc
def test_jax_is_not_loaded_to_be_cleared(monkeypatch):
    monkeypatch.setattr(memory, "GROWTH", -(2**50))
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    memory.Memory().give_back()
    assert "jax" not in sys.modules


@glibc
def test_free_pages_go_back():
    own = memory.Memory()
    parts = [bytearray(100_000) for _ in range(1000)]
    kept = [bytearray(10_000)]  # above them: their pages would stay
    grown = memory.resident()
    del parts
    own.give_back()
    assert kept
    assert memory.resident() < grown - 80_000_000


def test_where_the_system_does_not_say_nothing_is_held(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    assert memory.resident() == 0
    monkeypatch.setattr(sys, "platform", "win32")
    memory.Memory().give_back()


def test_another_c_library_gives_nothing_back(monkeypatch):
    """That of Alpine Linux has no `malloc_trim`."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(memory, "GROWTH", -(2**50))
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "jax", None)  # not asked
    memory.Memory().give_back()


@pytest.mark.parametrize(("work", "name"), [(workers._in_process, "carry_out"), (workers._teach_in_process, "teach")])
def test_workers_give_back_after_each_piece_of_work_and_after_errors(work, name, monkeypatch):
    calls = []

    def fail(*given):
        raise OSError("no space left")

    monkeypatch.setattr(workers, "_views", object())
    monkeypatch.setattr(workers, "_memory", SimpleNamespace(give_back=lambda: calls.append(1)))
    arguments = ([], None) if name == "carry_out" else (None, 1.0, 0)
    monkeypatch.setattr(workers, name, lambda *given: "done")
    assert work(*arguments) == "done"
    assert calls == [1]
    monkeypatch.setattr(workers, name, fail)
    with pytest.raises(OSError, match="no space left"):
        work(*arguments)
    assert calls == [1, 1]
