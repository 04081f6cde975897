"""Figures for papers, drawn with Matplotlib: the front, bits, structures and tables, as SVG, PDF or PNG."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from tinybayes.deploy import load, read_network
from tinybayes.errors import error, warn
from tinybayes.files import atomic_path, is_directory
from tinybayes.model import BayesNet, TreeEnsemble
from tinybayes.report.front import metric_value, model_path, read_front
from tinybayes.report.plot_front import draw_bits, draw_front
from tinybayes.report.plot_models import draw_structure, draw_tables, draw_tree
from tinybayes.report.plot_style import GREY, INK, drawn_text, in_style
from tinybayes.search.titles import TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".pdf", ".png")
FIGURES = ("front", "bits", "structure", "cpt")
WIDTH = 5.5  # inches
NETWORKS = ("naive", "tan", "subset", "tied")
TREES = ("tree", "forest", "boosted")


def plot(
    source: Path | str,
    name: str,
    output: Path | str,
    *,
    model: str | None = None,
    variables: Sequence[str] = (),
    tree: int = 1,
    width: float = WIDTH,
    transparent: bool = False,
) -> Path:
    """Draw a figure into a file.

    Parameters
    ----------
    source
        The directory of a search; for structures also a file of a network or of trees, for tables of a network.
    name
        ``"front"`` (error over flash, instructions as area; over parameters where programs are not priced; with the
        budget and the chosen model),
        ``"bits"`` (error over bits of a parameter), ``"structure"`` (the graph of a network, or a decision tree) or
        ``"cpt"`` (tables as heat maps).
    output
        The file; its suffix is .svg, .pdf or .png.
    model
        The id of the model to draw; by default the one that the search chose if it can be drawn, or the best that can,
        with a warning that says so.
    variables
        Whose tables to draw; by default the first six or nine features.
    tree
        The number of the tree to draw, of models that have several.
    width
        Of the figure in inches.
    transparent
        Leave out the background, and write in a grey that can be read on white and on black.
    """
    path, output = Path(source), Path(output)
    if name not in FIGURES:
        raise error(f"one of {', '.join(FIGURES)}", repr(name), where="figure")
    if output.suffix.lower() not in SUFFIXES:
        raise error(f"a file named {', '.join('*' + s for s in SUFFIXES)}", output.name, where="output")
    if not 1 <= width <= 40:
        raise error("a width from 1 to 40 inches", width, where="width")
    ink = GREY if transparent else INK
    with in_style(ink):
        if name in ("front", "bits"):
            figure = _of_search(path, name, width, ink)
        elif name == "structure":
            shown = _structured(path, model)
            if isinstance(shown, BayesNet):
                figure = draw_structure(shown, width, ink=ink)
            else:
                figure = draw_tree(shown, tree - 1, width, ink=ink)
        else:
            figure = draw_tables(read_network(_file(path, model, NETWORKS)), width, variables, ink=ink)
        kind = output.suffix[1:].lower()
        nothing = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        drawn = BytesIO()  # Matplotlib raises all sorts of errors where the disk is full
        figure.savefig(drawn, format=kind, dpi=300, bbox_inches="tight", metadata=nothing, transparent=transparent)
    with atomic_path(output) as temporary:
        temporary.write_bytes(drawn.getvalue())
    return output


def _of_search(path: Path, name: str, width: float, ink: str) -> "Figure":
    """Draw the models of a search by its metric, whatever that is."""
    front = read_front(path)
    models = [m | {"validation_error": metric_value(m, front)} for m in front["models"]]
    models = [m for m in models if m["validation_error"] is not None]
    if not models:
        raise error("models with an error on validation rows", "none", where=str(path))
    metric = front["metric"]
    words, scale = drawn_text(metric["title"]) + " (%)" * metric["percent"], 100.0 if metric["percent"] else 1.0
    if name == "bits":
        return draw_bits(models, width, words, scale, ink=ink)
    return draw_front(models, width, words, scale, budget=front["budget"], chosen=front["chosen"], ink=ink)


def _structured(path: Path, wanted: str | None) -> BayesNet | TreeEnsemble:
    """Read the network or the trees to draw: a file, or a model of a search."""
    file = _file(path, wanted, (*NETWORKS, *TREES))
    model = load(file)
    return model if isinstance(model, TreeEnsemble) else read_network(file)


def _file(path: Path, wanted: str | None, families: tuple[str, ...]) -> Path:
    """Find the file of a model to draw, by default the best one of these families."""
    if not is_directory(path):
        return path
    front = read_front(path)
    known = {m["id"]: m for m in front["models"] if m["file"] is not None}
    if wanted is None:
        models = [m for m in known.values() if m["family"] in families and metric_value(m, front) is not None]
        best = min(models, key=lambda m: metric_value(m, front) or 0.0, default=None)
        chosen = known.get(front["chosen"] or "")
        wanted = front["chosen"] if chosen and chosen["family"] in families else best["id"] if best else None
        if best is not None and chosen is not None and wanted != front["chosen"]:
            warn(
                f"the chosen model, {chosen['label']}, cannot be drawn so; this is {best['label']}, model {best['id']}"
            )
        if wanted is None:
            drawn = ", ".join(dict.fromkeys(TITLES.get(name, name) for name in families))
            held = ", ".join(dict.fromkeys(TITLES.get(m["family"], m["family"]) for m in known.values()))
            raise error(f"a model to draw so: {drawn}", held or "none", where=str(path))
    if wanted not in known:
        names = ", ".join(list(known)[:12])
        raise error(f"the id of a saved model: {names}", repr(wanted), where="model")
    return model_path(path, known[wanted]["file"])
