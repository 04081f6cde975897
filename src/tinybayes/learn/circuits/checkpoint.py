"""Growing circuits that survive the end of their process: checkpoints of `learn_circuit`.

A checkpoint holds the splits done so far, and the numbers of edges that candidates cost when they were last looked at,
which the quick method relies on. The splits are repeated and the costs put back, so that the growth goes on as if it
had never ended. The file is a safetensors file: reading it executes nothing.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from tinybayes._kernels.grow import N_PARTS, N_SPLITS, UNKNOWN, Table
from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path, exists, named
from tinybayes.learn.circuits.learn_ac import Grown, Growth, State
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.learn.circuits.pools import distinct_rows
from tinybayes.model import Dataset

VERSION = "1"
FIXED = ("method", "smoothing", "edge_price", "parameter_price", "bayesian")  # the same in all runs of a growth
EVERY = 5.0  # seconds between two writings of the file


@dataclass(frozen=True)
class Snapshot:
    """Where a growth stands: its splits, and for candidates (as numbers) the cost and when it was counted."""

    splits: np.ndarray
    candidate: np.ndarray
    cost: np.ndarray
    looked: np.ndarray


def learn_circuit_resumable(
    data: Dataset,
    path: str | os.PathLike[str],
    options: CircuitOptions | None = None,
    *,
    report: Callable[[Growth], None] | None = None,
    every: float = EVERY,
) -> Grown:
    """Learn a circuit as `learn_circuit` does, and resume from the checkpoint if the file exists.

    Parameters
    ----------
    data, options, report
        As for `learn_circuit`. The limits may differ from those of the run that wrote the checkpoint; data, prices,
        method and smoothing may not.
    path
        The file. It is written at the first report, every few seconds and at the end, whole or not at all.
    every
        Seconds between two writings.
    """
    options = options or CircuitOptions()
    table = distinct_rows(data)
    about = {"data": _digest(data, table)} | {name: getattr(options, name) for name in FIXED}
    state = State(table, options)
    if exists(path):
        _restore(state, read_checkpoint(path, about), path)
    written = float("-inf")  # the first report writes, so that a path that cannot be written fails early

    def keep(growth: Growth) -> None:
        nonlocal written
        if report is not None:
            report(growth)
        if time.monotonic() - written > every:
            write_checkpoint(path, _snapshot(state), about)
            written = time.monotonic()

    state.run_all(keep)
    write_checkpoint(path, _snapshot(state), about)
    return state.result(data)


def write_checkpoint(path: str | os.PathLike[str], snapshot: Snapshot, about: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all; `about` (numbers and strings by name) must be the same on reading."""
    named = {name: np.ascontiguousarray(array) for name, array in vars(snapshot).items()}
    header = {"tinybayes_checkpoint": VERSION, "about": json.dumps(about, sort_keys=True, default=float)}
    with atomic_path(path) as temporary:
        temporary.write_bytes(safetensors_bytes(named, header))


def read_checkpoint(path: str | os.PathLike[str], about: dict[str, Any]) -> Snapshot:
    """Read a checkpoint, and raise a `FileError` unless it belongs to `about`."""
    where, other = str(path), "choose another file, or remove this one to begin anew"
    try:
        with open(path, "rb", opener=named):
            pass  # it is no pipe, for which `safe_open` would wait
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        stored = json.loads(header["about"]) if header.get("tinybayes_checkpoint") == VERSION else None
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as problem:
        raise error("a checkpoint", f"{problem}", where=where, remedy=other, kind=FileError) from problem
    if not isinstance(stored, dict) or set(arrays) != set(Snapshot.__dataclass_fields__):
        raise error("a checkpoint of this version", "another file", where=where, remedy=other, kind=FileError)
    if stored.get("data") != about["data"]:
        raise error("a checkpoint of the same data", "one of other data", where=where, remedy=other, kind=FileError)
    for name, value in about.items():
        if stored.get(name) != value:
            got, remedy = f"one with {stored.get(name)}", f"use the same, {other}"
            raise error(f"a checkpoint with {name} {value}", got, where=where, remedy=remedy, kind=FileError)
    snapshot = Snapshot(**arrays)
    if not _is_sound(snapshot):
        expected = "splits and costs of known candidates, in integers"
        raise error(expected, "others", where=where, remedy=other, kind=FileError)
    return snapshot


def _is_sound(snapshot: Snapshot) -> bool:
    """Tell whether the arrays have the types and shapes that are written."""
    integers = all(array.dtype.kind in "iu" for array in vars(snapshot).values())
    splits, candidate = snapshot.splits, snapshot.candidate
    flat = candidate.ndim == 1 and candidate.shape == snapshot.cost.shape == snapshot.looked.shape
    return integers and flat and splits.ndim == 2 and splits.shape[1] == 2


def _digest(data: Dataset, table: Table) -> str:
    """Return a hash of the learner's input: the variables, and the distinct rows with their weights."""
    variables = [[node.name, list(node.states), repr(node.encoding)] for node in data.nodes]
    digest = hashlib.sha256(json.dumps([variables, data.target is None]).encode())
    for array in (table.columns, table.weight):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _snapshot(state: State) -> Snapshot:
    count = int(state.numbers[N_PARTS])
    cost = state.parts.cost[:count]
    remembered = (cost != UNKNOWN) & (state.parts.tested[:count, None] < 0) & (not state.greedy)
    known = np.flatnonzero(remembered)
    looked = state.parts.looked[:count].ravel()[known]
    return Snapshot(state.steps[: state.numbers[N_SPLITS]].copy(), known, cost.ravel()[known], looked)


def _restore(state: State, snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Repeat the splits; quick: put the costs back."""
    state.repeat(snapshot.splits)
    if state.greedy:
        return
    count, candidate = int(state.numbers[N_PARTS]), snapshot.candidate
    if candidate.size and not 0 <= candidate.min() <= candidate.max() < count * len(state.cardinality):
        raise error("costs of known candidates", "others", where=str(path), kind=FileError)
    for array, values, none in ((state.parts.cost, snapshot.cost, UNKNOWN), (state.parts.looked, snapshot.looked, -1)):
        array[:count] = none
        array[:count].reshape(-1)[candidate] = values
    state.prepare()
