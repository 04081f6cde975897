"""Every code block of the README and the docs runs, in the order of its page; the notebook is the tutorial."""

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tinybayes
from cli_host import run
from tinybayes.deploy._boards.toolchain import PACKAGES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?[^\n]*\n(.*?)^```', re.MULTILINE | re.DOTALL)
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
RUNS_NOTEBOOKS = all(importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel"))


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    if page.stem == NOTEBOOK.stem and RUNS_NOTEBOOKS:
        pytest.skip("the notebook runs the same blocks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYBAYES_DATA", raising=False)
    names = {"__name__": "__main__"}
    for language, title, code in blocks(page):
        if title:
            (tmp_path / title).write_text(code)
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), "exec"), names)
        elif language in ("sh", "bash", "console"):
            for line in code.splitlines():
                shell(line.split("#")[0].strip(), tmp_path)
        else:
            assert language in ("text", "json", "c"), f"{page.name}: a block of the language {language!r}"


def shell(line, cwd):
    """Run a line of the command line; of a make target, check that it exists."""
    words = shlex.split(line)
    if not words:
        return
    if "--measure" in words and not all(shutil.which(tool) for tool in PACKAGES):
        return  # it needs a cross compiler and emulated boards
    if words[0] == "tinybayes":
        run(*words[1:], cwd=cwd)
    elif words[0] == "cc" or words[0].startswith("./"):
        if shutil.which("cc"):
            subprocess.run(words, cwd=cwd, check=True, capture_output=True)
    elif words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    else:
        assert (ROOT / next(w for w in words if "/" in w)).exists(), line


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def make_notebook():
    """The script beside the page, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("make_notebook", ROOT / "docs" / "make_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_that_of_the_page():
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    message = "run python docs/make_notebook.py"
    assert make_notebook().text_of(page) == NOTEBOOK.read_text(encoding="utf-8"), message
    code = [c for c in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    runnable = [b for b in blocks(ROOT / "docs" / "tutorial.md") if b[0] != "text"]
    assert len(code) == len(runnable)


@pytest.mark.skipif(not RUNS_NOTEBOOKS, reason="needs nbclient, nbformat and ipykernel; the page is run instead")
@pytest.mark.skipif(shutil.which("cc") is None, reason="the tutorial compiles C")
def test_the_notebook_runs(tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    printed = [o["text"] for c in notebook.cells if c.cell_type == "code" and "./motor" in c.source for o in c.outputs]
    assert "".join(printed).split() == ["idle", "normal", "worn"]
    labels = (tmp_path / "labels.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in labels] == ["idle", "normal", "worn"]
    for file in ("search/report.html", "front.svg", "firmware/motor.c", "firmware/motor.zip"):
        assert (tmp_path / file).stat().st_size > 0


def test_the_reference_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text()
    listed = set()
    entry = re.compile(r"^::: ([\w.]+)\n(?: +.*\n)*? +members: \[(.*)\]$", re.MULTILINE)
    for module, members in entry.findall(page):
        for name in members.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
            listed.add(name)
    assert "::: tinybayes.data.named\n" in page  # is tinybayes.datasets
    assert sorted(set(tinybayes.__all__) - listed - {"datasets"}) == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert re.search(rf"\b{re.escape(page.name)}$", navigation, re.MULTILINE), page.name
