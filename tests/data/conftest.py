import pytest

from tinybayes.data import _table


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every file as if it were too large for memory, in blocks of a few rows."""
    monkeypatch.setattr(_table, "SMALL", 40)
    monkeypatch.setattr(_table, "BLOCK", 200)
