"""The command that shows the package at work."""

from pathlib import Path
from typing import Annotated

import typer

from tinybayes.cli._console import Json, print_json, say, watched_live
from tinybayes.cli.explore import announcement, default_workers, parse_size, parse_time, search_progress, tell


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where everything goes.")] = Path(
        "demo"
    ),
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Of the whole search: 60s, 5m.")] = "60s",
    budget: Annotated[str, typer.Option(metavar="SIZE", help="Memory of the chosen model.")] = "4kB",
    seed: Annotated[int, typer.Option(min=0, help="For everything drawn at random.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn to read handwritten digits within 4 kB: search, choose, write C and a report."""
    from tinybayes.data import named as datasets
    from tinybayes.deploy import read_classifier
    from tinybayes.deploy.export import export, write_files
    from tinybayes.report.html import write_report
    from tinybayes.search.explore import explore

    frame, classes = datasets.load_raw("digits")
    frame["digit"] = classes
    if not as_json:
        say(f"{len(frame):,} images of 8x8 pixels; a fifth of them is set aside to judge by.")
        say(announcement(time))
    with search_progress(watched_live() and not as_json) as report:
        found = explore(
            frame,
            "digit",
            output=output,
            budget_bits=parse_size(budget),
            seconds=parse_time(time),
            workers=default_workers(parse_time(time), most=4),
            seed=seed,
            command=f"tinybayes demo --time {time} --budget {budget} --seed {seed} -o {output}",
            report=report,
        )
    write_report(output)
    files: dict[str, str | bytes] = {}
    if found.chosen is not None:
        model = read_classifier(output / found.chosen["file"])
        note = f"Error on test rows: {100 * found.chosen['test_error']:.2f} %."
        files = export(model, "c", name="digits", note=note)
        write_files(files, output / "c")
    if as_json:
        print_json({"chosen": found.chosen, "front": found.front, "files": sorted(files)}, output)
        return
    tell(found)
    if files:
        say(f"The chosen model as C: {output / 'c' / 'digits.c'}. With your own table:")
        say("  tinybayes explore YOUR_TABLE.csv --target COLUMN --budget 4kB -o search")
