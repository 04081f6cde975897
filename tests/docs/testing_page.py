"""Write docs/testing.md from the results of coverage, mutation, fuzzing and faults.

python tests/docs/testing_page.py [--coverage build/coverage/coverage.json]
"""

import argparse
import json
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "testing.md"
TEXT = """# Testing

*How the package is tested, and how well. Every number here was measured.*

<!-- Written by tests/docs/testing_page.py from tests/coverage.json and the results of tests/mutation, fuzz, faults. -->

    make test        # all tests except the exhaustive ones
    make test-all    # all tests, the exhaustive ones included; CI runs a fifth of those
    make whole       # more cases of the exhaustive tests, before a release
    make test-oldest # all tests except the exhaustive ones, with the oldest versions that pyproject.toml allows
    make coverage    # all tests, counting lines and branches; fails below 95 %
    make mutation    # plants faults in the code: do the tests notice?
    make peers       # compares our answers with those of other libraries

- **Oracles.** Every routine is compared with an independent way to the same answer: brute force over all assignments,
  numbers worked out by hand, Python's unbounded integers, the formula of the paper, or a compiler and an emulator for
  generated code. `tests/helpers/zoo.py` holds networks whose answers are known as fractions.
- **Properties.** [Hypothesis](https://hypothesis.readthedocs.io) draws tables, formats, networks and files. Its seeds
  are fixed, so tests are reproducible.
- **Real data.** Tests that need public data sets read them from `TINYBAYES_DATA` and are skipped without it.
- **Other libraries.** `tests/peers` compares our answers with pyAgrum, pgmpy, Orange, scikit-learn and onnxruntime.
- **Fuzzing.** {fuzz} See [Fuzzing](fuzzing.md).
- **Hostile rows.** {raw_rows} See [Fuzzing](fuzzing.md#raw-rows).
- **Gaps.** `tests/deploy/programs/test_contract_gaps.py` exports 75 Bayesian classifiers, 32 neural nets and 12
  tree ensembles to C, C++, Arduino, MicroPython and ONNX, and gives them rows with gaps in 5 % of the entries, raw and
  (with `make whole`) coded: every label and score is that of Python. `tests/deploy/test_raw_tables.py` does this in C
  with 12 real tables.
- **Faults.** {faults} See [Faults tried](faults.md).

## Coverage

{coverage}

Functions compiled by Numba run as machine code, which cannot be traced. They are excluded from the count, and their
results are compared with oracles like all others. Processes that tests start are counted, unless they are killed.

| part | statements | lines covered | branches covered |
|---|---:|---:|---:|
{rooms}

## Mutation

Does the suite notice faults? `tests/mutation/run.py` plants one small fault at a time in `model/`, `cost/`,
`deploy/`, `data/`, exact inference, inference in integers, and the learners of trees and of latent trees: a changed
comparison or operator, a constant one higher or lower, a negated condition, `min` for `max`, a slice without its end, a
missing return value, a removed statement or `raise`. It then runs the tests that reach the line and checks whether one
of them fails. Strings, default values and code outside functions stay unchanged. A fixed seed draws a share of the
mutants of every file.

| part | possible | drawn | killed | survived | equivalent | killed, without equivalent ones | run |
|---|---:|---:|---:|---:|---:|---:|---|
{mutation}

The parts are sampled at different rates. Weighted by size, **{weighted} %** of all possible mutants are killed. {about}
Equivalent mutants cannot change any answer, or change only how long it takes; each was inspected and is listed with
its reason in `tests/mutation/equivalent.json`. `tests/mutation/results.json` lists the survivors and the numbers of
every file. Most survivors change the layout or size of generated code, an estimate, or a message, but no answer.

The column "run" tells when a part was run last, at which commit, and with which share of its sample if not all of it.
Tests are then written for survivors, and only these are tried again: a mutant that was killed at an earlier commit
stays killed. Seconds are those of a machine with other work.

Each mutant is a fork of a process that has run the tests. Those of latent trees train with JAX, whose threads do not
survive a fork: there the process has only collected the tests, and each mutant compiles what it trains. No faults are
planted in the other code that trains with JAX.

Tests were written for survivors of this sample, so its numbers are optimistic. {fresh}
"""


def _read(name: str) -> dict[str, Any]:
    return json.loads((TESTS / name).read_text(encoding="utf-8"))


def summarize(coverage: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of coverage for the whole package and for each of its rooms."""
    sums: dict[str, dict[str, int]] = {}
    keys = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    for file, found in coverage["files"].items():
        parts = Path(file).parts
        inside = parts[parts.index("tinybayes") + 1 :]
        room = inside[0] if len(inside) > 1 else "files of the root"
        into = sums.setdefault(room, dict.fromkeys(keys, 0))
        for key in keys:
            into[key] += found["summary"][key]
    total = {key: coverage["totals"][key] for key in (*keys, "percent_covered")}
    about = {"date": coverage["meta"]["timestamp"][:10], "coverage": coverage["meta"]["version"]}
    return about | {"total": total, "rooms": dict(sorted(sums.items()))}


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _mutation_row(name: str, found: dict[str, Any], when: str) -> str:
    numbers = [f"{found[key]:,}" for key in ("possible", "drawn", "killed", "survived", "equivalent")]
    return f"| {name} | {' | '.join(numbers)} | {found['killed_percent']} % | {when} |"


def _weighted(found: dict[str, Any]) -> float:
    """Return the share of all possible mutants of the parts that are killed, as their samples tell it."""
    sizes = {name: part["possible"] for name, part in _read("mutation/results.json")["parts"].items()}
    parts = found["parts"].items()
    return sum(part["killed_percent"] * sizes[name] for name, part in parts) / sum(sizes[name] for name, _ in parts)


def page() -> str:
    """Return the text of the page."""
    coverage, mutation = _read("coverage.json"), _read("mutation/results.json")
    fuzz, faults = _read("fuzz/results.json"), _read("faults/results.json")
    raw = fuzz["raw_rows"]["gcc"]
    inputs = sum(found["inputs"] for found in fuzz["readers"].values())
    later = sum(found["inputs"] for again in fuzz["again"] for found in again["readers"].values())
    held = sum(found["outcome"] == "held" for found in faults["faults"].values())
    total = coverage["total"]
    lines = _share(total["covered_lines"], total["num_statements"])
    branches = _share(total["covered_branches"], total["num_branches"])
    rows = [
        f"| `{room}` | {found['num_statements']:,} | {_share(found['covered_lines'], found['num_statements'])} "
        f"| {_share(found['covered_branches'], found['num_branches'])} |"
        for room, found in coverage["rooms"].items()
    ]
    run_on = mutation.get("when", {})
    rooms = [
        _mutation_row(f"`{room}`", found, run_on.get(room, "2026-11-17")) for room, found in mutation["parts"].items()
    ]
    new = _read("mutation/fresh.json")
    parts = ", ".join(
        f"{found['killed_percent']} % of {found['drawn']} of `{part}` ({found.get('when', new['date'][:10])})"
        for part, found in new["parts"].items()
    )
    kinds = f"{held} of {len(faults['faults'])} kinds of faults did no harm"
    figures = f"{lines} of {total['num_statements']:,} statements, {branches} of {total['num_branches']:,} branches"
    minutes = sum(mutation["seconds"].values()) / 60
    return TEXT.format(
        fuzz=f"Every file reader gets damaged inputs, {inputs:,} in the largest run, and "
        f"{later:,} in {len(fuzz['again'])} later ones.",
        raw_rows=f"{raw['programs']} exported classifiers got {raw['rows_of_each']:,} raw rows each under sanitizers: "
        f"any bits, and values next to all cut points. There were {raw['mismatches']} mismatches with Python, and "
        f"{raw['reports']} reports of sanitizers.",
        faults=f"Tests kill processes, fill disks and lose workers for real; {kinds}.",
        coverage=f"The suite covers **{total['percent_covered']:.1f} %** of lines and branches together: {figures} "
        f"(coverage.py {coverage['coverage']}, {coverage['date']}).",
        rooms="\n".join(rows),
        mutation="\n".join([*rooms, _mutation_row("all", mutation["all"], "")]),
        fresh=f"In other samples, drawn afterwards with seed {new['seed']}, they killed {parts}; weighted by size, "
        f"{_weighted(new):.0f} % of all possible mutants of these parts. No equivalent ones were looked for there.",
        weighted=f"{_weighted(mutation):.0f}",
        about=f"Of the killed mutants, {mutation['timeouts']} were killed by a test that did not end. The run took "
        f"{minutes:.0f} minutes on two shared cores (Python {mutation['python']}, {mutation['date'][:10]}).",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--coverage", type=Path, help="what `make coverage` has written; its figures are kept")
    arguments = parser.parse_args()
    if arguments.coverage:
        found = summarize(json.loads(arguments.coverage.read_text(encoding="utf-8")))
        (TESTS / "coverage.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
