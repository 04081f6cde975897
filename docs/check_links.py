"""Follow every link of the built site: python docs/check_links.py [site]. No link of a page may lead nowhere.

Pages, anchors, pictures, scripts and frames within the site are looked up; addresses of other sites are not.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

KINDS = {("a", "href"), ("link", "href"), ("img", "src"), ("script", "src"), ("iframe", "src")}
ELSEWHERE = ("http", "https", "mailto", "data", "javascript")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what leads somewhere, and where links may lead."""
        for name, value in attrs:
            if (tag, name) in KINDS and value:
                self.links.append(value)
            elif value and (name == "id" or (tag, name) == ("a", "name")):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    root, problems = site.resolve(), []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ELSEWHERE or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.path.startswith("/"):  # of the page of errors, which is shown at any address
                there = (root / unquote(parts.path).lstrip("/")).resolve()
            there = there / "index.html" if there.is_dir() else there
            known = pages.get(there)
            if not there.exists() or (known and unquote(parts.fragment) not in known.anchors):
                problems.append(f"{path.relative_to(root)}: {link}")
    return problems


def main() -> int:
    """Print what is broken."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    problems = broken_links(site)
    print("\n".join(problems) if problems else f"every link of {site} leads somewhere")  # noqa: T201
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
