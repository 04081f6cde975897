"""What works without JAX and Optuna, and what the others say."""

import subprocess
import sys

import pytest

# Run before anything else in a new process: as if the packages were not installed.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.split(".")[0] in ("jax", "jaxlib", "optuna", "sqlalchemy")
        return None if hidden else PathFinder.find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""
TABLE = "a,b,y\n" + "".join(f"{i % 2},{i % 3},{i % 2}\n" for i in range(60))


def run(code, *arguments, folder):
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_closed_forms_circuits_inference_and_export_work_without_them(tmp_path):
    code = """
import tinybayes as tb
from tinybayes import *
train, test = tb.datasets.load("iris")
net = tb.learn_classifier(train, structure="chow-liu")
assert tb.evaluate(net, test).error < 0.2
circuit = tb.compile_circuit(net)
assert circuit.marginals(test.X[:2]) is not None
tb.learn_circuit(train)
tb.save(net, "net.tb")
tb.export(tb.load("net.tb"), to="c", output="firmware")
assert not {"jax", "optuna"} & set(sys.modules)
"""
    done = run(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "firmware").glob("*.c"))


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ('tb.learn_classifier(train, training="hybrid")', "train"),
        ("tb.learn_latent_tree(train)", "train"),
        ("tb.QuantizedNetClassifier().fit(X, y)", "train"),
        ('tb.BayesNetClassifier(training="hybrid").fit(X, y)', "train"),
        ('tb.CircuitClassifier(method="latent").fit(X, y)', "train"),
        ('tb.explore("table.csv", "y", output="search")', "search"),
    ],
)
def test_what_needs_them_says_what_to_install(call, extra, tmp_path):
    code = f"""
import tinybayes as tb
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
train, _ = tb.datasets.load("iris")
try:
    {call}
except tb.TinybayesError as problem:
    print(problem)
"""
    done = run(code, folder=tmp_path)
    assert f"pip install 'tinybayes[{extra}]'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["explore", "table.csv", "--target", "y", "--time", "5s", "-o", "search"],
        ["demo", "--time", "5s", "-o", "demo"],
        ["fit", "table.csv", "--target", "y", "--training", "hybrid", "-o", "net.tb"],
        ["learn-circuit", "table.csv", "--method", "latent", "-o", "circuit.tb"],
    ],
    ids=lambda command: command[0],
)
def test_commands_end_with_code_2_and_one_line(command, tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    done = run("from tinybayes.cli import main; main()", *command, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "pip install 'tinybayes[" in done.stderr
    assert "Traceback" not in done.stderr
