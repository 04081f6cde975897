"""What worker processes give back between two pieces of work."""

import sys
from types import SimpleNamespace

import pytest

from tinybayes.search import memory

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is given back on Linux only")


@linux
@pytest.mark.parametrize(("growth", "cleared"), [(-(2**50), 1), (2**50, 0)])
def test_programs_of_jax_go_once_the_process_has_grown(growth, cleared, monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "GROWTH", growth)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(clear_caches=lambda: calls.append(1)))
    memory.Memory().give_back()
    assert len(calls) == cleared


@linux
def test_jax_is_not_loaded_to_be_cleared(monkeypatch):
    monkeypatch.setattr(memory, "GROWTH", -(2**50))
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    memory.Memory().give_back()
    assert "jax" not in sys.modules


@linux
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
