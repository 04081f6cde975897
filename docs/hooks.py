"""What MkDocs does besides: the report that index.md embeds is written by the code that the docs describe."""

from pathlib import Path
from typing import Any

from tinybayes.report.html import write_report


def on_post_build(config: Any) -> None:
    """Write the report of the search in docs/example into the site."""
    write_report(Path(config["docs_dir"]) / "example", Path(config["site_dir"]) / "assets" / "example_report.html")
