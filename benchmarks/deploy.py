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
from deploy_nets import NETS, learn_net, whole
from deploy_peers import EXPORTERS, fit, scale
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
from tinybayes.deploy.c import to_c
from tinybayes.deploy.measure import Measurement, measure_program
from tinybayes.errors import TinybayesError
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.scores import predict_codes
from tinybayes.learn.classifier import GradientOptions, hold_out, learn_classifier
from tinybayes.learn.maximum_likelihood import maximum_likelihood
from tinybayes.learn.structures import naive_bayes
from tinybayes.model import BayesNet, Dataset

DATA = ("digits", "letter-codes", "letter", "satimage")
PACKAGES = ["numpy", "jax", "scikit-learn", "emlearn", "m2cgen", "micromlgen"]
M0 = BOARDS["m0+"]
# The same code on a board with more memory, for what does not fit: it is the compiler that makes it M0+ code.
ROOMY = replace(M0, machine="mps2-an385", flash=4096 * KIB, ram=4096 * KIB, hertz=25_000_000)
HEADINGS = (
    "model",
    "error %",
    "flash bytes",
    "instructions",
    "stack",
    "mismatches",
    "from codes: flash",
    "instructions",
)
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
        *(Recipe("naive", (3, 1), k, NAIVE) for k in (5, 8)),
        *(Recipe("naive", b, None, NAIVE) for b in (3, 4, 6)),
        *(Recipe("chow-liu", (4, b - 4), None, LONG) for b in (3, 4, 5, 6)),
    ],
    "letter-codes": [
        *(Recipe("naive", (3, 1), k, NAIVE) for k in (5, 8)),
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
    data: Annotated[list[str] | None, typer.Option(help="Data sets; digits and letter-codes by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few models, to see that everything works.")] = False,
    models: Annotated[Path | None, typer.Option(help="Folder that keeps our trained models for the next run.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for deploy.json and deploy.md.")] = None,
) -> None:
    """Measure our exported classifiers and those of the peers, in one run."""
    console = Console(width=max(150, Console().width))
    result: Figures = {"provenance": provenance(PACKAGES), "data": {}, "runs": []}
    for name in data or DATA[:2]:
        rows = load(name)
        result["data"][name] = {"train": len(rows.raw), "test": len(rows.raw_test), "source": public(rows.split.source)}
        for run in chain(ours(name, rows, quick, models), our_nets(name, rows, quick, models), peers(rows, quick)):
            result["runs"].append({"data": name, **run})
            console.print(f"[dim]{name}: {' | '.join(cells(run))}[/]", highlight=False)
    result["provenance"]["load_after"] = os.getloadavg()[0]
    judge(result["runs"])
    for title, table_rows in sections(result):
        table = Table(*HEADINGS, "against our front", title=title, title_justify="left")
        for row in table_rows:
            table.add_row(*row)
        console.print(table)
    for line in findings(result):
        console.print(line, highlight=False)
    if output is None and not quick:
        output = Path(__file__).parent / "results"
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "deploy.json").write_text(json.dumps(result, indent=1) + "\n")
        (output / "deploy.md").write_text(markdown(result))


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


def ours(data: str, rows: Rows, quick: bool, kept: Path | None) -> Iterator[Figures]:
    """Learn, export and measure our models; predictions from raw numbers, and from codes."""
    order = list(greedy_features(rows.split.train, 24))
    for recipe in RECIPES[data][:: 8 if quick else 1]:
        keep = sorted(order[: recipe.features]) if recipe.features else list(range(rows.raw.shape[1]))
        train, test = columns(rows.split.train, keep), columns(rows.split.test, keep)
        net = learn(recipe, train, quick, None if kept is None else kept / f"{data} {recipe.name}.tb")
        texts = to_c(net, name="net", raw="int")
        features, label = len(keep), "uint8_t"
        scores, _ = integer_log_joint(net, test.X)
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
    highest = np.maximum(rows.raw.max(axis=0), rows.raw_test.max(axis=0))
    if min(rows.raw.min(), rows.raw_test.min()) < 0 or highest.max() > 255:
        return
    train, test = whole(rows.raw, rows.split.train, highest), whole(rows.raw_test, rows.split.test, highest)
    for recipe in NETS[data][:: 8 if quick else 1]:
        net = learn_net(recipe, train, quick, None if kept is None else kept / f"{data} {recipe.name}.tb")
        scores = net_scores(net, test.X)
        (features, classes), label = (test.X.shape[1], scores.shape[1]), "uint8_t"
        probe = Probe("net.h", "net_predict", "uint8_t", features, label, "net_scores", "int32_t", classes)
        found = weigh(to_c(net, name="net"), probe, test.X)
        wrong = int((found.scores != scores).any(axis=1).sum() + (found.labels != scores.argmax(axis=1)).sum())
        yield {
            "model": recipe.name,
            "ours": True,
            **figures(found, test.y, wrong, predict_codes(net, test.X)),
            "codes": {"flash": found.flash, "instructions": found.instructions},
            "bits": int(model_cost(net).bits),
            "format": f"{recipe.bits} bits",
        }


def learn(recipe: Recipe, train: Dataset, quick: bool, file: Path | None) -> BayesNet:
    """Learn one of our models, or take it from the last run."""
    if file is not None and file.exists():
        return load_model(file)
    options = GradientOptions(bits=recipe.bits, **dict(recipe.options) | ({"epochs": 3} if quick else {}))
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


def columns(data: Dataset, keep: list[int]) -> Dataset:
    """Keep some features."""
    variables = tuple(data.variables[i] for i in keep)
    return Dataset(variables, data.target, np.ascontiguousarray(data.X[:, keep]), data.y)


def peers(rows: Rows, quick: bool) -> Iterator[Figures]:
    """Fit, export and measure the peers' models."""
    y, classes = rows.split.train.y, rows.split.train.target.cardinality
    fitted: dict[tuple[str, int], Any] = {}
    for library, (export, names) in EXPORTERS.items():
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


def judge(runs: list[Figures]) -> None:
    """Say of each peer's point whether one of ours is at least as good in error, flash and instructions."""
    axes = ("error", "flash", "instructions")
    for run in runs:
        if run["ours"] or "failed" in run:
            continue
        mine = [r for r in runs if r["ours"] and r["data"] == run["data"]]
        better = [r for r in mine if all(r[a] <= run[a] for a in axes)]
        run["dominated_by"] = better[0]["model"] if better else None
        run["dominates"] = sum(all(run[a] <= r[a] for a in axes) for r in mine)


def cells(run: Figures) -> list[str]:
    if "failed" in run:
        return [run["model"], f"failed: {run['failed']}", *[""] * 6]
    own = run.get("codes")
    from_codes = [f"{own['flash']:,}", f"{own['instructions']:,.0f}"] if own else ["", ""]
    head = [run["model"], f"{100 * run['error']:.2f}", f"{run['flash']:,}", f"{run['instructions']:,.0f}"]
    return [*head, f"{run['stack']:,}", f"{run['mismatches']:,}", *from_codes]


def verdict(run: Figures) -> str:
    if run["ours"] or "failed" in run:
        return ""
    if run["dominated_by"]:
        return f"dominated by {run['dominated_by'].removeprefix('tinybayes ')}"
    return f"not dominated; dominates {run['dominates']} of ours"


def sections(result: Figures) -> Iterator[tuple[str, list[list[str]]]]:
    for name, about in result["data"].items():
        rows = [[*cells(run), verdict(run)] for run in result["runs"] if run["data"] == name]
        yield f"{name}: {about['train']:,} + {about['test']:,} rows", rows


def findings(result: Figures) -> Iterator[str]:
    """Say in sentences how the comparison went."""
    for name in result["data"]:
        runs = [run for run in result["runs"] if run["data"] == name and "failed" not in run]
        mine, theirs = [r for r in runs if r["ours"]], [r for r in runs if not r["ours"]]
        wrong = sum(r["mismatches"] for r in mine)
        yield f"{name}: {wrong} mismatches between Python and C in our {len(mine)} models; " + (
            f"{sum(r['mismatches'] > 0 for r in theirs)} of the peers' {len(theirs)} have some, "
            f"at most {max((r['mismatches'] for r in theirs), default=0):,} rows"
        )
        open_points = [r for r in theirs if not r["dominated_by"]]
        yield f"{name}: our points dominate {len(theirs) - len(open_points)} of the peers' {len(theirs)}; not " + (
            "; ".join(
                f"{r['model']} ({100 * r['error']:.1f} %, {r['flash']:,} B, {r['instructions']:,.0f})"
                for r in open_points
            )
            or "any"
        )
        beaten = [
            r["model"]
            for r in mine
            if any(all(p[a] <= r[a] for a in ("error", "flash", "instructions")) for p in theirs)
        ]
        yield f"{name}: of our {len(mine)} points a peer's dominates {', '.join(beaten) or 'none'}"


def public(text: str) -> str:
    local = os.environ.get("TINYBAYES_DATA", "")
    return text.replace(local, "$TINYBAYES_DATA") if local else text


def markdown(result: Figures) -> str:
    about = result["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in about["packages"].items() if number)
    lines = [
        "# Exported classifiers on a Cortex-M0+",
        "",
        "Written by `benchmarks/deploy.py` from `deploy.json`; `benchmarks/README.md` says how to read it.",
        "",
        f"- {about['date']}, `{about['command']}`, commit {about['commit']}",
        f"- Python {about['python']}, {versions}",
        *(f"- {name}: {figures['source']}" for name, figures in result["data"].items()),
        "",
        *(f"- {line}" for line in findings(result)),
    ]
    for title, rows in sections(result):
        lines += ["", f"## {title}", "", "| " + " | ".join((*HEADINGS, "against our front")) + " |"]
        lines += ["|---|" + "---:|" * (len(HEADINGS) - 1) + "---|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
