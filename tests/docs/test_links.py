"""The checker of links finds what leads nowhere; what the docs build besides."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def broken(site):
    return script("check_links").broken_links(site)


def test_every_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "index.html").write_text('<h2 id="here">x</h2><a href="..#top">up</a><a href="/guide/">x</a>')
    (tmp_path / "picture.svg").touch()
    (tmp_path / "index.html").write_text(
        '<a id="top"></a><a href="guide/">1</a><a href="guide/#here">2</a><a href="#top">3</a><img src="picture.svg">'
        '<a href="https://example.org/none">4</a><a href="#">5</a><iframe src="guide/index.html"></iframe>'
    )
    assert broken(tmp_path) == []
    (tmp_path / "other.html").write_text(
        '<a href="guide/#there">1</a><a href="gone/">2</a><img src="none.svg"><a href="#no">3</a><iframe src="x.html">'
    )
    lost = ["guide/#there", "gone/", "none.svg", "#no", "x.html"]
    assert broken(tmp_path) == [f"other.html: {link}" for link in lost]


def test_the_report_of_the_landing_page_names_no_path_of_this_machine(tmp_path):
    pytest.importorskip("mkdocs")
    (tmp_path / "assets").mkdir()
    script("hooks").on_post_build({"site_dir": str(tmp_path)})
    text = (tmp_path / "assets" / "example_report.html").read_text(encoding="utf-8")
    assert '"directory":"digits"' in text
    assert str(DOCS) not in text
