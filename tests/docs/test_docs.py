"""Every code block of the README and the docs runs, in the order of its page; the notebook is the tutorial."""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

import tinybayes
from cases import WHOLE
from cli_host import run
from tinybayes.deploy._boards.boards import PACKAGES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?[^\n]*\n(.*?)^```', re.MULTILINE | re.DOTALL)
DATA = os.environ.get("TINYBAYES_DATA")
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
RUNS_NOTEBOOKS = all(importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel"))


def blocks(page):
    return BLOCK.findall(page.read_text())


def pages_with_code():
    """Pages with code; those that search or train for more than a few seconds are part of `make test-all` only."""
    slow = {"README.md", "command_line.md", "explore.md", "gibbs.md", "gradient.md", "howto.md", "index.md", "serve.md"}
    for page in PAGES:
        if blocks(page):
            yield pytest.param(page, id=page.name, marks=[pytest.mark.exhaustive] if page.name in slow else [])


@pytest.mark.parametrize("page", list(pages_with_code()))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    if page.stem == NOTEBOOK.stem and RUNS_NOTEBOOKS:
        pytest.skip("the notebook runs the same blocks")
    monkeypatch.chdir(tmp_path)
    if page.stem != "howto":  # where a paper is reproduced
        monkeypatch.delenv("TINYBAYES_DATA", raising=False)
    names = {"__name__": "__main__"}
    with Shell(tmp_path) as shell:
        for language, title, code in blocks(page):
            if title:
                (tmp_path / title).write_text(code)
            if language == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(code, str(page), "exec"), names)
            elif language == "sh":
                for line in code.splitlines():
                    shell.run(line.split("#")[0].strip())
            elif language == "js" and shutil.which("node"):
                subprocess.run(["node", "-"], cwd=tmp_path, input=code, text=True, capture_output=True, check=True)
            else:
                assert language in ("text", "json", "c", "js"), f"{page.name}: a block of the language {language!r}"


def with_root(*folders):
    """The environment of a command that finds the experiments, which are not installed."""
    path = [str(ROOT), *map(str, folders), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}


SHORTER = {"--time": "8s", "--nworkers": "1"}


class Shell:
    """Runs the lines of a page, those that end with & beside it; times are cut to seconds, clusters to one worker."""

    def __init__(self, cwd):
        self.cwd, self.beside = cwd, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.beside):
            process.terminate()
        for process in self.beside:
            process.communicate(timeout=30)  # which closes what it wrote to

    def run(self, line):
        words = shlex.split(line)
        if not words or not self.has_what_it_takes(words):
            return
        words = list(itertools.dropwhile(lambda word: "=" in word, words))  # of the environment
        beside = words[-1] == "&"
        words = words[:-1] if beside else words
        for option in set(SHORTER) & set(words):
            place = words.index(option) + 1
            if words[place][-1] != "s":  # seconds are as they are
                words[place] = "25s" if "--dask" in words and option == "--time" else SHORTER[option]
        if words == ["tinybayes", "demo"]:
            words += ["--time", "8s"]
        if words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == "pip":
            self.check_install(words[-1])
        elif words[:3] == ["python", "-m", "experiments"]:
            command = [sys.executable, *words[1:]]
            subprocess.run(command, cwd=self.cwd, check=True, capture_output=True, env=with_root())
        elif words[0] in ("python", "pytest"):
            self.check_options(words)
        elif words[:2] == ["tinybayes", "serve"]:
            self.look_at(self.begin([*words, "--no-browser"]))
        elif beside:
            self.begin(words)
        elif words[0] == "tinybayes":
            run(*words[1:], cwd=self.cwd)
        else:
            assert words[0] in ("cc", "iverilog", "vvp") or words[0].startswith("./"), line
            subprocess.run(words, cwd=self.cwd, check=True, capture_output=True)

    def has_what_it_takes(self, words):
        """Compilers and boards need not be on every machine, the papers' data neither; commands of our own must."""
        if "--measure" in words:
            return all(shutil.which(tool) for tool in PACKAGES)
        if words[0] in ("cc", "iverilog", "vvp"):
            return shutil.which(words[0]) is not None
        if words[:3] == ["python", "-m", "experiments"]:
            (self.cwd / "experiments").exists() or (self.cwd / "experiments").symlink_to(ROOT / "experiments")
            if "--quick" not in words:
                words += ["--seconds", "0", "-o", "summed"]  # what there is; it takes hours
            return DATA is not None
        return not words[0].startswith("./") or (self.cwd / words[0]).exists()

    def check_options(self, words):
        """A benchmark or an experiment takes minutes to hours: it must be there and know the options."""
        module = "-m" in words
        script = ROOT / (words[2].replace(".", "/") + ".py" if module else next(w for w in words if "/" in w))
        assert script.exists(), words
        options = [w for w in words if w.startswith("--")]
        if options:
            command = [sys.executable, *(words[1:3] if module else [str(script)]), "--help"]
            shown = subprocess.run(command, capture_output=True, text=True, env=with_root(ROOT / "benchmarks"))
            assert all(option in shown.stdout for option in options), (words, shown.stderr[-500:])

    def check_install(self, wanted):
        extras = re.findall(r"\w+", wanted.partition("[")[2])
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(extras) <= set(known), wanted

    def begin(self, words):
        programs = Path(sys.executable).parent
        command = [sys.executable, "-m", *words] if words[0] == "tinybayes" else [str(programs / words[0]), *words[1:]]
        process = subprocess.Popen(command, cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.beside.append(process)
        if "-o" in words or "--scheduler-file" in words:  # what comes next needs it
            place = self.cwd / words[words.index("-o" if "-o" in words else "--scheduler-file") + 1]
            place = place / "progress.json" if "-o" in words else place
            for _ in range(600):
                if place.exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            assert place.exists(), process.stdout.read()
        return process

    def look_at(self, server):
        line = server.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, line + server.stdout.read()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address[0], timeout=30) as page:
            assert b"<title>" in page.read()


def test_no_command_hides_in_a_block_of_text():
    """Only an installation, which the environment of the tests is already, is not run."""
    for page in PAGES:
        for language, _, code in blocks(page):
            if language == "text":
                hidden = re.findall(r"^(?:\$ )?(?:tinybayes|dask|make|cc|iverilog|python) .*", code, re.MULTILINE)
                assert not hidden, f"{page.name}: {hidden}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_links_within_a_page_lead_to_its_headings():
    for page in PAGES:
        text = page.read_text()
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        anchors = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", name.strip().lower())) for name in headings}
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors, page.name


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


@WHOLE
@pytest.mark.exhaustive
@pytest.mark.skipif(not RUNS_NOTEBOOKS, reason="needs nbclient, nbformat and ipykernel; the page is run instead")
@pytest.mark.skipif(shutil.which("cc") is None, reason="the tutorial compiles C")
def test_the_notebook_runs(tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    if not all(shutil.which(tool) for tool in PACKAGES):
        notebook.cells = [cell for cell in notebook.cells if "--measure" not in cell.source]
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    printed = [o["text"] for c in notebook.cells if c.cell_type == "code" and "./motor" in c.source for o in c.outputs]
    assert "".join(printed).split() == ["idle", "normal", "worn"]
    labels = (tmp_path / "labels.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in labels] == ["idle", "normal", "worn"]
    for file in ("search/report.html", "front.svg", "firmware/motor.c", "firmware/motor.zip"):
        assert (tmp_path / file).stat().st_size > 0


def test_the_reference_has_every_public_name():
    page = "".join(one.read_text() for one in sorted((ROOT / "docs" / "api").glob("*.md")))
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
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"[ ]{re.escape(name)}$", navigation, re.MULTILINE), name
