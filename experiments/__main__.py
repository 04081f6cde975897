"""Run a file of sweeps: python -m experiments FILE.toml; runs that are stored already are not repeated."""

import argparse
import json
from pathlib import Path

from experiments.reproduce import name_of, reproduce
from experiments.sweep_page import write_sweeps_page
from tinybayes.errors import TinybayesError


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("file", type=Path, help="a file of sweeps in one of the folders of experiments/")
    parser.add_argument("-o", "--output", type=Path, help="a directory; results/ beside the file if not given")
    parser.add_argument("--only", action="append", default=[], help="sweeps whose names begin so; may be repeated")
    parser.add_argument("--quick", action="store_true", help="a few short runs, to see that everything works")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no new part after this time")
    parser.add_argument("--together", type=int, help="train at most so many runs at once; 1 to 4 suit a CPU")
    parser.add_argument("--json", action="store_true", help="print the report, and nothing else")
    options = parser.parse_args(arguments)
    if options.together is not None and options.together < 1:
        parser.error(f"--together: expected at least 1, got {options.together}")
    try:
        run(options)
    except TinybayesError as problem:
        parser.exit(2, f"error: {problem}\n")


def run(options: argparse.Namespace) -> None:
    output = options.output or options.file.parent / "results"

    def tell(line: str) -> None:
        if not options.json:
            print(line, flush=True)

    tell("Ctrl-C ends it; the same command resumes it.")
    how = {name: getattr(options, name) for name in ("only", "quick", "seconds", "together")}
    report = reproduce(options.file, output, **how, tell=tell)
    page = write_sweeps_page(options.file, output, quick=options.quick)
    if options.json:
        print(json.dumps(report))
    name = output / name_of(options.file, quick=options.quick)
    tell(f"Every run is in {name}.jsonl, the summary in {name}.json; large files end with .gz.")
    if page is not None:
        tell(f"To look at them: {page}")


if __name__ == "__main__":
    main()
