"""A damaged journal: what is damaged is skipped and counted, and no finished run is lost that is still there."""

import json
import warnings

import pytest
from sklearn.datasets import load_iris

from tinybayes import TinybayesError
from tinybayes.errors import TinybayesWarning
from tinybayes.search.budget import Budget
from tinybayes.search.families import FAMILIES
from tinybayes.search.families.family import Effort
from tinybayes.search.prepare import make_views
from tinybayes.search.study import Store
from tinybayes.search.trials import carry_out

TREES = [{"family": "tree", "leaves": leaves} for leaves in (2, 4, 8)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A journal of three runs that were claimed, and of one that was drawn."""
    directory = tmp_path_factory.mktemp("whole")
    views = make_views(load_iris(as_frame=True).frame, "target")
    store = opened(directory)
    number, setting = store.ask("naive", FAMILIES["naive"].space(views), {})
    store.drop(number)
    outcomes = carry_out(views, TREES, Effort(1))
    for number, outcome in zip(store.claim(TREES, 0, {}), outcomes, strict=True):
        store.tell(number, outcome, 0)
    number, _ = store.ask("naive", FAMILIES["naive"].space(views), {})
    store.tell(number, outcomes[0].__class__(**{**vars(outcomes[0]), "setting": {**setting, "seed": 1}}), 0)
    lines = (directory / "search.journal").read_bytes().splitlines(keepends=True)
    assert len(store.runs) == 4
    return lines, store.runs


def opened(directory):
    return Store(directory, None, {"table": "t"}, Budget(), 0)


def malformed(line, **changes):
    return json.dumps(json.loads(line) | changes).encode() + b"\n"


def bad_run(line):
    log = json.loads(line)
    if "run" in log.get("user_attr", {}):
        del log["user_attr"]["run"]["price"]
    return json.dumps(log).encode() + b"\n"


DAMAGES = {
    "garbage": lambda line: b"\xff\x80!{garbage\n",
    "zeros": lambda line: bytes(len(line) - 1) + b"\n",
    "empty": lambda line: b"\n",
    "half": lambda line: line[: len(line) // 2] + b"\n",
    "another end": lambda line: b"x" * (len(line) // 2) + line[len(line) // 2 :],
    "operation": lambda line: malformed(line, op_code=99),
    "deletion": lambda line: malformed(line, op_code=1),
    "no worker": lambda line: malformed(line, worker_id=None),
    "trial": lambda line: malformed(line, trial_id=["x"], study_id="x"),
    "attributes": lambda line: malformed(
        line, user_attr=[1], user_attrs=7, distribution="{}", directions=[9], state=77
    ),
    "list": lambda line: b"[1, 2]\n",
    "nested": lambda line: b"[" * 100_000 + b"\n",
    "run": bad_run,
}


def of_all_kinds(lines):
    """The numbers of lines of all kinds, one for each."""
    kinds = {}
    for number, log in enumerate(map(json.loads, lines)):
        kinds[log["op_code"], *log.get("user_attr", {}), log.get("state")] = number
    return kinds.values()


def check(directory, lines, runs, damaged):
    """Open a journal of which some lines are damaged: those runs are there whose own line is still there."""
    (directory / "search.journal").write_bytes(b"".join(lines))
    text = b"".join(line for number, line in enumerate(lines) if number not in damaged)
    expected = {key for key in runs if b'"run"' in text and f'"key":"{key}"'.encode() in text.replace(b": ", b":")}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store = opened(directory)
    assert set(store.runs) == expected
    assert all(store.runs[key] == runs[key] for key in expected)
    return store, [str(one.message) for one in told if issubclass(one.category, TinybayesWarning)]


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_line_may_be_damaged(tmp_path, whole, kind):
    lines, runs = whole
    for number in range(len(lines)) if kind == "zeros" else of_all_kinds(lines):
        line = lines[number]
        damaged = [*lines[:number], DAMAGES[kind](line), *lines[number + 1 :]]
        if damaged[number] == json.dumps(json.loads(line)).encode() + b"\n":  # this line has no run
            continue
        store, told = check(tmp_path, damaged, runs, {number})
        kept = {"run": range(10), "trial": (0,), "attributes": (3, 9)}.get(kind, ())  # operations it does no harm
        if json.loads(line)["op_code"] not in kept:
            assert any("1 damaged line was skipped" in text for text in told), (number, line)
        for trial in store.study.get_trials():  # no value went to another trial
            if "run" in trial.user_attrs and trial.values:
                assert trial.values[0] == trial.user_attrs["run"]["error"]
        again = store.claim(TREES, 0, {})  # what was lost can be done again, what is there is not
        assert [one is None for one in again] == [any(r.setting == s for r in store.runs.values()) for s in TREES]


@pytest.mark.filterwarnings("ignore::tinybayes.errors.TinybayesWarning")
def test_several_lines_may_be_damaged_and_the_search_goes_on(tmp_path, whole):
    lines, runs = whole
    for first in range(0, len(lines), 3):
        damaged = [b"\0\0\n" if number % 7 == first % 7 and number > 2 else line for number, line in enumerate(lines)]
        broken = {number for number, line in enumerate(damaged) if line == b"\0\0\n"}
        store, told = check(tmp_path, damaged, runs, broken)
        assert any(f"{len(broken)} damaged lines were skipped" in text for text in told)
        number, _ = store.ask(
            "naive", FAMILIES["naive"].space(make_views(load_iris(as_frame=True).frame, "target")), {}
        )
        store.drop(number)
        assert set(opened(tmp_path).runs) == set(store.runs)


def test_the_meaning_of_runs_is_never_guessed(tmp_path, whole):
    lines, _ = whole
    damaged = [b"?\n" if b'"table"' in line else line for line in lines]
    (tmp_path / "search.journal").write_bytes(b"".join(damaged))
    with pytest.raises(TinybayesError, match="does not tell whose its runs are"):
        opened(tmp_path)
