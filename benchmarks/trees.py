"""Boosted trees beside LightGBM and scikit-learn: equal trees and leaves, speed, and error under budgets of flash.

    TINYBAYES_DATA=DIR python benchmarks/trees.py [--part accuracy speed budgets] [--data letter crx] [--page]

*accuracy*: 100 rounds of 31 leaves each, no price; test errors. *speed*: seconds of a fit. *budgets*: at each size of
flash, both learners try as many settings on the same training rows, are chosen by the same validation rows, and learn
again from both. Our flash is the whole program on a Cortex-M0+, as it is priced; that of LightGBM is 4 bytes a node,
without any code. The test rows are used once. `--page` writes the tables of docs/trees.md from the results.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import provenance
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier

from tinybayes.data.named import load_raw
from tinybayes.estimators import TreeEnsembleClassifier
from tinybayes.infer import predict_codes
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Effort
from tinybayes.search.families.trees import TREE
from tinybayes.search.prepare import make_views
from tinybayes.search.trials import carry_out
from tinybayes.search.views import Views

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "trees.json"
PAGE = ROOT / "docs" / "trees.md"
TABLES = ("chess", "contraceptive", "crx", "german", "ionosphere", "marketing", "movement_libras", "mushroom")
TABLES += ("phoneme", "ring", "splice", "vowel")
BUDGETS = (1000, 4000, 16000, 64000)
ROUNDS, LEAVES, RATE = 100, 31, 0.1
NODE = 4  # bytes of a node of LightGBM
MARKS = "<!-- trees: written by benchmarks/trees.py -->", "<!-- end of trees -->"


def read(name: str) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return training rows, test rows and the name of the class."""
    if name in TABLES:
        tables = Path(os.environ["TINYBAYES_DATA"]) / "tables"
        parts = [pd.read_csv(tables / f"{name}.{part}.csv.gz") for part in ("train", "test")]
        return parts[0], parts[1], "label"
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = load_raw(name)
    frame = pd.DataFrame(np.asarray(X)).rename(columns=lambda c: f"x{c}").assign(label=np.asarray(y))
    test = np.random.default_rng(0).permutation(len(frame)) < len(frame) // 5
    return frame[~test].reset_index(drop=True), frame[test].reset_index(drop=True), "label"


def as_numbers(train: pd.DataFrame, *others: pd.DataFrame) -> list[pd.DataFrame]:
    """Return features for the other libraries: text as categories, everything else as numbers."""
    parts = [train.copy(), *(other.copy() for other in others)]
    for column in train.columns:
        if not pd.api.types.is_numeric_dtype(train[column]):
            kind = pd.CategoricalDtype(sorted(train[column].dropna().astype(str).unique()))
            for part in parts:
                part[column] = part[column].astype("string").astype(object).astype(kind)
    return parts


def lightgbm(**options: Any) -> Any:
    """Return a LightGBM classifier."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, deterministic=True, seed=0, **options)


def accuracy(name: str) -> dict[str, Any]:
    """Return test errors at equal trees and leaves."""
    train, test, target = read(name)
    features = [c for c in train.columns if c != target]
    ours = TreeEnsembleClassifier(kind="boosted", rounds=ROUNDS, leaves=LEAVES, learning_rate=RATE, leaf_rows=20)
    ours.set_params(row_share=1.0, feature_share=1.0, n_bins=255)  # as the others
    X, Z = as_numbers(train[features], test[features])
    size = {"learning_rate": RATE, "min_child_samples": 20}
    contenders = {
        "tinybayes": (ours, train[features], test[features]),
        "LightGBM": (lightgbm(n_estimators=ROUNDS, num_leaves=LEAVES, **size), X, Z),
        "scikit-learn": (
            HistGradientBoostingClassifier(
                max_iter=ROUNDS, max_leaf_nodes=LEAVES, early_stopping=False, categorical_features="from_dtype"
            ),
            X,
            Z,
        ),
    }
    errors, seconds = {}, {}
    for who, (model, learned, asked) in contenders.items():
        began = time.perf_counter()
        model.fit(learned, train[target])
        seconds[who] = round(time.perf_counter() - began, 3)
        errors[who] = float((np.asarray(model.predict(asked)) != np.asarray(test[target])).mean())
    return {"data": name, "test_rows": len(test), "error": errors, "seconds": seconds}


def our_settings() -> Iterator[dict[str, Any]]:
    """Yield one setting for each run of the learner; rounds vary within a run."""
    every = {"learning_rate": 0.3, "threshold_price": 0.1, "feature_share": 1.0, "row_share": 1.0}
    drawn = {"learning_rate": 0.2, "threshold_price": 0.3, "feature_share": 0.3, "row_share": 0.8, "leaf_rows": 5}
    for symmetric, depth in product((True, False), (2, 3, 4, 5)):
        size = {"family": "boosted", "symmetric": symmetric, "depth": depth, "ridge": 1.0, "seed": 0, "view": "trees"}
        yield size | every | {"leaf_rows": 5 if symmetric else 20}
        yield size | drawn


def ours_at(views: Views, budget: int) -> dict[str, Any]:
    """Choose among our settings by the validation rows, learn again from all, and look at the test rows."""
    limit = Budget(flash=budget)
    effort = Effort(0, patience=300.0, budget=limit)  # seconds that no run of the learner takes
    outcomes = []
    for setting in our_settings():
        batch = [{**setting, "rounds": rounds, "levels": 16} for rounds in (5, 10, 20, 40, 80, 160, 320, 640)]
        outcomes += carry_out(views, batch, effort)
    outcomes += carry_out(views, TREE.settings(), effort)
    within = [o for o in outcomes if limit.allows(o.price)]
    best = min(within, key=lambda o: (o.error, o.loss))
    final = carry_out(views, [best.setting], effort._replace(final=True))[0]
    if not limit.allows(final.price):
        final = best
    view = views.by_name["trees"].test
    error = float((predict_codes(final.model, view.X) != view.y).mean())
    return {"error": error, "flash": final.price.flash, "setting": best.setting, "settings": len(outcomes)}


def lightgbm_at(views: Views, frames: tuple[Any, ...], budget: int) -> dict[str, Any]:
    """Do the same with LightGBM: as many leaves, rates and sizes of leaves; as many rounds as the bytes allow."""
    X, y, Z, z = frames
    best: tuple[float, float, dict[str, Any], int] = (2.0, 0.0, {}, 1)
    for leaves, rate, rows in product((4, 8, 16, 31), (0.1, 0.3), (5, 20)):
        size = {"num_leaves": leaves, "learning_rate": rate, "min_child_samples": rows}
        most = rounds_within(budget, leaves, len(np.unique(y)))
        if not most:
            continue
        model = lightgbm(n_estimators=min(most, 640), **size).fit(X.iloc[views.train], y[views.train])
        for rounds in sorted({min(r, most) for r in (5, 10, 20, 40, 80, 160, 320, 640)}):
            p = model.predict_proba(X.iloc[views.valid], num_iteration=rounds)
            wrong = float((model.classes_[p.argmax(axis=1)] != y[views.valid]).mean())
            loss = -float(
                np.log(np.maximum(p[np.arange(len(p)), np.searchsorted(model.classes_, y[views.valid])], 1e-9)).mean()
            )
            if (wrong, loss) < best[:2]:
                best = wrong, loss, size, rounds
    if not best[2]:
        return {"error": None}
    model = lightgbm(n_estimators=best[3], **best[2]).fit(X, y)
    return {"error": float((model.predict(Z) != z).mean()), "setting": best[2] | {"rounds": best[3]}}


def rounds_within(budget: int, leaves: int, classes: int) -> int:
    """Return the rounds whose nodes fit, each tree of so many leaves."""
    trees = classes if classes > 2 else 1
    return budget // (NODE * (2 * leaves - 1) * trees)


def budgets(name: str, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield both errors at each budget."""
    train, test, target = read(name)
    views = make_views(train, target, test=test)
    features = [c for c in train.columns if c != target]
    X, Z = as_numbers(train[features], test[features])
    frames = X, np.asarray(train[target].astype(str)), Z, np.asarray(test[target].astype(str))
    for budget in sizes:
        ours, theirs = ours_at(views, budget), lightgbm_at(views, frames, budget)
        yield {"data": name, "budget": budget, "test_rows": len(test), "tinybayes": ours, "LightGBM": theirs}


def speed() -> dict[str, Any]:
    """Return seconds of the second fit on letter and on a million rows: the first one may compile."""
    random = np.random.default_rng(0)
    million = random.normal(size=(1_000_000, 20)).astype(np.float32)
    label = (million[:, :5].sum(axis=1) + random.normal(size=1_000_000) > 0).astype(int)
    letter, classes = load_raw("letter")
    cases = {"letter": (np.asarray(letter, dtype=float), np.asarray(classes), 50), "1e6 x 20": (million, label, 20)}
    lines = {}
    for name, (X, y, rounds) in cases.items():
        ours = TreeEnsembleClassifier(kind="boosted", rounds=rounds, leaves=LEAVES, leaf_rows=20)
        ours.set_params(row_share=1.0, feature_share=1.0, n_bins=255)
        theirs = HistGradientBoostingClassifier(max_iter=rounds, max_leaf_nodes=LEAVES, early_stopping=False)
        lines[name] = {}
        for who, model in (("tinybayes", ours), ("scikit-learn", theirs), ("LightGBM", lightgbm(n_estimators=rounds))):
            times = []
            for _ in range(2):
                began = time.perf_counter()
                model.fit(X, y)
                times.append(time.perf_counter() - began)
            lines[name][who] = round(min(times), 3)
            print(name, who, lines[name][who], flush=True)
    return lines


def page(results: dict[str, Any]) -> str:
    """Return the tables of docs/trees.md."""
    lines = ["Test errors in per cent at 100 rounds of 31 leaves, without a price:", ""]
    whos = ("tinybayes", "LightGBM", "scikit-learn")
    lines += [f"| table | {' | '.join(whos)} |", "|---" * 4 + "|"]
    for line in results["accuracy"]:
        lines.append(f"| {line['data']} | " + " | ".join(f"{100 * line['error'][who]:.2f}" for who in whos) + " |")
    means = [100 * np.mean([line["error"][who] for line in results["accuracy"]]) for who in whos]
    lines += [f"| mean | {' | '.join(f'{mean:.2f}' for mean in means)} |", ""]
    if results["speed"]:
        lines += ["Seconds of a fit:", "", f"| rows | {' | '.join(whos)} |", "|---" * 4 + "|"]
        lines += [
            f"| {name} | {' | '.join(f'{one[who]:.2f}' for who in whos)} |" for name, one in results["speed"].items()
        ]
        lines.append("")
    lines += ["Test errors in per cent within budgets of flash, LightGBM at 4 bytes a node without code:", ""]
    sizes = " | ".join(f"{budget // 1000} kB, ours | LightGBM" for budget in BUDGETS)
    lines += [f"| table | {sizes} |", "|---" * (1 + 2 * len(BUDGETS)) + "|"]
    figures = {(line["data"], line["budget"]): line for line in results["budgets"]}
    names = dict.fromkeys(line["data"] for line in results["budgets"])
    names = [name for name in names if all((name, budget) in figures for budget in BUDGETS)]
    rows = [[figures[name, budget][who]["error"] for budget in BUDGETS for who in whos[:2]] for name in names]
    for name, row in zip(names, rows, strict=True):
        lines.append(f"| {name} | " + " | ".join("none" if e is None else f"{100 * e:.1f}" for e in row) + " |")
    if not rows:
        return "\n".join(lines[:-3])
    both = np.array([[np.nan if e is None else e for e in row] for row in rows]).reshape(len(names), -1, 2)
    both[np.isnan(both).any(axis=2)] = np.nan  # a mean of tables where both have a model
    lines.append(
        "| mean of both | " + " | ".join(f"{100 * e:.2f}" for e in np.nanmean(both, axis=0).reshape(-1)) + " |"
    )
    return "\n".join(lines)


def write_page(results: dict[str, Any]) -> None:
    """Replace what stands between the marks of docs/trees.md."""
    text = PAGE.read_text()
    before, after = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{page(results)}\n\n{MARKS[1]}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--part", nargs="*", choices=("accuracy", "speed", "budgets"), default=["accuracy", "speed", "budgets"]
    )
    parser.add_argument("--data", nargs="*", default=[*TABLES, "digits", "letter", "satimage"])
    parser.add_argument("--budget", nargs="*", type=int, default=BUDGETS, help="bytes of flash")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the file of results")
    parser.add_argument("--merge", nargs="*", type=Path, default=[], help="files whose budgets are taken over")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    options = parser.parse_args()
    file = options.output
    results = json.loads(file.read_text()) if file.exists() else {"accuracy": [], "budgets": [], "speed": {}}
    for other in options.merge:
        own = json.loads(other.read_text())
        lines = [line | {"provenance": own["provenance"]} for line in own["budgets"]]
        known = {(line["data"], line["budget"]) for line in lines}
        results["budgets"] = [old for old in results["budgets"] if (old["data"], old["budget"]) not in known] + lines
    if options.merge:
        file.write_text(json.dumps(results, indent=1) + "\n")
    if not options.page and not options.merge:
        results["provenance"] = provenance(["lightgbm", "numpy", "scikit-learn"])
        for name in options.data if "accuracy" in options.part else ():
            line = accuracy(name)
            print(line, flush=True)
            results["accuracy"] = [old for old in results["accuracy"] if old["data"] != name] + [line]
        for name in options.data if "budgets" in options.part else ():
            for line in budgets(name, options.budget):
                print(
                    {k: line[k] for k in ("data", "budget")},
                    line["tinybayes"]["error"],
                    line["LightGBM"]["error"],
                    flush=True,
                )
                key = name, line["budget"]
                kept = [old for old in results["budgets"] if (old["data"], old["budget"]) != key]
                results["budgets"] = [*kept, line]
                file.write_text(json.dumps(results, indent=1) + "\n")
        if "speed" in options.part:
            results["speed"] = speed()
        file.write_text(json.dumps(results, indent=1) + "\n")
    if file == RESULTS:
        write_page(results)


if __name__ == "__main__":
    main()
