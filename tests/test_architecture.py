"""The rooms of the package and who may import from whom; docs/architecture.md draws the same picture."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tinybayes

SOURCE = Path(__file__).parent.parent / "src" / "tinybayes"
THIN = {("model/circuit.py", "tinybayes.infer.Marginals")}  # queries on the circuit: a type for completion, no code
ROOMS = [
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
]
# The parts of `learn`, each with those that it may import besides `interrupts`.
LEARN: dict[str, set[str]] = {
    "interrupts": set(),
    "closed_form": set(),
    "training": {"closed_form"},
    "circuits": {"closed_form", "training"},
    "ties": {"closed_form"},
    "trees": set(),
    "hybrid": {"closed_form", "training"},
    "classifier": {"closed_form", "hybrid", "training"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def room(parts):
    return parts[0].removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_from_rooms_before_them(path):
    here = path.relative_to(SOURCE).parts
    if here in {("__init__.py",), ("__main__.py",)}:
        return  # the index of public names, and the way in
    for name in imports(path):
        known = name == "tinybayes.__version__" or ("/".join(here), name) in THIN
        if name.split(".")[0] == "tinybayes" and not known:
            there = room(name.split(".")[1:])
            assert ROOMS.index(there) <= ROOMS.index(room(here)), f"{'/'.join(here)} imports {name}"


@pytest.mark.parametrize("path", sorted((SOURCE / "learn").rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_parts_of_learn_import_only_what_they_may(path):
    here = path.relative_to(SOURCE).parts
    if here == ("learn", "__init__.py"):
        return  # the index of its public names
    part = room(here[1:])
    for name in imports(path):
        if name.startswith("tinybayes.learn."):
            assert room(name.split(".")[2:]) in LEARN[part] | {part, "interrupts"}, f"{'/'.join(here)} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_numba_and_jax_stay_in_their_rooms(path):
    names = {name.split(".")[0] for name in imports(path)}
    here = room(path.relative_to(SOURCE).parts)
    assert "numba" not in names or here == "_kernels"
    assert not names & {"jax", "optax"} or here == "learn"
    assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


@pytest.mark.parametrize("module", ["tinybayes", "tinybayes.report.front", "tinybayes.cli._console"])
def test_modules_that_every_command_needs_load_nothing_heavy(module):
    heavy = ("jax", "numba", "plotly", "pandas", "sklearn")
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_prediction_loads_no_circuits_samplers_and_join_trees():
    code = "import sys, tinybayes.infer.scores; print(*(m for m in sys.modules if m.startswith('tinybayes.infer.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "tinybayes.infer.scores" in loaded
    assert not [name for name in loaded if name.split(".")[2] in ("ask", "circuit", "gibbs", "join", "sampling")]


def test_a_function_goes_before_its_module_of_the_same_name():
    code = (
        "import tinybayes.infer.ask, tinybayes.infer.gibbs; from tinybayes.infer import ask, evaluate, gibbs; "
        "print(callable(ask), callable(evaluate), callable(gibbs), callable(tinybayes.infer.gibbs))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4


def test_type_checkers_see_the_names_of_inference():
    tree = ast.parse((SOURCE / "infer" / "__init__.pyi").read_text())
    stub = {f"{n.module}.{a.name}" for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert stub == {f"{home}.{name}" for name, home in tinybayes.infer._HOME_OF.items()}
    assert all(hasattr(tinybayes.infer, name) for name in tinybayes.infer.__all__)
    assert not hasattr(tinybayes.infer, "nonsense")


def test_the_public_names_are_few_and_type_checkers_see_the_same_ones():
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    stub = {f"{n.module}.{a.name}" for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    homes = {f"{home}.{name}" for name, home in tinybayes._HOME_OF.items()}
    rooms = {f"tinybayes.{name}" for name in tinybayes._ROOMS}
    assert stub == homes | rooms | {"tinybayes.data.named"}
    assert len(tinybayes.__all__) <= 50
    assert set(tinybayes.__all__) <= set(dir(tinybayes))
    with pytest.raises(AttributeError, match="has no attribute 'to_markov'"):
        tinybayes.to_markov  # noqa: B018
