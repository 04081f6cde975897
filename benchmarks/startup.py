"""What a new process waits for: the import, and the first prediction of a stored model, beside scikit-learn.

    python benchmarks/startup.py                    # results/startup.json and the table of docs/installation.md
    python benchmarks/startup.py --repeat 3 --output somewhere.json

Each contender runs in new processes, by turns; the first one of each warms files and compiled code and does not count.
Processor seconds of the process are compared, less those of an empty one: they do not depend on what else runs.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import provenance
from installation_page import write_page

RESULTS = Path(__file__).parent / "results" / "startup.json"
ROWS = "X = numpy.load('rows.npy')"
CONTENDERS = {  # step: what both do
    "import": {
        "tinybayes": "import tinybayes",
        "scikit-learn": "import sklearn",
    },
    "import of a classifier": {
        "tinybayes": "from tinybayes import BayesNetClassifier",
        "scikit-learn": "from sklearn.naive_bayes import CategoricalNB",
    },
    "load a model, predict 100 rows": {
        "tinybayes": f"import numpy, tinybayes; {ROWS}; tinybayes.predict_codes(tinybayes.load('model.tb'), X)",
        "scikit-learn": f"import numpy, pickle; {ROWS}; pickle.load(open('model.pkl', 'rb')).predict(X)",
    },
    "load a model, predict 100 rows of a frame": {
        "tinybayes": "import pandas, tinybayes; X = pandas.read_csv('rows.csv'); net = tinybayes.load('model.tb'); "
        "tinybayes.predict_codes(net, tinybayes.read_dataset(X, like=net).X)",
        "scikit-learn": "import pandas, pickle; X = pandas.read_csv('rows.csv'); "
        "pickle.load(open('model.pkl', 'rb')).predict(X.to_numpy())",
    },
    "fit on 1,200 rows, predict 100": {
        "tinybayes": f"import numpy; from tinybayes import BayesNetClassifier; {ROWS}; y = numpy.load('y.npy'); "
        "BayesNetClassifier('naive', discretizer=None).fit(numpy.load('X.npy'), y).predict(X)",
        "scikit-learn": "import numpy; from sklearn.naive_bayes import CategoricalNB; "
        f"{ROWS}; y = numpy.load('y.npy'); CategoricalNB(min_categories=17).fit(numpy.load('X.npy'), y).predict(X)",
    },
}
PREPARE = """
import pickle, numpy, pandas, tinybayes
from sklearn.datasets import load_digits
from sklearn.naive_bayes import CategoricalNB
X, y = load_digits(return_X_y=True)
X = X.astype(int)
numpy.save("X.npy", X[:1200]); numpy.save("y.npy", y[:1200]); numpy.save("rows.npy", X[1200:1300])
frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(64)])
frame[1200:1300].to_csv("rows.csv", index=False)
variables = tuple(tinybayes.Variable(f"x{i}", tuple(range(17))) for i in range(64))
data = tinybayes.Dataset(variables, tinybayes.Variable("digit", tuple(range(10))), X[:1200], y[:1200])
tinybayes.save(tinybayes.learn_classifier(data, structure="naive"), "model.tb")
pickle.dump(CategoricalNB(min_categories=17).fit(X[:1200], y[:1200]), open("model.pkl", "wb"))
"""


def seconds(code: str, folder: str) -> tuple[float, float]:
    """Return processor seconds and seconds of a new process that runs some code."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start


def measure(repeat: int) -> dict[str, dict[str, dict[str, float]]]:
    """Run all contenders by turns; return medians."""
    jobs = {(step, name): code for step, both in CONTENDERS.items() for name, code in both.items()}
    jobs["empty", ""] = "pass"
    found: dict[tuple[str, str], list[tuple[float, float]]] = {job: [] for job in jobs}
    with tempfile.TemporaryDirectory() as folder:
        seconds(PREPARE, folder)
        for turn in range(repeat + 1):
            for job, code in jobs.items():
                taken = seconds(code, folder)
                if turn:
                    found[job].append(taken)
    cpu = {job: statistics.median(one[0] for one in all_of) for job, all_of in found.items()}
    wall = {job: statistics.median(one[1] for one in all_of) for job, all_of in found.items()}
    steps: dict[str, dict[str, dict[str, float]]] = {}
    for step, name in jobs:
        if step != "empty":
            figures = {"cpu": round(cpu[step, name] - cpu["empty", ""], 3), "wall": round(wall[step, name], 3)}
            steps.setdefault(step, {})[name] = figures
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15, help="processes of each contender that count")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    about = {**provenance(["tinybayes", "scikit-learn", "numpy", "pandas", "numba"]), "repeat": arguments.repeat}
    result = {"provenance": about, "steps": measure(arguments.repeat)}
    about["load_after"] = os.getloadavg()[0]
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    for step, both in result["steps"].items():
        ours, theirs = both["tinybayes"]["cpu"], both["scikit-learn"]["cpu"]
        print(f"{step}: {ours:.3f} s, scikit-learn {theirs:.3f} s, ratio {ours / theirs:.2f}")
    if arguments.output == RESULTS:
        write_page()


if __name__ == "__main__":
    main()
