"""Running tests on mutants: each in a fork of a process that has collected the tests and run them once.

Where tests train with JAX, the process has only collected them: JAX starts threads with its first array, and a fork
takes no threads along. There the tests are traced in a fork, too.
"""

import functools
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest
from _pytest.runner import runtestprotocol
from mutants import Mutant

SECONDS = 30.0  # of tests for one mutant; those beyond them are not tried
QUICK = 1.0  # seconds of a test that builds nothing
COMPILING = 60.0  # seconds that a test may take to compile what a mutant has changed
MEMORY = 8 << 30  # bytes that a mutant may claim
ALLOCATOR = "jemalloc_bg_thd"  # a thread that Arrow brings along; a fork does without it
SURVIVED, KILLED = 0, 1


@dataclass
class Work:
    """Tests to run in a fork, after a change; `whole` goes on after a failure. Filled in: outcome and times."""

    tests: list[str]
    change: Callable[[], None] | None = None
    whole: bool = False
    outcome: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # of the tests that passed


class Tests:
    """A pytest plugin that runs every test once, and hands itself on in place of the end of the session.

    With `trains`, it runs no test in its own process, so that this has a single thread.
    """

    def __init__(self, source: Path, processes: int, then: Callable[["Tests"], None], *, trains: bool = False) -> None:
        self.source, self.processes, self.then, self.trains = source, processes, then, trains
        self.items: dict[str, pytest.Item] = {}
        self.reached: dict[str, dict[int, list[str]]] = {}  # file, line, names of tests
        self.seconds: dict[str, float] = {}  # of the tests that pass in a fork as well
        self.slowest: dict[str, float] = {}  # of each module, whose first test may build what all of them use
        self.ran = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests: once here, traced; once in forks, to see that they work there; then the mutants."""
        self.items = {item.nodeid: item for item in session.items}
        modules: dict[str, list[str]] = {}
        for name in self._trace_in_fork() if self.trains else self._trace():
            modules.setdefault(_module(name), []).append(name)
        _say(f"traced {len(self.items)} tests")
        for module, done in in_forks({name: Work(tests, whole=True) for name, tests in modules.items()}, self):
            self.seconds |= done.seconds
            self.slowest[module] = max(done.seconds.values(), default=0.0)
        _say(f"{len(self.seconds)} tests usable, {len(self.left_out)} not: {self.left_out[:20]}")
        self.then(self)
        self.ran = True
        return True

    @property
    def left_out(self) -> list[str]:
        """The tests that were skipped, or do not work in a fork."""
        return sorted(set(self.items) - set(self.seconds))

    def _trace(self) -> list[str]:
        """Run all tests, remember which lines each of them reaches, and return the names of those that pass."""
        tracer = coverage.Coverage(data_file=None, config_file=False, source=[str(self.source)])
        names, passed = list(self.items), []
        tracer.start()
        for name, following in zip(names, [*names[1:], None], strict=True):
            tracer.switch_context(name)
            after = self.items[following] if following else None
            if self.trains and "jax" in sys.modules:
                sys.modules["jax"].clear_caches()  # lines of a compiled function are reached only when it is traced
            if all(report.passed for report in runtestprotocol(self.items[name], nextitem=after, log=False)):
                passed.append(name)
        tracer.stop()
        data = tracer.get_data()
        self.reached = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        return passed

    def _trace_in_fork(self) -> list[str]:
        """Trace the tests in a fork, and return the names of those that pass."""
        threads = {task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")}
        threads -= {Path("/proc/self/comm").read_text().strip(), ALLOCATOR}
        if threads:
            raise SystemExit(f"expected one thread before the tests are run, found {threads}: who starts them?")
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report"
            pid = os.fork()
            if pid == 0:
                try:
                    passed = self._trace()
                    report.write_text(json.dumps([passed, self.reached]), encoding="utf-8")
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
            passed, reached = json.loads(report.read_text(encoding="utf-8"))
        self.reached = {file: {int(line): names for line, names in lines.items()} for file, lines in reached.items()}
        return passed

    def reaching(self, path: Path, lines: tuple[int, int]) -> list[str]:
        """Return the tests that reach any of the lines, module by module, the fastest first, as far as time allows."""
        by_line = self.reached.get(str(path), {})
        names = {name for line in range(lines[0], lines[1] + 1) for name in by_line.get(line, ())}
        names |= {other for name in names for other in self._users(name)}
        if self.trains:
            return self._fastest(names)
        modules: dict[str, list[str]] = {}
        for name in self.items:
            if name in names and name in self.seconds:
                modules.setdefault(_module(name), []).append(name)
        cost = {module: sum(self.seconds[name] for name in found) for module, found in modules.items()}
        chosen, total = [], 0.0
        for module in sorted(modules, key=lambda module: (cost[module], module)):
            for name in modules[module]:
                total += self.seconds[name]
                if total <= SECONDS or not chosen:
                    chosen.append(name)
        return chosen

    def _fastest(self, names: set[str]) -> list[str]:
        """Return tests that share no fixtures in the order of their seconds, as far as time allows."""
        chosen, total = [], 0.0
        for name in sorted(names & self.seconds.keys(), key=lambda name: (self.seconds[name], name)):
            total += self.seconds[name]
            if total <= SECONDS or not chosen:
                chosen.append(name)
        return chosen

    def _users(self, name: str) -> list[str]:
        """Return the quick tests after a test that look at what it has built: those with a fixture of the module."""
        shared = self._shared(name)
        names = list(self.items)
        found = []
        for other in names[names.index(name) + 1 :] if shared else []:
            if not shared & self._shared(other) or self.seconds.get(other, 0.0) > QUICK:
                break
            found.append(other)
        return found

    @functools.cache  # noqa: B019 - there is one, for as long as the process
    def _shared(self, name: str) -> frozenset[str]:
        """Return the fixtures of a test that are made once for all tests of its module."""
        fixtures = self.items[name]._fixtureinfo.name2fixturedefs.items()
        return frozenset(f"{_module(name)} {key}" for key, found in fixtures if found[-1].scope == "module")

    def limit(self, name: str) -> float:
        """Return the seconds after which a test has hung."""
        if self.trains:
            return COMPILING + 10 * self.seconds.get(name, 60.0)
        return 20 + 10 * self.slowest.get(_module(name), 60.0)


def run_mutants(found: list[Mutant], tests: Tests) -> Iterator[tuple[str, str]]:
    """Yield the key and the outcome of each mutant; those that no test reaches are uncovered."""
    if tests.trains:  # no test has imported them yet
        for file in {mutant.file for mutant in found}:
            importlib.import_module(f"{tests.source.name}.{file.removesuffix('.py').replace('/', '.')}")
    functions = _functions(tests.source)
    work = {}
    for mutant in found:
        path, code = tests.source / mutant.file, mutant.code
        assert code is not None
        names = tests.reaching(path, mutant.lines)
        originals = functions.get((str(path), code.co_qualname, code.co_firstlineno), [])
        if names and originals:
            work[mutant.key] = Work(names, functools.partial(_exchange, originals, code))
        else:
            yield mutant.key, "uncovered"
    started = time.monotonic()
    for count, (key, done) in enumerate(in_forks(work, tests), 1):
        if count % 25 == 0 or done.outcome != "killed":
            _say(f"{count}/{len(work)} {time.monotonic() - started:.0f} s {done.outcome} {key}")
        yield key, done.outcome


def in_forks(work: dict[str, Work], tests: Tests) -> Iterator[tuple[str, Work]]:
    """Run each piece of work in a fork of its own, several at a time, and yield it when it is done."""
    caches = [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)]
    caches = [cache for cache in caches if str(getattr(cache, "__module__", "")).startswith("tinybayes")]
    waiting, running = list(work)[::-1], {}
    while waiting or running:
        while waiting and len(running) < tests.processes:
            name, folder = waiting.pop(), tempfile.mkdtemp(prefix="mutant")
            pid = os.fork()
            if pid == 0:
                _child(work[name], tests, caches, folder)
            running[pid] = name, folder
        pid, status = os.wait()
        if pid not in running:
            continue
        name, folder = running.pop(pid)
        _end_group(pid)
        done, report = work[name], Path(folder) / "report"
        stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        done.outcome = "timeout" if stopped else "survived" if status == SURVIVED else "killed"
        done.seconds = json.loads(report.read_text()) if report.exists() else {}
        shutil.rmtree(folder, ignore_errors=True)
        yield name, done


def _child(work: Work, tests: Tests, caches: list, folder: str) -> None:
    """Run tests in a fork until one fails; never return."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process even in the middle of a kernel
    threading.Thread(target=_watch_memory, daemon=True).start()
    items = [tests.items[name] for name in work.tests]
    items[0].config._tmp_path_factory._basetemp = Path(folder).resolve()
    for cache in caches:
        cache.cache_clear()
    if work.change is not None:
        work.change()
    seconds = {}
    try:
        for item, following in zip(items, [*items[1:], None], strict=True):
            started = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, tests.limit(item.nodeid))
            passed = all(report.passed for report in runtestprotocol(item, nextitem=following, log=False))
            if passed:
                seconds[item.nodeid] = time.monotonic() - started
            elif not work.whole:
                os._exit(KILLED)
        if work.whole:
            (Path(folder) / "report").write_text(json.dumps(seconds))
    except BaseException:  # whatever a mutant does to pytest itself
        os._exit(KILLED)
    os._exit(SURVIVED)


def _watch_memory() -> None:
    """End the process when it claims too much; a limit of the system would stop the sanitizers of compiled code too."""
    while True:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        if resident > MEMORY:
            os._exit(KILLED)
        time.sleep(0.2)


def _exchange(originals: list[FunctionType], code: CodeType) -> None:
    for function in originals:
        function.__code__ = code


def _functions(source: Path) -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return the live functions of the package, by file, name and line: methods and decorated ones as well."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(str(source)):
            code = function.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(function)
    return found


def _module(name: str) -> str:
    return name.split("::")[0]


def _end_group(pid: int) -> None:
    """End what a mutant has started and left behind."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
