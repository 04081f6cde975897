"""Make the notebook of the tutorial from its page: ``python docs/make_notebook.py``.

The page is the source. Code blocks of Python become cells, those of the shell cells of ``%%sh``, and a block with a
title becomes a cell that writes that file; everything else is text.
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BLOCK = re.compile(r'^```(python|sh|c)(?: title="([^"]+)")?\n(.*?)^```\n', re.MULTILINE | re.DOTALL)


def notebook(page: str) -> dict[str, Any]:
    """Return the notebook of a page, without outputs; the same page always gives the same notebook."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str) -> None:
        if text.strip():
            extra = {"execution_count": None, "outputs": []} if kind == "code" else {}
            lines = text.strip("\n").splitlines(keepends=True)
            cells.append({"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": lines, **extra})

    end = 0
    for found in BLOCK.finditer(page):
        add("markdown", page[end : found.start()])
        language, title, code = found.groups()
        first = {"sh": "%%sh -e\n"}.get(language, "") if title is None else f"%%writefile {title}\n"
        add("code", first + code)
        end = found.end()
    add("markdown", page[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text_of(page: str) -> str:
    """Return the file that the notebook of a page is."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    made = text_of((HERE / "tutorial.md").read_text(encoding="utf-8"))
    (HERE / "tutorial.ipynb").write_text(made, encoding="utf-8")
