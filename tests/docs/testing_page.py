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

*How the package is tested, and how well: every figure here was measured.*

<!-- Written by tests/docs/testing_page.py from tests/coverage.json and the results of tests/mutation, fuzz, faults. -->

    make test        # the tests, but for the exhaustive ones
    make test-all    # all tests
    make coverage    # all tests, counting lines and branches; fails below 95 %
    make mutation    # faults planted in the code: do the tests notice?
    make peers       # the same questions to other people's code

- **Oracles.** A routine is compared with another way to the same answer: brute force over all assignments, numbers
  worked out by hand, Python's own integers of any size, the formula of the paper, a compiler and an emulator for
  generated code. `tests/helpers/zoo.py` holds networks whose answers are known as fractions.
- **Properties.** [Hypothesis](https://hypothesis.readthedocs.io) draws tables, formats, networks and files; its draws
  are fixed, so that a test fails today or never.
- **Real data.** Tests that need public data sets read the directory in `TINYBAYES_DATA` and are skipped without it.
- **Other people's code.** `tests/peers` asks pyAgrum, pgmpy, Orange, scikit-learn and onnxruntime the same questions.
- **Fuzzing.** {fuzz} See [Fuzzing](fuzzing.md).
- **Faults.** {faults} See [Faults tried](faults.md).

## Coverage

{coverage}

Functions compiled by Numba run as machine code, which nothing can trace; they are left out of the count, and their
results are compared with oracles like all others. Processes that tests start are counted, unless they are killed.

| part | statements | lines reached | branches reached |
|---|---:|---:|---:|
{rooms}

## Mutation

A test suite is worth what it notices. `tests/mutation/run.py` plants one small fault at a time in `model/`, `cost/` and
`deploy/` (a comparison, an operator, a constant one higher or lower, a condition turned round, `min` for `max`, a slice
without its end, nothing returned, a statement or a `raise` removed), runs the tests that reach the place, and sees
whether one of them fails. Texts, default values and code outside functions are left alone. Mutants are drawn by a fixed
seed, a share of every file.

| part | possible | drawn | killed | survived | equivalent | killed of those that count |
|---|---:|---:|---:|---:|---:|---:|
{mutation}

Parts are drawn more or less densely; if each counts by its size, **{weighted} %** of all possible mutants are killed.
{about} Equivalent mutants are faults that cannot change any answer; each was read, and stands with its reason in
`tests/mutation/equivalent.json`. The survivors, and the figures of every file, are in `tests/mutation/results.json`;
most change how generated code is laid out, how much room it takes or how the fastest way is estimated, and no answer.

Tests were written for survivors of this sample, so that its figures flatter. {fresh}
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


def _mutation_row(name: str, found: dict[str, Any]) -> str:
    numbers = [f"{found[key]:,}" for key in ("possible", "drawn", "killed", "survived", "equivalent")]
    return f"| {name} | {' | '.join(numbers)} | {found['killed_percent']} % |"


def _weighted(found: dict[str, Any]) -> float:
    """Return the share of all possible mutants that are killed, as the samples of the parts tell it."""
    known = _read("mutation/results.json")["parts"]
    parts = [found["parts"].get(name, part) for name, part in known.items()]
    return sum(part["killed_percent"] * part["possible"] for part in parts) / sum(part["possible"] for part in parts)


def page() -> str:
    """Return the text of the page."""
    coverage, mutation = _read("coverage.json"), _read("mutation/results.json")
    fuzz, faults = _read("fuzz/results.json"), _read("faults/results.json")
    inputs = sum(found["inputs"] for found in fuzz["readers"].values())
    held = sum(found["outcome"] == "held" for found in faults["faults"].values())
    total = coverage["total"]
    lines = _share(total["covered_lines"], total["num_statements"])
    branches = _share(total["covered_branches"], total["num_branches"])
    rows = [
        f"| `{room}` | {found['num_statements']:,} | {_share(found['covered_lines'], found['num_statements'])} "
        f"| {_share(found['covered_branches'], found['num_branches'])} |"
        for room, found in coverage["rooms"].items()
    ]
    rooms = [_mutation_row(f"`{room}`", found) for room, found in mutation["parts"].items()]
    new = _read("mutation/fresh.json")
    parts = ", ".join(
        f"{found['killed_percent']} % of {found['drawn']} of `{part}`" for part, found in new["parts"].items()
    )
    kinds = f"{held} of {len(faults['faults'])} kinds of fault did no harm"
    figures = f"{lines} of {total['num_statements']:,} statements, {branches} of {total['num_branches']:,} branches"
    minutes = sum(mutation["seconds"].values()) / 60
    return TEXT.format(
        fuzz=f"Every reader of files gets damaged inputs, {inputs:,} in the last run.",
        faults=f"Kills, full disks and lost workers are brought about for real; {kinds}.",
        coverage=f"The suite reaches **{total['percent_covered']:.1f} %** of lines and branches together: {figures} "
        f"(coverage.py {coverage['coverage']}, {coverage['date']}).",
        rooms="\n".join(rows),
        mutation="\n".join([*rooms, _mutation_row("all", mutation["all"])]),
        fresh=f"Of another, drawn afterwards with seed {new['seed']}, they kill {parts}; counted by size "
        f"(`cost` as above) {_weighted(new):.0f} % of all possible ones. No equivalent mutants were looked for in it.",
        weighted=f"{_weighted(mutation):.0f}",
        about=f"Of those killed, {mutation['timeouts']} were killed by a test that did not end. The run took "
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
