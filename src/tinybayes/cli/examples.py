"""Commands that show the package at work: the demonstration, and the experiments of the papers."""

from pathlib import Path
from typing import Annotated

import typer

from tinybayes.cli._console import Json, print_json, say, show


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to save the model.")] = Path("digits.tb"),
    as_json: Json = False,
) -> None:
    """Learn to read handwritten digits, and see what accuracy costs in memory and operations."""
    from tinybayes.compress import to_format
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data import named as datasets
    from tinybayes.deploy import save
    from tinybayes.infer import evaluate
    from tinybayes.learn import learn_classifier
    from tinybayes.model import Fixed
    from tinybayes.report.console import front_table

    train, test = datasets.load("digits")
    rows, nets = [], {}
    for label, structure in (("naive Bayes", "naive"), ("Chow-Liu TAN", "chow-liu")):
        net = learn_classifier(train, structure=structure)
        for storage, variant in (("float32", net), ("8 bits", to_format(net, Fixed(4, 4)))):
            name = f"{label}, {storage}"
            nets[name] = variant
            rows.append((name, evaluate(variant, test).error, bayes_net_cost(variant)))
    saved = rows[-1][0]  # fixed beforehand: choosing by the test error would flatter it
    save(nets[saved], output, metadata={"dataset": "digits", "model": saved})
    if as_json:
        print_json(
            {"models": [{"model": n, "test_error": e, **c.to_dict()} for n, e, c in rows], "saved": saved}, output
        )
        return
    show(f"digits: {len(train):,} training and {len(test):,} test images of 8x8 pixels, discretised by MDLP")
    show(front_table(rows, "What accuracy costs"))
    say(f"Saved {saved} to {output}. Now try:")
    say(f"  tinybayes info {output}")
    say("  tinybayes fit YOUR_TABLE.csv --target COLUMN -o model.tb")


def reproduce(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of sweeps under experiments/.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory; results/ beside the file.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Sweeps whose names begin so; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few short runs, to see that everything works.")] = False,
    seconds: Annotated[float, typer.Option(help="Begin no new part after this time.")] = float("inf"),
    as_json: Json = False,
) -> None:
    """Run the experiments of a paper; what was finished before is taken up, not run again."""
    from tinybayes.search.reproduce import reproduce as run

    tell = (lambda line: None) if as_json else say
    place = output or file.parent / "results"
    report = run(file, place, only=only or (), quick=quick, seconds=seconds, tell=tell)
    if as_json:
        print_json(report, place)
