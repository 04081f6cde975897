"""The tables of docs/installation.md, from the results of weight.py and startup.py; runs alone, too."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "installation.md"
MEGA = 1e6


def weight_table(result: dict[str, Any]) -> str:
    """One line for each way to install."""
    lines = ["| `pip install` | packages | MB | MB without bytecode |", "|---|---:|---:|---:|"]
    for name, one in result["installs"].items():
        wanted = f"tinybayes[{name}]" if name else "tinybayes"
        sizes = f"{one['bytes'] / MEGA:,.0f} | {(one['bytes'] - one['bytecode']) / MEGA:,.0f}"
        lines.append(f"| `{wanted}` | {len(one['packages'])} | {sizes} |")
    return "\n".join(lines) + "\n"


def package_table(result: dict[str, Any]) -> str:
    """The heaviest packages, and which way of installing brings them."""
    lines = ["| package | version | MB | MB without bytecode | comes with |", "|---|---|---:|---:|---|"]
    installs = {name: one for name, one in result["installs"].items() if name != "all"}
    for name, one in sorted(result["packages"].items(), key=lambda pair: -pair[1]["bytes"]):
        if one["bytes"] < 2 * MEGA:
            continue
        brings = [extra for extra, install in installs.items() if name in install["packages"]]
        shown = "the core" if "" in brings else ", ".join(f"`{extra}`" for extra in brings) or "`all`"
        sizes = f"{one['bytes'] / MEGA:,.1f} | {(one['bytes'] - one['bytecode']) / MEGA:,.1f}"
        lines.append(f"| {name} | {one['version']} | {sizes} | {shown} |")
    return "\n".join(lines) + "\n"


def startup_table(result: dict[str, Any]) -> str:
    """Processor seconds of each step, and their ratio."""
    lines = ["| in a new process | tinybayes | scikit-learn | ratio |", "|---|---:|---:|---:|"]
    for step, both in result["steps"].items():
        ours, theirs = both["tinybayes"]["cpu"], both["scikit-learn"]["cpu"]
        lines.append(f"| {step} | {ours:.2f} s | {theirs:.2f} s | {ours / theirs:.2f} |")
    return "\n".join(lines) + "\n"


def about(result: dict[str, Any]) -> str:
    """Say what was run, and where."""
    made = result["provenance"]
    return f"`{made['command']}`, commit {made['commit']}, Python {made['python']}, {made['system']}, {made['cpu']}."


def write_page() -> None:
    """Replace the tables of the page."""
    text = PAGE.read_text(encoding="utf-8")
    weight, startup = (json.loads((HERE / "results" / f"{name}.json").read_text()) for name in ("weight", "startup"))
    tables = {
        "weight": weight_table(weight) + "\n" + about(weight) + "\n",
        "packages": package_table(weight),
        "startup": startup_table(startup) + "\n" + about(startup) + "\n",
    }
    for name, table in tables.items():
        begin, end = f"<!-- {name}: written by benchmarks/installation_page.py -->\n", "<!-- end -->\n"
        head, _, rest = text.partition(begin)
        text = head + begin + "\n" + table + "\n" + end + rest.partition(end)[2]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_page()
