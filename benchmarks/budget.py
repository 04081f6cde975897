"""Whether a search keeps its budget: flash of the chosen program, priced in the search and measured on a Cortex-M0+.

    TINYBAYES_DATA=DIR python benchmarks/budget.py [--data digits crx] [--budget 1kB 4kB] [--seconds 75] [--seed 0]

Each line of the result is `tinybayes explore TABLE --budget SIZE`, then `tinybayes export --measure` of the model that
it chose. Tables are those of `DIR/tables`, with their test rows; of digits a fifth is set aside. `--page` writes the
table of docs/price.md from the results. It needs gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import provenance
from sklearn.datasets import load_digits

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "budget.json"
PAGE = ROOT / "docs" / "price.md"
DATA = ("digits", "crx", "vowel", "splice")
BUDGETS = ("1kB", "2kB", "4kB", "16kB")
MARKS = "<!-- budget: written by benchmarks/budget.py -->", "<!-- end of budget -->"


def command(*words: object) -> tuple[int, dict[str, Any]]:
    """Run a command of the package; return its exit code and what it printed."""
    run = [sys.executable, "-m", "tinybayes", *map(str, words), "--json", "--quiet"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(run)}: {done.stderr[-500:]}")
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}


def searched(name: str, budget: str, seconds: float, seed: int) -> dict[str, Any]:
    """Search one table under one budget, and measure the program of the chosen model."""
    with tempfile.TemporaryDirectory() as place:
        directory, more = Path(place), []
        if name == "digits":
            table, target = directory / "digits.csv", "target"
            load_digits(as_frame=True).frame.to_csv(table, index=False)
        else:
            tables = Path(os.environ["TINYBAYES_DATA"]) / "tables"
            table, target, more = tables / f"{name}.train.csv.gz", "label", ["--test", tables / f"{name}.test.csv.gz"]
        search = ["explore", table, "--target", target, *more, "--budget", budget, "--time", f"{seconds:g}s"]
        code, found = command(*search, "--seed", seed, "-o", directory / "search")
        line: dict[str, Any] = {"data": name, "budget": budget, "seconds": seconds, "seed": seed}
        if code or not found.get("chosen"):
            return line | {"chosen": None, "runs": found.get("runs", 0)}
        chosen = found["chosen"]
        _, exported = command("export", directory / "search", "--to", "c", "--measure", "-o", directory / "firmware")
        board = next(board for board in exported["boards"] if board["core"] == "Cortex-M0+")
        keep = ("label", "family", "validation_error", "test_error", "bits", "flash", "stack", "instructions")
        return line | {"runs": found["runs"], "chosen": {k: chosen[k] for k in keep}, "measured": board}


def table_of(lines: list[dict[str, Any]]) -> str:
    """Return the results as a table of Markdown."""
    text = ["| table | budget | chosen | test error | flash, B | | stack, B | | instructions | |", "|---" * 10 + "|"]
    text.append("| | | | | priced | measured | priced | measured | priced | measured |")
    for line in lines:
        chosen = line["chosen"]
        if chosen is None:
            text.append(f"| {line['data']} | {line['budget']} | none fits | | | | | | | |")
            continue
        figures = [
            f"{one[name]:,.0f}" for name in ("flash", "stack", "instructions") for one in (chosen, line["measured"])
        ]
        label = re.sub(r", [^,]*B$", "", chosen["label"])
        error = f"{100 * chosen['test_error']:.1f} %"
        text.append(f"| {line['data']} | {line['budget']} | {label} | {error} | {' | '.join(figures)} |")
    return "\n".join(text)


def write_page(lines: list[dict[str, Any]]) -> None:
    """Put the table between its marks."""
    head, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    PAGE.write_text(f"{head}{MARKS[0]}\n{table_of(lines)}\n{MARKS[1]}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--budget", nargs="+", default=BUDGETS)
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    document = json.loads(options.output.read_text()) if options.output.exists() else {"lines": []}
    known = {(line["data"], line["budget"]): line for line in document["lines"]}
    for name, budget in [] if options.page else [(n, b) for n in options.data for b in options.budget]:
        line = searched(name, budget, options.seconds, options.seed)
        about = provenance(["numpy", "jax", "optuna"])
        made = {"date": about["date"], "commit": about["commit"], "load": round(os.getloadavg()[0], 1)}
        known[name, budget] = line | made
        print(json.dumps(line), flush=True)
        order = sorted(known.values(), key=lambda one: (DATA.index(one["data"]), BUDGETS.index(one["budget"])))
        document = {"about": about, "lines": order}
        options.output.write_text(json.dumps(document, indent=1) + "\n")
    if options.output == RESULTS:
        write_page(document["lines"])


if __name__ == "__main__":
    main()
