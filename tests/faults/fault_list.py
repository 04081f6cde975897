"""All faults, by name. The first paragraph of a docstring says what is done, the second what is expected."""

import signal
from collections import Counter
from pathlib import Path

from fault_harness import Result
from fault_kills import CASES, STEPS, kill_at_random, kill_at_steps, signal_at_random
from fault_searches import clock_jump, dask_worker_lost, server_restarted, torn_journal, two_searches, worker_lost
from fault_streams import closed_pipe, input_cut, input_gone
from fault_writers import full_disk, full_disk_explore, read_only_directory

ASKED = 8  # signals to each command


def quicken() -> None:
    """Make the pace of a search and of checkpoints that of seconds, so that kills meet all phases."""
    import tinybayes.learn.circuits.checkpoint as checkpoint
    import tinybayes.search.clock as clock
    import tinybayes.search.driver as driver
    import tinybayes.search.live as live
    import tinybayes.search.schedule as schedule

    for module in (clock, driver, schedule):
        module.STEPS = (50, 200, 800, 3200)  # one for each rung
    clock.COMPILING = schedule.COMPILING = 0.5
    live.EVERY = live.FRONT_EVERY = 0.1
    if checkpoint.learn_circuit_resumable.__kwdefaults__ is not None:
        checkpoint.learn_circuit_resumable.__kwdefaults__["every"] = 0.05


def _random(name: str):
    def fault(work: Path, kills: int, seed: int) -> Result:
        quicken()
        return kill_at_random(CASES[name](work), work, kills, seed)

    return fault


def _steps(name: str):
    def fault(work: Path, kills: int, seed: int) -> Result:
        quicken()
        return kill_at_steps(CASES[name](work), work, min(STEPS, kills), seed)

    return fault


FAULTS = {}
WHOLE = "every file is whole, the old or the new one; the same command completes"
ENDS = {
    "fit": "every file is whole or not there; the same command completes and gives the same model",
    "learn-circuit": f"{WHOLE} from its checkpoint and gives the same circuit, byte by byte",
    "export": f"{WHOLE} and gives the same bytes for 8 targets",
    "explore": "every file is whole or not there; the same command completes; finished trials are there unchanged, "
    "none twice, each with its model",
}
for _name, _ends in ENDS.items():
    for _kind, _make, _when in (
        ("kill", _random, "at a random moment"),
        ("kill-steps", _steps, "just before it opens, renames, changes or removes a file"),
    ):
        _fault = _make(_name)
        _fault.__doc__ = f"`{_name}` killed (`kill -9`) {_when}\n\n{_ends}"
        FAULTS[f"{_kind}-{_name}"] = _fault


def _asked(work: Path, kills: int, seed: int, number: int) -> Result:
    quicken()
    total = Result()
    for name, case in CASES.items():
        place = work / name
        place.mkdir()
        found = signal_at_random(case(place), place, number, min(ASKED, kills), seed)
        total.tried += found.tried
        total.problems += found.problems
        total.seen = dict(Counter(total.seen) + Counter(found.seen))
    return total


def interrupted(work: Path, kills: int, seed: int) -> Result:
    """SIGINT (Ctrl-C) at random moments in `fit`, `learn-circuit`, `export` and `explore`

    exit code 130, or 0 where there was something to keep; no traceback, nothing left behind; the same command completes
    """
    return _asked(work, kills, seed, signal.SIGINT)


def terminated(work: Path, kills: int, seed: int) -> Result:
    """SIGTERM at random moments in `fit`, `learn-circuit`, `export` and `explore`

    it ends by the signal; every file is whole; the same command completes
    """
    return _asked(work, kills, seed, signal.SIGTERM)


def _quick(fault):
    def quicker(work: Path, kills: int, seed: int) -> Result:
        quicken()
        return fault(work, kills, seed)

    quicker.__doc__ = fault.__doc__
    return quicker


FAULTS |= {
    "interrupt": interrupted,
    "terminate": terminated,
    "full-disk": _quick(full_disk),
    "full-disk-explore": _quick(full_disk_explore),
    "read-only": _quick(read_only_directory),
    "closed-pipe": closed_pipe,
    "input-gone": input_gone,
    "input-cut": input_cut,
    "torn-journal": _quick(torn_journal),
    "two-searches": _quick(two_searches),
    "worker-lost": worker_lost,
    "dask-worker-lost": dask_worker_lost,
    "server-restarted": server_restarted,
    "clock-jump": clock_jump,
}
