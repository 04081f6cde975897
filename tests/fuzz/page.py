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

## Generated C

{models}

    python tests/fuzz/models.py --count 1000 -o tests/fuzz/results.json
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


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    readers = results["readers"]
    rows = "\n".join(_row(name, found) for name, found in readers.items())
    notes = "".join(f"\n\nNote on {name}: {found['note']}" for name, found in readers.items() if "note" in found)
    return TEXT.format(rows=rows, machines=_machines(readers), notes=notes, models=_models(results["c_models"]))


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results.json"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent.parent / "docs" / "fuzzing.md"
    target.write_text(page(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
