"""What an installation weighs: every way to install the package, and each package that it brings.

    python benchmarks/weight.py                     # installs .[all] into build/weight, then measures
    python benchmarks/weight.py --environment DIR   # measures an environment in which .[all] is installed

Counted are the files that pip lists for a package, with the bytecode that it compiles, and without. Which packages an
extra needs is read from their metadata. pip itself is not counted. Writes results/weight.json and the tables of
docs/installation.md.
"""

import argparse
import json
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from harness import provenance
from installation_page import write_page
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "weight.json"
WAYS = ("", "sklearn", "arrow", "train", "search", "plot", "onnx", "serve", "distributed", "all")


def install(environment: Path) -> None:
    """Make a fresh environment with everything."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{HERE.parent}[all]"], check=True)


def needed(extra: str, known: dict[str, Distribution]) -> set[str]:
    """Return the package and all that it requires with one extra."""
    found: set[tuple[str, str]] = set()
    waiting = [("tinybayes", ""), ("tinybayes", extra)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in found or name not in known:
            continue
        found.add((name, wanted))
        for line in known[name].requires or ():
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"extra": wanted}):
                waiting += [(canonicalize_name(one.name), more) for more in ("", *one.extras)]
    return {name for name, _ in found}


def size(package: Distribution) -> dict[str, Any]:
    """Return the bytes of a package's files, and those of them that are bytecode."""
    files = [(file.suffix, Path(str(package.locate_file(file)))) for file in package.files or ()]
    sizes = [(suffix == ".pyc", path.stat().st_size) for suffix, path in files if path.is_file()]
    compiled = sum(count for bytecode, count in sizes if bytecode)
    return {"version": package.version, "bytes": sum(count for _, count in sizes), "bytecode": compiled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, help="an environment in which .[all] is installed")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    environment = arguments.environment or HERE.parent / "build" / "weight"
    if arguments.environment is None:
        install(environment)
    (place,) = environment.glob("lib/python3*/site-packages")
    known = {canonicalize_name(one.metadata["Name"]): one for one in distributions(path=[str(place)])}
    ways = {extra: sorted(needed(extra, known)) for extra in WAYS}
    packages = {name: size(known[name]) for name in ways["all"]}
    installs = {
        extra: {kind: sum(packages[name][kind] for name in names) for kind in ("bytes", "bytecode")}
        | {"packages": names}
        for extra, names in ways.items()
    }
    result = {"provenance": provenance([]), "installs": installs, "packages": packages}
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    for extra, one in installs.items():
        bare = one["bytes"] - one["bytecode"]
        print(f"{extra or 'core'}: {one['bytes'] / 1e6:.0f} MB, {bare / 1e6:.0f} without bytecode")
    if arguments.output == RESULTS:
        write_page()


if __name__ == "__main__":
    main()
