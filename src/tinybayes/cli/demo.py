"""The command that shows the package at work."""

from pathlib import Path
from typing import Annotated

import typer

from tinybayes.cli._console import print_json, say, watched_live
from tinybayes.cli._options import Json, Seed
from tinybayes.cli.explore import announcement, budget_from, default_workers, end, parse_time, search_progress, tell


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where everything goes.")] = Path(
        "demo"
    ),
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Of the whole search: 60s, 5m.")] = "60s",
    budget: Annotated[str, typer.Option(metavar="SIZE", help="Flash of the program of the chosen model.")] = "4kB",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn to read handwritten digits within 4 kB: search, choose, write C and a report."""
    from tinybayes.extras import require

    require("jax", "optuna", "sklearn", extra="search")
    from tinybayes.data import named as datasets
    from tinybayes.deploy import read_classifier
    from tinybayes.deploy.export import export, write_files
    from tinybayes.report.html import write_report
    from tinybayes.search.explore import Execution, explore

    frame, classes = datasets.load_raw("digits")
    frame["digit"] = classes
    if not as_json:
        say(f"{len(frame):,} images of 8x8 pixels; a fifth of them is set aside for the test.")
    command = f"tinybayes demo --time {time} --budget {budget} --seed {seed} -o {output}"
    with search_progress(watched_live() and not as_json, None, None if as_json else announcement(time)) as report:
        result = explore(
            frame,
            "digit",
            output=output,
            budget=budget_from(budget=budget),
            seconds=parse_time(time),
            seed=seed,
            execution=Execution(workers=default_workers(parse_time(time), most=4), command=command),
            report=report,
        )
    write_report(output)
    files: dict[str, str | bytes] = {}
    if result.chosen is not None:
        model = read_classifier(output / result.chosen["file"])
        note = f"Error on test rows: {100 * result.chosen['test_error']:.2f} %."
        files = export(model, "c", name="digits", note=note)
        write_files(files, output / "c")
    if as_json:
        print_json({"chosen": result.chosen, "front": result.front, "files": sorted(files)}, output)
    else:
        tell(result)
    end(result)
    if not as_json:
        say(f"The chosen model as C: {output / 'c' / 'digits.c'}. With your own table:")
        say("  tinybayes explore YOUR_TABLE.csv --target COLUMN --budget 4kB -o search")
