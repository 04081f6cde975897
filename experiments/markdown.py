"""Pieces of the pages of results: lines of tables, how results were made, and what is missing."""

import textwrap

from experiments.provenance import described
from experiments.store import Record


def line(*cells: object) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |\n"


def percent(error: float | None, otherwise: str = "") -> str:
    """Return an error in percent with two digits."""
    return otherwise if error is None else f"{error:.2f}"


def made(report: Record | None, command: str) -> str:
    """Say how, when and on which machine results were made."""
    return f"\n`{command}`: {described(report)}.\n" if report and report["provenance"] else ""


def missing(section: str, command: str) -> str:
    """Return the heading of a section, and how to get its results."""
    heading = section.strip().splitlines()[0]
    return f"\n{heading}\n\nNot run yet: `{command}`.\n"


def wrapped(page: str) -> str:
    """Break the lines of prose; tables, headings, lists and pictures stay."""
    parts = [
        part if part.startswith(("|", "#", "-", "!")) else textwrap.fill(part, 120, break_on_hyphens=False)
        for part in page.strip().split("\n\n")
    ]
    return "\n\n".join(parts) + "\n"
