"""The C code of a model for the page: both files whole, or where they are too long the header and shortened tables."""

import re
from typing import Any

from tinybayes.deploy.programs.c import to_c
from tinybayes.errors import TinybayesError
from tinybayes.model import Circuit, Classifier

NAME = "model"
HEADER_LINES = 60
SOURCE_LINES = 120
FUNCTION_LINES = 40  # that are kept for the function that predicts
TABLE_LINES = 3  # of each array and enum that are kept
EDGES = 20_000  # of circuits; code of larger ones is slow to write and shows nothing more
# Lines of nothing but numbers, and those that number names in an enum.
_LISTED = re.compile(r"[\s\d.,+\-eExXa-fA-FuUlL{}()]*\d[\s\d.,+\-eExXa-fA-FuUlL{}()]*|\s*\w+ = \d+,?(\s*/\*.*\*/)?")


def c_snippet(model: Classifier, room: int = 0) -> dict[str, Any]:
    """Return ``{"header", "source", "bytes", "whole"}``, or ``{"note"}`` where there is no such code.

    Files of more than `room` characters are shortened for people to read.
    """
    if model.target is None:
        return {"note": "This model has no class, so there is no function that predicts one."}
    if isinstance(model, Circuit) and model.n_edges > EDGES:
        return {"note": f"With {model.n_edges:,} edges this circuit is too large to show as C; export writes it."}
    try:
        texts = to_c(model, name=NAME)
    except TinybayesError as problem:
        return {"note": f"There is no C code of this model: {problem}."}
    header, source = texts[f"{NAME}.h"], texts[f"{NAME}.c"]
    if len(header) + len(source) <= room:
        return {"header": header, "source": source, "bytes": len(header) + len(source), "whole": True}
    source = source[source.find("#include") :]  # the comment at the top is that of the header
    return {
        "header": _first(short_tables(header.splitlines()), HEADER_LINES),
        "source": _first(_with_function(short_tables(source.splitlines())), SOURCE_LINES),
        "bytes": len(header) + len(source),
        "whole": False,
    }


def short_tables(lines: list[str]) -> list[str]:
    """Keep the first lines of each table and each enum, and say how many were left out."""
    kept: list[str] = []
    block: list[str] = []
    for line in [*lines, "end"]:
        if _LISTED.fullmatch(line):
            block.append(line)
            continue
        kept += block if len(block) <= TABLE_LINES + 1 else block[:TABLE_LINES]
        if len(block) > TABLE_LINES + 1:
            kept.append(f"    /* ... {len(block) - TABLE_LINES:,} more lines ... */")
        block = []
        kept.append(line)
    return kept[:-1]


def _with_function(lines: list[str]) -> list[str]:
    """Where the predict function comes late, omit the lines before it except the first ones."""
    defined = re.compile(rf"\w.*\b{NAME}_(predict|posterior)\(.*[^;]")
    line_number = next((i for i, line in enumerate(lines) if defined.fullmatch(line)), 0)
    if line_number < SOURCE_LINES - FUNCTION_LINES:
        return lines
    kept = SOURCE_LINES - FUNCTION_LINES
    return [*lines[:kept], f"/* ... {line_number - kept:,} more lines ... */", "", *lines[line_number:]]


def _first(lines: list[str], limit: int) -> str:
    rest = [f"/* ... {len(lines) - limit:,} more lines ... */"] if len(lines) > limit else []
    return "\n".join([*lines[:limit], *rest]) + "\n"
