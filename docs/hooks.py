"""What MkDocs does besides: names of the Python interface become links, and the report of index.md is written."""

import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

from tinybayes.report.html import page_data, page_text

DOCS = Path(__file__).parent
ENTRY = re.compile(r"^::: ([\w.]+)\n(?: +.*\n)*? +members: \[(.*)\]$", re.MULTILINE)
# What stays as it is, or else a name in the type of code, perhaps with its arguments.
PIECE = re.compile(r"<(a|pre|svg|h\d)\b.*?</\1>|<code>(?:(tb|tinybayes)\.)?(\w+)(\([^<]*\))?</code>", re.DOTALL)


def documented() -> dict[str, str]:
    """Return where each name of the interface is described: its page and its anchor."""
    places: dict[str, str] = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        for module, members in ENTRY.findall(page.read_text(encoding="utf-8")):
            for name in members.split(", "):
                places.setdefault(name, f"api/{page.stem}/#{module}.{name}")
    return places


PLACES = documented()


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link the names of the interface. A plain word is one only where it is called, or on the page of its package."""

    def linked(found: re.Match[str]) -> str:
        package, name, called = found[2], found[3], found[4]
        place = PLACES.get(name or "")
        sure = package or called or (name and ("_" in name or name != name.lower()))
        if place is None or not (sure or place.startswith(page.url)) or page.url == "":
            return found[0]
        address, anchor = place.split("#")
        return f'<a class="tb-name" href="{get_relative_url(address, page.url)}#{anchor}">{found[0]}</a>'

    return PIECE.sub(linked, html)


def on_post_build(config: Any) -> None:
    """Write the report of the search in docs/example into the site, by the code that the docs describe."""
    data = page_data(DOCS / "example") | {"directory": "digits"}  # as its command calls it, wherever the docs are built
    page = Path(config["site_dir"]) / "assets" / "example_report.html"
    page.write_text(page_text(data), encoding="utf-8", newline="\n")
