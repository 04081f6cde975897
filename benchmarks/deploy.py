"""Exported classifiers on an emulated Cortex-M0+: flash, instructions, error, mismatches, beside other generators of C.

Run it as ``python benchmarks/deploy.py`` with the peers installed (``pip install emlearn m2cgen micromlgen``) and
Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; README.md beside it says how to read it.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from deploy_nets import NETS, columns, learn_nets, whole
from deploy_peers import EXPORTERS, Exporters, fit, scale
from deploy_report import cells, findings, judge, markdown, sections
from harness import Figures, provenance
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import StratifiedKFold, train_test_split

from tinybayes import datasets
from tinybayes.cost import model_cost
from tinybayes.data.encode import encode_matrix
from tinybayes.deploy import load as load_model
from tinybayes.deploy import save
from tinybayes.deploy._boards.boards import BOARDS, KIB
from tinybayes.deploy._boards.monitor import Probe
from tinybayes.deploy.measure import Measurement, measure_program
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.scores import predict_codes
from tinybayes.learn.classifier import HybridOptions, hold_out, learn_classifier
from tinybayes.learn.closed_form.maximum_likelihood import maximum_likelihood
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.model import BayesNet, Dataset

DATA = ("digits", "letter-codes", "letter", "satimage")
PACKAGES = ["numpy", "jax", "scikit-learn", "emlearn", "m2cgen", "micromlgen"]
M0 = BOARDS["m0+"]
# The same code on a board with more memory, for what does not fit: it is the compiler that makes it M0+ code.
ROOMY = replace(M0, machine="mps2-an385", flash=4096 * KIB, ram=4096 * KIB, hertz=25_000_000)
TIGHT = {"structure_noise": 0.1, "sharing": 1.0}


@dataclass(frozen=True)
class Recipe:
    """One of our models; of a plain number of bits, the share before the point is chosen on validation rows."""

    structure: str
    bits: int | tuple[int, int]
    features: int | None = None  # keep so many, chosen greedily on validation rows
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        bits = self.bits if isinstance(self.bits, int) else sum(self.bits)
        kind = {"naive": "NB", "chow-liu": "TAN", "heuristic": "TAN of near pixels"}[self.structure]
        return f"tinybayes {kind}, {bits} bits" + (f", {self.features} features" if self.features else "")


# Settings near those that sweeps on letter chose (experiments/); the others are the package's own.
NAIVE = (("lam", 63.0), ("gamma", 1.5))
LONG = (("lam", 64.0), ("gamma", 6.6), ("learning_rate", 3e-3), ("epochs", 500), *TIGHT.items())
MIDDLE = tuple(TIGHT.items())
RECIPES = {
    "digits": [
        *(Recipe("naive", b, k) for b in (2, 3, 4) for k in (6, 10, 16, 24)),
        *(Recipe("naive", b) for b in (2, 3, 4, 5, 6, 8)),
        *(Recipe("chow-liu", b, None, MIDDLE) for b in (2, 3, 4, 6)),
        *(Recipe("heuristic", (3, b), None, (*MIDDLE, ("image_shape", (8, 8)))) for b in (-1, 0, 1, 3)),
    ],
    "letter": [
        *(Recipe("naive", (3, 1), k, NAIVE) for k in (5, 6, 8)),
        *(Recipe("naive", b, None, NAIVE) for b in (3, 4, 6)),
        *(Recipe("chow-liu", (4, b - 4), None, LONG) for b in (5, 6)),
    ],
    "letter-codes": [
        *(Recipe("naive", (3, 1), k, NAIVE) for k in (5, 6, 8)),
        *(Recipe("naive", b, None, NAIVE) for b in (3, 4, 6)),
        *(Recipe("chow-liu", (4, b - 4), None, LONG) for b in (3, 4, 5, 6)),
    ],
    "satimage": [
        *(Recipe("naive", b, k) for b in (3, 4) for k in (4, 8, 16)),
        *(Recipe("naive", b) for b in (3, 4, 6)),
        *(Recipe("chow-liu", b, None, MIDDLE) for b in (3, 4)),
    ],
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Raw numbers and codes of the same rows."""

    split: datasets.Split
    raw: np.ndarray
    raw_test: np.ndarray


def main(
    data: Annotated[list[str] | None, typer.Option(help="Data sets; by default all of them.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few models, to see that everything works.")] = False,
    models: Annotated[Path | None, typer.Option(help="Folder that keeps our trained models for the next run.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for deploy.json and deploy.md.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure nothing: compare the points of the last run.")
    ] = False,
) -> None:
    """Measure our exported classifiers and those of the peers, in one run."""
    console = Console(width=max(150, Console().width))
    if output is None and not quick:
        output = Path(__file__).parent / "results"
    file = None if output is None else output / "deploy.json"
    result: Figures = {"data": {}, "runs": []}
    if file is not None and file.exists() and (data or again):
        result = json.loads(file.read_text())  # the other data sets stay: points of different ones are not compared
    for name in () if again else data or DATA:
        result["runs"] = [run for run in result["runs"] if run["data"] != name]
        result["data"][name], runs = measure_all(name, quick, models, console)
        result["runs"] += runs
    judge(result["runs"])
    for title, headings, table_rows in sections(result):
        table = Table(*headings, title=title, title_justify="left")
        for row in table_rows:
            table.add_row(*row)
        console.print(table)
    for line in findings(result):
        console.print(line, highlight=False)
    if output is not None and file is not None:
        output.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
        (output / "deploy.md").write_text(markdown(result))


def measure_all(name: str, quick: bool, models: Path | None, console: Console) -> tuple[Figures, list[Figures]]:
    """Learn and measure everything on one data set."""
    rows, runs = load(name), []
    about = {"train": len(rows.raw), "test": len(rows.raw_test), "source": public(rows.split.source)}
    about["provenance"] = provenance(PACKAGES)
    for run in chain(ours(name, rows, quick, models), our_nets(name, rows, quick, models), peers(rows, quick)):
        runs.append({"data": name, **run})
        console.print(f"[dim]{name}: {' | '.join(cells(run))}[/]", highlight=False)
    about["provenance"]["load_after"] = os.getloadavg()[0]
    return about, runs


def load(name: str) -> Rows:
    """Load the codes with their cut points, and the raw numbers of the same rows; for `-codes` everybody gets codes."""
    if name.endswith("-codes"):
        split = datasets.load(name.removesuffix("-codes"))
        return Rows(split, split.train.X, split.test.X)
    split = datasets.load(name, discretizer="mdlp")
    frame, y = datasets.load_raw(name)
    raw = frame.to_numpy()
    # The split of `datasets.load`, made again and checked.
    if datasets.n_folds(split.name) == 1:
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=0)
    else:
        folds = StratifiedKFold(datasets.n_folds(split.name), shuffle=True, random_state=0)
        train, test = next(iter(folds.split(raw, y)))
    train, test = np.sort(train), np.sort(test)
    for rows, codes in ((train, split.train), (test, split.test)):
        if not np.array_equal(encode_matrix(raw[rows], codes.variables), codes.X):
            raise SystemExit("the raw rows are not those of the split")
    return Rows(split, raw[train].astype(np.int32), raw[test].astype(np.int32))


def ours(
    data: str, rows: Rows, quick: bool, kept: Path | None, recipes: list[Recipe] | None = None
) -> Iterator[Figures]:
    """Learn, export and measure our models; predictions from raw numbers, and from codes."""
    order = list(greedy_features(rows.split.train, 24))
    for recipe in recipes or RECIPES[data][:: 8 if quick else 1]:
        keep = sorted(order[: recipe.features]) if recipe.features else list(range(rows.raw.shape[1]))
        train, test = columns(rows.split.train, keep), columns(rows.split.test, keep)
        net = learn(recipe, train, quick, None if kept is None else kept / f"{data} {recipe.name}.tb")
        texts = to_c(net, name="net", raw="int")
        features, label = len(keep), "uint8_t"
        scores, _ = integer_log_joint(net, test.X, gaps=make_plan(net, gaps=True).features.gaps)
        probe = Probe("net.h", "net_predict", "uint8_t", features, label, "net_scores", "int32_t", scores.shape[1])
        codes = weigh(texts, probe, test.X)
        raw = codes
        if "net_predict_raw" in texts["net.h"]:
            raw = weigh(texts, Probe("net.h", "net_predict_raw", "int32_t", features, label), rows.raw_test[:, keep])
        wrong = int((codes.scores != scores).any(axis=1).sum() + (codes.labels != scores.argmax(axis=1)).sum())
        wrong += int((raw.labels != predict_codes(net, test.X)).sum())
        yield {
            "model": recipe.name,
            "ours": True,
            **figures(raw, test.y, wrong, predict_codes(net, test.X)),
            "codes": {"flash": codes.flash, "instructions": codes.instructions},
            "bits": int(model_cost(net).bits),
            "format": str(net.cpds[0].format),
        }


def our_nets(data: str, rows: Rows, quick: bool, kept: Path | None) -> Iterator[Figures]:
    """Learn, export and measure our neural nets; they take the raw numbers as states, so there is only one way in."""
    train, test = whole(rows.raw, rows.split.train, data), whole(rows.raw_test, rows.split.test, data)
    for recipe, keep, net in learn_nets(NETS[data][:: 8 if quick else 1], data, train, quick, kept):
        X = test.X[:, keep]
        scores = net_scores(net, X)
        probe = Probe("net.h", "net_predict", "uint8_t", len(keep), "uint8_t", "net_scores", "int32_t", scores.shape[1])
        found = weigh(to_c(net, name="net"), probe, X)
        wrong = int((found.scores != scores).any(axis=1).sum() + (found.labels != scores.argmax(axis=1)).sum())
        yield {
            "model": recipe.name,
            "ours": True,
            **figures(found, test.y, wrong, predict_codes(net, X)),
            "codes": {"flash": found.flash, "instructions": found.instructions},
            "bits": int(model_cost(net).bits),
            "format": f"{recipe.bits} bits",
        }


def learn(recipe: Recipe, train: Dataset, quick: bool, file: Path | None) -> BayesNet:
    """Learn one of our models, or take it from the last run."""
    if file is not None and file.exists():
        return load_model(file)
    options = HybridOptions(bits=recipe.bits, **dict(recipe.options) | ({"epochs": 3} if quick else {}))
    net = learn_classifier(train, structure=recipe.structure, training="hybrid", options=options)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        save(net, file)
    return net


def greedy_features(train: Dataset, most: int) -> Iterator[int]:
    """Yield features in the order in which they help naive Bayes most on validation rows."""
    part, held_out = hold_out(train, 0.3, 0)
    left, chosen = [i for i, v in enumerate(train.variables) if v.cardinality > 1], []
    for _ in range(min(most, len(left))):

        def wrong(i: int) -> float:
            keep = [*chosen, i]
            small = columns(part, keep)
            net = maximum_likelihood(small, naive_bayes(small))
            return float(np.mean(predict_codes(net, held_out.X[:, keep]) != held_out.y))

        best = min(left, key=wrong)
        chosen.append(best)
        left.remove(best)
        yield best


def peers(rows: Rows, quick: bool, exporters: Exporters = EXPORTERS) -> Iterator[Figures]:
    """Fit, export and measure the peers' models."""
    y, classes = rows.split.train.y, rows.split.train.target.cardinality
    fitted: dict[tuple[str, int], Any] = {}
    for library, (export, names) in exporters.items():
        for name in names[:: 4 if quick else 1]:
            by = scale(library, name)
            if (name, by) not in fitted:
                fitted[name, by] = fit(name, by * rows.raw, y)
            model, test = fitted[name, by], by * rows.raw_test
            python = model.predict(test.astype(np.float32))
            try:
                code = export(model, rows.raw.shape[1], classes)
                found = weigh(code.files, code.probe, test, code.flags)
            except (TinybayesError, NotImplementedError, AttributeError, ValueError) as problem:
                yield {"model": f"{library}: {name}", "ours": False, "failed": public(str(problem))[:200]}
                continue
            wrong = int((found.labels != python).sum())
            yield {"model": f"{library}: {name}", "ours": False, **figures(found, rows.split.test.y, wrong, python)}


def weigh(files: dict[str, str], probe: Probe, rows: np.ndarray, flags: tuple[str, ...] = ()) -> Measurement:
    """Measure on the small board, or on the large one if the code does not fit the small one."""
    try:
        return measure_program(files, probe, rows, M0, flags=flags, timeout=600)
    except TinybayesError:
        return measure_program(files, probe, rows, ROOMY, flags=flags, timeout=600)


def figures(found: Measurement, y: np.ndarray, mismatches: int, python: np.ndarray) -> Figures:
    return {
        "error": float(np.mean(found.labels != y)),
        "python_error": float(np.mean(python != y)),
        "mismatches": mismatches,
        "flash": found.flash,
        "ram": found.ram,
        "stack": found.stack,
        "instructions": round(found.instructions, 1),
    }


def public(text: str) -> str:
    local = os.environ.get("TINYBAYES_DATA", "")
    return text.replace(local, "$TINYBAYES_DATA") if local else text


if __name__ == "__main__":
    typer.run(main)
