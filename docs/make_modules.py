"""Write the table of packages in architecture.md, and modules.md, from the docstrings: python docs/make_modules.py."""

import ast
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "tinybayes"
PACKAGES = (  # each imports only from those before it
    "errors",
    "extras",
    "files",
    "options",
    "_kernels",
    "model",
    "data",
    "cost",
    "infer",
    "learn",
    "compress",
    "deploy",
    "search",
    "report",
    "serve",
    "estimators",
    "cli",
)
BEGIN, END = "<!-- packages: written by docs/make_modules.py -->\n", "<!-- end -->\n"
HEAD = """# Modules

*Every module of the package, with the first line of its docstring.*

<!-- Written by docs/make_modules.py; do not edit. -->

"""


def first_line(path: Path) -> str:
    """Return the first line of the docstring of a module or package."""
    file = path / "__init__.py" if path.is_dir() else path
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n")[0].replace("|", "\\|")


def home(package: str) -> Path:
    """Return the directory or the file of a package."""
    return SOURCE / package if (SOURCE / package).is_dir() else SOURCE / f"{package}.py"


def packages_table() -> str:
    """Return the table of packages, in the order of imports."""
    lines = (f"| `{home(package).name}` | {first_line(home(package))} |\n" for package in PACKAGES)
    return "| package | what it does |\n|---|---|\n" + "".join(lines)


def modules_page() -> str:
    """Return the page of all modules: one table for each package."""
    sections = []
    for package in PACKAGES:
        root = home(package)
        modules = sorted(p for p in root.rglob("*.py") if p.name != "__init__.py") if root.is_dir() else []
        lines = [f"## `{root.name}`\n\n{first_line(root)}\n"]
        if modules:
            lines.append("\n| module | what it does |\n|---|---|\n")
            lines += (f"| `{m.relative_to(root).as_posix()}` | {first_line(m)} |\n" for m in modules)
        sections.append("".join(lines))
    return HEAD + "\n".join(sections)


def architecture_page(text: str) -> str:
    """Return the text of architecture.md with its table of packages renewed."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{packages_table()}\n{END}{rest.partition(END)[2]}"


def pages() -> dict[Path, str]:
    """Return the text of both pages by their path."""
    architecture = DOCS / "architecture.md"
    current = architecture.read_text(encoding="utf-8")
    return {architecture: architecture_page(current), DOCS / "modules.md": modules_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
