"""The command that draws figures for papers."""

from pathlib import Path
from typing import Annotated

import typer

from tinybayes.cli._console import check_output, print_json, say, suggest
from tinybayes.cli._options import Json


def plot(
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="What explore wrote; for structure and cpt also a model.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The figure: .svg, .pdf or .png.")],
    figure: Annotated[str, typer.Option("--figure", help="front, bits, structure or cpt.")] = "front",
    model: Annotated[
        str | None, typer.Option("--model", help="Id of the model to draw; by default the chosen one.")
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option("--variable", metavar="NAME", help="With cpt: whose table to draw; may be given several times."),
    ] = None,
    tree: Annotated[int, typer.Option("--tree", min=1, help="With structure: the tree to draw, of several.")] = 1,
    width: Annotated[float, typer.Option("--width", help="Of the figure, in inches.")] = 5.5,
    transparent: Annotated[
        bool, typer.Option("--transparent", help="Without a background, in colours for light and dark pages.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Draw a figure for a paper: the front, error over bits, a structure or a tree, or tables."""
    from tinybayes.report.plots import plot as draw

    check_output(output)
    draw(source, figure, output, model=model, variables=variable or (), tree=tree, width=width, transparent=transparent)
    if as_json:
        print_json({"figure": figure}, output)
    else:
        say(f"Wrote {output}.")
        say(suggest("export", source, "--to", "c", "-o", "firmware"))
