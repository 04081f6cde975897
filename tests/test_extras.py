"""What works without the packages of the extras, and what the rest says."""

import subprocess
import sys

import pytest

# Run before anything else in a new process: as if the packages were not installed.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

HIDDEN = {"jax", "jaxlib", "optuna", "sqlalchemy", "pyarrow", "pysat", "sklearn", "scipy", "matplotlib", "onnx"}
HIDDEN |= {"starlette"}

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.split(".")[0] in HIDDEN
        return None if hidden else PathFinder.find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""
TABLE = "a,b,y\n" + "".join(f"{i % 2},{i % 3},{i % 2}\n" for i in range(60))


def run(code, *arguments, folder):
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_closed_forms_circuits_inference_and_export_work_without_them(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "table.arff").write_text(
        "@relation t\n@attribute a numeric\n@attribute y {u,v}\n@data\n" + "1,u\n2,v\n" * 30
    )
    code = """
import tinybayes as tb
train = tb.read_dataset("table.csv", target="y")
assert len(tb.read_dataset("table.arff", target="y")) == 60
for method in ("uniform", "quantile", "histogram", "grid"):
    tb.read_dataset("table.csv", target="y", discretization=tb.Discretization(discretizer=method))
assert tb.read_dataset("table.csv").X.shape == (60, 3)
net = tb.learn_classifier(train, structure="chow-liu")
assert tb.evaluate(net, train).error < 0.2
circuit = tb.compile_circuit(net)
assert circuit.marginals(train.X[:2]) is not None
tb.learn_circuit(train)
tb.save(net, "net.tb")
tb.export(tb.load("net.tb"), to="c", output="firmware")
for name in ("compress", "cost", "data", "deploy", "infer", "learn", "model", "search"):
    getattr(tb, name)
assert not {"jax", "optuna", "pyarrow", "sklearn", "scipy"} & set(sys.modules)
"""
    done = run(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "firmware").glob("*.c"))


def test_commands_work_without_them(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    commands = [
        ["fit", "table.csv", "--target", "y", "-o", "net.tb"],
        ["predict", "net.tb", "table.csv", "-o", "labels.csv"],
        ["evaluate", "net.tb", "table.csv"],
        ["info", "net.tb"],
        ["explain", "net.tb", "table.csv", "--row", "1"],
        ["learn-circuit", "table.csv", "-o", "circuit.tb"],
        ["query", "circuit.tb", "y=1"],
        ["export", "net.tb", "--to", "c", "-o", "firmware"],
    ]
    code = f"""
from tinybayes.cli import main
for words in {commands}:
    sys.argv = ["tinybayes", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
assert not {{"jax", "optuna", "pyarrow", "sklearn", "scipy"}} & set(sys.modules)
"""
    done = run(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr


NEEDS = [
    ('tb.learn_classifier(train, training="hybrid")', "train"),
    ("tb.learn_latent_tree(train)", "train"),
    ("tb.BayesNetClassifier()", "sklearn"),
    ("from tinybayes import AnomalyDetector", "sklearn"),
    ("from tinybayes.data import MDLPDiscretizer", "sklearn"),
    ('tb.datasets.load("iris")', "sklearn"),
    ("tb.relearn(tb.tie(tb.learn_classifier(train), levels=2).model, train)", "sklearn"),
    ('tb.read_dataset("table.parquet")', "arrow"),
    ('tb.read_dataset("table.csv.zst")', "arrow"),
    ('tb.explore("table.csv", "y", output="search")', "search"),
]


def test_what_needs_them_says_what_to_install(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "table.parquet").touch()
    (tmp_path / "table.csv.zst").touch()
    code = f"""
import tinybayes as tb
train = tb.read_dataset("table.csv", target="y")
for call, _ in {NEEDS}:
    try:
        exec(call)
    except tb.TinybayesError as problem:
        print(problem)
    else:
        print("no error")
"""
    done = run(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for line, (call, extra) in zip(done.stdout.splitlines(), NEEDS, strict=True):
        assert f"pip install 'tinybayes[{extra}]'" in line, call


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
    assert "Searching" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
