"""Every code block of the README and the docs runs, in the order of its page."""

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from test_cli import run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYBAYES_DATA", raising=False)
    names = {"__name__": "__main__"}
    for language, code in blocks(page):
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
    if words[0] == "tinybayes":
        run(*words[1:], cwd=cwd)
    elif words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    else:
        assert (ROOT / next(w for w in words if "/" in w)).exists(), line


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"
