"""The store of a sweep: a file of JSON lines, one for every finished run, to which lines are only added."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Tell = Callable[[str], None]
Runs = dict[tuple[int, int, int], dict[str, Any]]  # what was stored, by stage, fold and setting


def read_store(store: Path) -> dict[str, Runs]:
    """Read the finished runs of every sweep; a line cut short by a crash is left out and will be run again."""
    found: dict[str, Runs] = {}
    for line in store.read_text(errors="replace").splitlines() if store.exists() else []:
        try:
            record = json.loads(line)
            place = record["stage"], record["fold"], record["setting"]
            found.setdefault(record["sweep"], {})[place] = record
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found
