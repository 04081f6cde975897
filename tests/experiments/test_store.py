"""Stores and reports: large ones are compressed, and nobody notices."""

import gzip
import json

import pytest

from experiments.store import (
    LARGEST,
    append_line,
    pack,
    read_lines,
    read_report,
    read_store,
    read_text,
    write_report,
    write_text,
)
from tinybayes.errors import FileError


def run(number):
    return {"sweep": "s", "stage": 1, "fold": 0, "setting": number, "test_error": 0.5}


def test_small_files_stay_plain_and_large_ones_are_compressed(tmp_path):
    path = tmp_path / "results" / "a.json"
    assert read_report(path) is None
    for numbers in (range(10), range(LARGEST), range(5)):
        report = {"numbers": list(numbers)}
        write_report(path, report)
        assert read_report(path) == report
        assert [file.name for file in path.parent.iterdir()] == ["a.json.gz" if len(numbers) > 10 else "a.json"]


def test_new_lines_of_a_compressed_store_come_after_the_old_ones(tmp_path):
    store, packed = tmp_path / "s.jsonl", tmp_path / "s.jsonl.gz"
    pack(store)
    assert not store.exists()
    for number in range(LARGEST // 50):
        append_line(store, run(number))
    before = store.read_text()
    pack(store)
    assert not store.exists()
    first = packed.read_bytes()
    assert gzip.decompress(first).decode() == before == read_text(store)
    append_line(store, run(-1))
    assert store.read_text() == json.dumps(run(-1)) + "\n"
    assert read_lines(store)[-1] == run(-1)
    assert len(read_store(store)["s"]) == LARGEST // 50 + 1
    pack(store)
    assert not store.exists()
    assert read_lines(store)[-1] == run(-1)
    write_text(store, before)
    assert packed.read_bytes() == first  # no time, no name


def test_a_line_cut_short_spoils_neither_its_neighbours_nor_the_next_run(tmp_path):
    store = tmp_path / "s.jsonl"
    append_line(store, run(0))
    with store.open("a") as file:
        file.write(json.dumps(run(1))[:20])
    append_line(store, run(2))
    assert [record["setting"] for record in read_lines(store)] == [0, 2]
    store.write_text("3\n[1]\n" + store.read_text())
    assert [record["setting"] for record in read_lines(store)] == [0, 2]


@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"x" + b, lambda b: b[:20] + b"??" + b[22:]])
def test_a_damaged_archive_is_named(tmp_path, damage):
    (tmp_path / "s.jsonl.gz").write_bytes(damage(gzip.compress(b"{}\n" * 500)))
    with pytest.raises(FileError, match=r"s\.jsonl\.gz: expected a whole gzip file"):
        read_lines(tmp_path / "s.jsonl")
