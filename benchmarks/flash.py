"""The search at 1, 4, 16 and 64 kB of flash on twelve tables, beside other libraries of the same bytes.

    TINYBAYES_DATA=DIR python benchmarks/flash.py [--seconds 60] [--only ours peers programs] [--before DIR] [--page]

*ours*: one directory for each table, searched for the largest budget first; smaller budgets resume it, as a user would.
Flash is that of the whole program on a Cortex-M0+. *peers*: models without any code: a random forest of scikit-learn at
4 bytes a node, and a multi-layer perceptron at a byte a weight and four a bias, each with the best of several settings
on the validation rows of our search, learned again from all training rows. LightGBM at 4 bytes a node is taken from
trees.json. *programs*: forests and perceptrons at 1 and 4 kB with the code that runs them, as our exporter writes it:
forests of shares or votes, and perceptrons of 8 bits (rounding to them is not done: it would add errors). `--before`
runs the search of another checkout; that of release 0.1.0 (6cc1cee) has a budget for parameters alone, so its programs
are larger. The test rows are used once. `--page` writes the page.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import provenance
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from trees import BUDGETS, NODE, TABLES, read

from tinybayes.search.prepare import make_views
from tinybayes.search.views import Views

ROOT = Path(__file__).parent.parent
RESULTS, TREES = (ROOT / "benchmarks" / "results" / name for name in ("flash.json", "trees.json"))
PAGE = ROOT / "docs" / "explore.md"
MARKS = "<!-- flash: written by benchmarks/flash.py -->", "<!-- end of flash -->"
WHO = {"tinybayes": "tinybayes", "before": "release 0.1.0", "LightGBM": "LightGBM"}
WHO |= {"forest": "random forest", "perceptron": "8-bit perceptron"}
PROGRAMS = {"forest program": "random forest with code", "perceptron program": "8-bit perceptron with code"}
SEARCH = """
import json, os, sys
from tinybayes.search import explore

def main():
    train, test, place, seconds, budgets = json.loads(sys.argv[1])
    workers = len(os.sched_getaffinity(0))
    for flash in budgets:
        if hasattr(explore, "Execution"):
            from tinybayes import Budget
            how = {"budget": Budget(flash=flash), "execution": explore.Execution(workers=workers)}
        else:  # release 0.1.0: the budget counts parameters only
            how = {"budget_bits": 8 * flash, "workers": workers}
        chosen = explore.explore(train, "label", test=test, output=place, seconds=seconds, **how).chosen
        keep = [k for k in ("label", "validation_error", "test_error", "flash", "bytes") if chosen and k in chosen]
        print(json.dumps({"budget": flash} | {k: chosen[k] for k in keep}), flush=True)

if __name__ == "__main__":
    main()
"""


def searched(name: str, seconds: float, checkout: Path) -> Iterator[dict[str, Any]]:
    """Yield what a search of a checkout chose at each budget."""
    tables = Path(os.environ["TINYBAYES_DATA"]) / "tables"
    with tempfile.TemporaryDirectory() as place:
        script = Path(place) / "search.py"
        script.write_text(SEARCH)
        paths = [str(tables / f"{name}.{part}.csv.gz") for part in ("train", "test")]
        given = json.dumps([*paths, str(Path(place) / "search"), seconds, sorted(BUDGETS, reverse=True)])
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, script, given], stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        for text in process.stdout:
            line = json.loads(text)
            yield (
                {"data": name, "error": line.pop("test_error", None), "asked": seconds}
                | line
                | {"seconds": round(time.perf_counter() - began, 1)}
            )
            began = time.perf_counter()
        if process.wait():
            raise SystemExit(f"the search of {name} failed")


def prepared(frame: pd.DataFrame) -> Any:
    """Return a transformer for other libraries: standardised numbers, states as indicators."""
    numbers = [c for c in frame.columns if pd.api.types.is_numeric_dtype(frame[c])]
    states = [c for c in frame.columns if c not in numbers]
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), states),
        sparse_threshold=0,
    )


def encoded(name: str) -> tuple[Views, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the splits of our search, and the training and test rows for other libraries."""
    train, test, target = read(name)
    views = make_views(train, target, test=test)
    features = [c for c in train.columns if c != target]
    transformer = prepared(train[features]).fit(train.iloc[views.train][features])
    rows, others = (
        (np.asarray(transformer.transform(part[features])), np.asarray(part[target].astype(str)))
        for part in (train, test)
    )
    return views, rows, others


def forests(budget: int, inputs: int, classes: int) -> Iterator[Any]:
    """Yield forests of at most so many bytes."""
    for trees, share in product((5, 10, 20, 50, 100, 200), ("sqrt", 0.5)):
        leaves = (budget // NODE // trees + 1) // 2
        if leaves >= 4:
            yield RandomForestClassifier(trees, max_leaf_nodes=leaves, max_features=share, random_state=0, n_jobs=-1)


def perceptrons(budget: int, inputs: int, classes: int) -> Iterator[Any]:
    """Yield networks of one or two hidden layers of at most so many bytes."""
    for layers, alpha, rate in product((1, 2), (1e-4, 1e-2, 1.0), (1e-3, 1e-2)):
        units = max((u for u in range(1, 513) if _bytes(inputs, [u] * layers, classes) <= budget), default=0)
        if units >= 2:
            yield MLPClassifier([units] * layers, alpha=alpha, learning_rate_init=rate, max_iter=300, random_state=0)


def _bytes(inputs: int, hidden: list[int], classes: int) -> int:
    sizes = [inputs, *hidden, classes]
    return sum(a * b + 4 * b for a, b in pairwise(sizes))


def peers(name: str) -> Iterator[dict[str, Any]]:
    """Yield the test errors of other libraries at each budget."""
    views, (X, y), (Z, z) = encoded(name)
    for budget, (who, make) in product(BUDGETS, (("forest", forests), ("perceptron", perceptrons))):
        best: tuple[float, Any] = (2.0, None)
        for model in make(budget, X.shape[1], len(np.unique(y))):
            model.fit(X[views.train], y[views.train])
            best = min(
                best, (float((model.predict(X[views.valid]) != y[views.valid]).mean()), model), key=lambda b: b[0]
            )
        error = None if best[1] is None else float((best[1].fit(X, y).predict(Z) != z).mean())
        yield {"data": name, "budget": budget, "who": who, "error": error, "setting": str(best[1])}


def programs(name: str) -> Iterator[dict[str, Any]]:
    """Yield the test errors of forests and perceptrons whose programs keep the two smaller budgets."""
    from tinybayes.deploy import from_sklearn
    from tinybayes.deploy.price import program_cost
    from tinybayes.search.budget import Budget
    from tinybayes.search.families import FAMILIES

    views, (X, y), (Z, z) = encoded(name)
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    own, held = (X[views.train], y[views.train]), (X[views.valid], y[views.valid])

    def labels(forest: Any, votes: bool, rows: np.ndarray) -> np.ndarray:
        if not votes:
            return np.asarray(forest.predict(rows))
        shares = sum(np.eye(len(forest.classes_))[tree.predict(rows).astype(int)] for tree in forest.estimators_)
        return np.asarray(forest.classes_[np.argmax(shares, axis=1)])

    for budget in BUDGETS[:2]:
        best: tuple[float, Any, bool] = (2.0, None, False)
        for trees, share, votes in product((5, 10, 20, 50), ("sqrt", 0.5), (False, True)):
            for leaves in (128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4):  # the most that fit
                if 2 * trees * leaves > budget:
                    continue
                forest = RandomForestClassifier(trees, max_leaf_nodes=leaves, max_features=share, random_state=0)
                forest.fit(*own)
                if program_cost(from_sklearn(forest, votes=votes), most=0).flash <= budget:
                    error = float((labels(forest, votes, held[0]) != held[1]).mean())
                    best = min(best, (error, forest, votes), key=lambda b: b[0])
                    break
        error = None if best[1] is None else float((labels(best[1].fit(X, y), best[2], Z) != z).mean())
        yield {"data": name, "budget": budget, "who": "forest program", "error": error, "setting": str(best[1])}
        top: tuple[float, Any] = (2.0, None)
        for layers, alpha, rate in product((1, 2), (1e-4, 1e-2, 1.0), (1e-3, 1e-2)):
            kind = {"bits": 8, "activation": "relu", "inputs": "standard", "layers": layers}
            units = FAMILIES["dense"]._widest(kind, views, Budget(flash=budget))
            if units < 2:
                continue
            net = MLPClassifier([units] * layers, alpha=alpha, learning_rate_init=rate, max_iter=300, random_state=0)
            net.fit(*own)
            top = min(top, (float((net.predict(held[0]) != held[1]).mean()), net), key=lambda b: b[0])
        error = None if top[1] is None else float((top[1].fit(X, y).predict(Z) != z).mean())
        yield {"data": name, "budget": budget, "who": "perceptron program", "error": error, "setting": str(top[1])}


def all_lines(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return our lines and those of LightGBM."""
    trees = json.loads(TREES.read_text())["budgets"] if TREES.exists() else []
    other = [
        {"data": t["data"], "budget": t["budget"], "who": "LightGBM", "error": t["LightGBM"]["error"]} for t in trees
    ]
    return [*results, *(line for line in other if line["data"] in TABLES)]


def _means(errors: dict[tuple[str, str, int], float | None], names: dict[str, str]) -> list[str]:
    """Return a table of means over those tables for which all have a model."""
    whos = [who for who in names if any(key[0] == who for key in errors)]
    text = [f"| budget | tables | {' | '.join(names[who] for who in whos)} |", "|---" * (2 + len(whos)) + "|"]
    for budget in BUDGETS:
        common = [n for n in TABLES if all(errors.get((who, n, budget)) is not None for who in whos)]
        if common:
            means = [np.mean([errors[who, n, budget] for n in common]) for who in whos]
            text.append(f"| {budget // 1000} kB | {len(common)} | {' | '.join(f'{100 * m:.2f}' for m in means)} |")
    return text


def page(results: list[dict[str, Any]]) -> str:
    """Return the table of the page: errors at each budget, and means over tables for which all have a model."""
    errors = {(line["who"], line["data"], line["budget"]): line["error"] for line in all_lines(results)}
    whos = [who for who in WHO if any(key[0] == who for key in errors)]
    text = _means(errors, WHO)
    if any(key[0] in PROGRAMS for key in errors):
        text += ["", *_means(errors, {"tinybayes": WHO["tinybayes"], **PROGRAMS})]
    text += ["", f"| table | budget | {' | '.join(WHO[who] for who in whos)} |", "|---" * (2 + len(whos)) + "|"]
    for name, budget in product(TABLES, BUDGETS):
        own = [errors.get((who, name, budget)) for who in whos]
        if own[0] is not None:
            cells = " | ".join("none" if e is None else f"{100 * e:.1f}" for e in own)
            text.append(f"| {name} | {budget // 1000} kB | {cells} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=TABLES, default=TABLES)
    parts = ("ours", "peers", "programs")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--before", type=Path, help="another checkout, searched instead of this one")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    options = parser.parse_args()
    report = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"lines": []}
    results = report["lines"]
    for name in () if options.page else options.data:
        lines: list[dict[str, Any]] = []
        if "ours" in options.only:
            who, checkout = ("before", options.before) if options.before else ("tinybayes", ROOT)
            lines += [line | {"who": who} for line in searched(name, options.seconds, checkout)]
        if "peers" in options.only and not options.before:
            lines += peers(name)
        if "programs" in options.only and not options.before:
            lines += programs(name)
        known = {(line["who"], line["data"], line["budget"]) for line in lines}
        results = [line for line in results if (line["who"], line["data"], line["budget"]) not in known] + lines
        about = provenance(["numpy", "jax", "scikit-learn"]) | {"load": round(os.getloadavg()[0], 1)}
        report |= {"provenance": about, "lines": results}
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")
        print(*(json.dumps({k: v for k, v in line.items() if k != "setting"}) for line in lines), sep="\n", flush=True)
    if PAGE.read_text().count(MARKS[0]):
        head, _, rest = PAGE.read_text().partition(MARKS[0])
        PAGE.write_text(f"{head}{MARKS[0]}\n\n{page(results)}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
