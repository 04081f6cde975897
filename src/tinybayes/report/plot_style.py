"""What all figures for papers share: colours and marks, axes, texts."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tinybayes.errors import error, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "black"
GREY = "#767676"  # of texts and lines without a background: 4.5 times as dark as white, and as light as black
# Colours that people with any kind of colour vision can tell apart (Okabe and Ito), and a mark for each family.
LOOKS = {
    "naive": ("#0072b2", "o"),
    "tan": ("#d55e00", "s"),
    "subset": ("#e69f00", "D"),
    "tied": ("#cc79a7", "^"),
    "dense": ("#009e73", "P"),
    "conv": ("#56b4e9", "X"),
    "circuit": ("#000000", "*"),
    "tree": ("#8b939e", "v"),
    "forest": ("#f0e442", "h"),
    "boosted": ("#8a5a2b", "p"),
}
UNKNOWN = ("#8b939e", "o")
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # keep text as text, as journals require
    "svg.fonttype": "path",
    "svg.hashsalt": "tinybayes",  # reproducible files
}
COLOURED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")


def in_style(ink: str = INK) -> AbstractContextManager[None]:
    """Load Matplotlib, which is optional, and return the context in which it draws in our style."""
    try:
        import matplotlib
    except ImportError as problem:
        remedy = "install it: pip install 'tinybayes[plot]'"
        raise error("Matplotlib for figures", "none installed", where="plot", remedy=remedy) from problem
    return matplotlib.rc_context(STYLE | dict.fromkeys(COLOURED, ink))


def new_axes(width: float, height: float) -> tuple["Figure", Any]:
    """Return a figure of this size in inches with one pair of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def log_axis(axis: Any) -> None:
    """Give a logarithmic axis ticks at plain numbers, at least three of them, and a grid."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    for subs in ([1.0], [1.0, 2.0, 5.0], [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]):
        ticks = [tick for tick in LogLocator(subs=subs).tick_values(low, high) if low <= tick <= high]
        if len(ticks) >= 3:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.axes.grid(linewidth=0.3, color="0.9", alpha=0.7)
    axis.axes.set_axisbelow(True)


def _short(value: float) -> str:
    """Write 20,000 as 20k."""
    for divisor, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= divisor:
            return f"{value / divisor:g}{sign}"
    return f"{value:g}"


def drawn_text(text: str) -> str:
    """Keep dollar signs from starting a formula, and show control characters, which no font has."""
    return visible(text).replace("$", r"\$")
