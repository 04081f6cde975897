"""Write docs/fuzzing.md from the results: python tests/fuzz/page.py [RESULTS] [PAGE]."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TEXT = """# Fuzzing

*Every reader of the package gets damaged and hostile inputs. It may raise only `tinybayes.errors.TinybayesError`.*

<!-- Written by tests/fuzz/page.py from tests/fuzz/results.json; do not edit. -->

Inputs are mutations of small files that the package itself wrote. Words, numbers, lines and bytes are changed,
repeated thousands of times, removed or copied from elsewhere. The structure of JSON is changed. Model files get a
correct checksum again, so that the damage reaches the code behind it. A finding is any other exception, five seconds
of CPU time for one input, a gigabyte of memory, or a crash. Accepted inputs must be sound: models are priced and
scored, and some are written and read again, which must give the same model; tables must not lose rows.

| reader | inputs | accepted | refused | findings | inputs/s | slowest, ms |
|---|---:|---:|---:|---:|---:|---:|
{rows}

{machines}{notes}

    python tests/fuzz/run.py --processes 16 --count 1000000 -o tests/fuzz/results.json

Every input is a function of the seed and its index, so findings, which are stored beside the results, can be
reproduced. `tests/fuzz/fuzz_checks.py` runs a few hundred inputs of every reader, and shows with planted faults that
an escaped exception, a hang, excessive memory and a crash are detected. `tests/fuzz/test_findings.py` holds
regression tests for earlier findings.

{again}
## Generated C

{models}

    python tests/fuzz/models.py --count 1000 -o tests/fuzz/results.json

{others}

## Raw rows

{raw_rows}

    python tests/fuzz/raw_rows.py --rows 1000000 -o tests/fuzz/results.json
    python tests/fuzz/raw_rows.py --rows 20000 --compiler clang -o tests/fuzz/results.json

Half of the classifiers are exported with the code for missing values where their structure has it, half without. They
are naive Bayes, forests, general networks, networks with tree CPDs, dense and convolutional neural nets, in fixed
point, codebooks and floats. Features have cut points (shared by several features, of 8, 16 and 32 bits), grids,
integers and categories of 1 to 1,000 states. A row holds values within the range, values next to cut points, any bits
of a float (NaNs of all payloads, infinities, denormals, negative zero) or any 32-bit integer. Rows and codes lie in
memory of exactly their size, so that a read beyond them is reported. Without the code for missing values, a missing
value may get any state, and the label must be that of Python for these states. `tests/fuzz/test_raw_rows.py` plants
faults in programs: the comparison and the sanitizers notice them.

Findings, all fixed: a missing value of a feature with a single interval was taken for known where no feature had a cut
point. Grids whose cut points are no float32, integers from 2**24 on as floats, and cut points of floats beyond 2**24
for integers had other codes in Python than on a device; they are refused now. The self-test tried the lowest interval
of 32-bit integers with the integer that stands for a missing value. The run with gcc came before this last fix.
"""


def _row(name: str, found: dict[str, Any]) -> str:
    numbers = [f"{found[key]:,}" for key in ("inputs", "accepted", "refused")]
    bad = sum(found["findings"].values())
    return f"| {name} | {' | '.join(numbers)} | {bad} | {found['inputs_per_second']:,} | {found['slowest_ms']:g} |"


def _machines(readers: dict[str, dict[str, Any]]) -> str:
    """Say what the readers ran on, once for each machine and setting."""
    texts = {}
    for found in readers.values():
        about = found["machine"]
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items() if number)
        text = f"{found['processes']} processes on {about['cores']} cores, Python {about['python']}, {versions}"
        texts[text] = texts.get(text, 0.0) + found["seconds"]
    return " ".join(f"{text}: {seconds:,.0f} s in total." for text, seconds in texts.items())


def _models(found: dict[str, Any]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kinds"].items())
    return (
        f"{found['models']:,} random models ({kinds}) were exported to C, built by {found['compiler']} with all "
        f"warnings as errors and `{found['flags']}`, and run on {found['rows']:,} rows: **{found['mismatches']} "
        f"mismatches** with Python in {found['seconds']:.0f} s. Integers are compared to the last bit, floats within "
        "the bound that the code states."
    )


def _raw_rows(runs: dict[str, dict[str, Any]]) -> str:
    """Say what each compiler's run came to."""
    texts = []
    for found in runs.values():
        texts.append(
            f"{found['programs']} classifiers that take raw rows were built by {found['compiler']} with "
            f"`{found['flags']}`. Each got {found['rows_of_each']:,} rows: {found['rows']:,} in all, "
            f"{found['complete']:,} of them complete, {100 * found['missing'] / found['entries']:.0f} % of the values "
            f"missing or unknown. {found['code_rows']:,} rows of codes came on top; in the "
            f"{found['programs_with_gaps']} programs that take missing values some codes are no states. Compared were "
            f"{found['compared']}: **{found['mismatches']} mismatches, {found['reports']} reports** of sanitizers in "
            f"{found['seconds']:,.0f} s on {found['machine']['cores']} shared cores ({found['machine']['date'][:10]}, "
            f"seed {found['seed']})."
        )
    return "\n\n".join(texts)


def _again(runs: list[dict[str, Any]]) -> str:
    """Say what later, shorter runs came to."""
    tables = "\n".join(map(_table_of, runs))
    return f"""## Repeated

{tables}
`tb-density` compares integers of latent circuits with their likelihoods, `tb-encodings` gives hostile values to all
encodings and looks at exported JavaScript, `join-tree` compares a join tree with a circuit, and `lightgbm` and
`xgboost` damage files that these libraries wrote.
"""


def _table_of(found: dict[str, Any]) -> str:
    readers = found["readers"]
    rows = "\n".join(
        f"| {name} | {one['inputs']:,} | {one['accepted']:,} | {sum(one['findings'].values())} |"
        for name, one in readers.items()
    )
    inputs = sum(one["inputs"] for one in readers.values())
    bad = sum(sum(one["findings"].values()) for one in readers.values())
    run, more = f"seed {found['seed']}, commit {found['commit']}", ""
    if "models" in found:
        c = found["models"]
        counts = f"{c['models']:,} random C programs, {c['rows']:,} rows"
        more = f"With the same seed, {counts}: **{c['mismatches']} mismatches**.\n"
    if "others" in found:
        o = found["others"]
        counts = ", ".join(f"{count} {kind}" for kind, count in o["models"].items())
        more += f"{counts}, {o['rows_of_each']} rows each: **{len(o['mismatches'])} mismatches**.\n"
    if "raw_rows" in found:
        r = found["raw_rows"]
        counts = (
            f"{r['programs']} classifiers that take raw rows, {r['rows_of_each']:,} rows each, and {r['code_rows']:,}"
        )
        more += f"{counts} rows of codes: **{r['mismatches']} mismatches, {r['reports']} reports** of sanitizers.\n"
    return f"""Readers were run again on a later state, with other inputs ({run},
{found["machine"]["date"][:10]}): {inputs:,} inputs, **{bad} findings**. {found["note"]}

| reader | inputs | accepted | findings |
|---|---:|---:|---:|
{rows}

    {found["command"]}

{more}"""


def _others(found: dict[str, Any] | None) -> str:
    """Say what random densities, trees and JavaScript came to."""
    if found is None:
        return ""
    counts = ", ".join(f"{count} {kind}" for kind, count in found["models"].items())
    return (
        f"Random models of other kinds ({counts}), {found['rows_of_each']} rows each: **{len(found['mismatches'])} "
        f"mismatches** ({found['machine']['date'][:10]}, seed {found['seed']}, {found['seconds']:.0f} s on a loaded "
        "machine). Alarms, gaps and hostile codes are among the rows; JavaScript runs in Node.js.\n\n"
        "    python tests/fuzz/other_models.py --count 100 -o tests/fuzz/results.json"
    )


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    readers = results["readers"]
    rows = "\n".join(_row(name, found) for name, found in readers.items())
    notes = "".join(f"\n\nNote on {name}: {found['note']}" for name, found in readers.items() if "note" in found)
    raw_rows, models = _raw_rows(results["raw_rows"]), _models(results["c_models"])
    again, others = _again(results.get("again", [])), _others(results.get("other_models"))
    return TEXT.format(
        again=again,
        others=others,
        rows=rows,
        machines=_machines(readers),
        notes=notes,
        models=models,
        raw_rows=raw_rows,
    )


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results.json"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent.parent / "docs" / "fuzzing.md"
    target.write_text(page(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
