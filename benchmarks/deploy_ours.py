"""Our models of `deploy.py`: found by a short search on the training rows or trained for a fixed number of steps.

They are exported and measured from raw rows. Nets of fixed work are there because a search stops by the clock: on a
busy machine it trains few.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np
import pandas as pd
from deploy_tables import LABEL, Table
from harness import Figures
from sklearn.model_selection import train_test_split

from tinybayes import QuantizedNetClassifier, TreeEnsembleClassifier, explore
from tinybayes.cost import model_cost
from tinybayes.data.encode import as_texts, encode_column, encode_frame
from tinybayes.deploy import load, save
from tinybayes.deploy.files.native import load_metadata
from tinybayes.deploy.measure import Measurement, measure
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.encoding import Features, make_features
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.scores import predict_codes
from tinybayes.infer.trees import tree_scores
from tinybayes.model import BayesNet, Categories, Float, NeuralNet, TreeEnsemble
from tinybayes.model.encoding import LOWEST
from tinybayes.search.explore import Execution
from tinybayes.search.families import FAMILIES

OTHERS = ("conv", "circuit")  # images only; another interface
POINTS = 8  # models of a front that are measured
BOARDS = ("m0+", "m4")
NETS = (((), 3), ((16,), 4), ((48,), 4))  # hidden units and bits of a weight
# Kind, rounds and leaves of trees.
TREES = (("tree", 1, 8), ("tree", 1, 24), ("tree", 1, 96), ("boosted", 8, 8), ("boosted", 30, 8), ("boosted", 100, 16))
STEPS, BATCH = 12_000, 50  # mini-batches and their rows
Model = BayesNet | NeuralNet | TreeEnsemble


def search(name: str, table: Table, folder: Path, seconds: float) -> list[Figures]:
    """Search, unless the folder holds a search that ended; return the front by bits."""
    file = folder / name / "front.json"
    if not file.exists():
        families = [f for f in FAMILIES if f not in OTHERS or (f == "conv" and name == "digits")]
        explore(
            table.train,
            LABEL,
            test=table.test,
            output=folder / name,
            seconds=seconds,
            families=",".join(families),
            seed=0,
            execution=Execution(workers=2),
        )
    models = [m for m in json.loads(file.read_text())["models"] if m["on_front"] and m["file"]]
    return sorted(models, key=lambda m: m["bits"])


def spread(front: list[Figures], count: int) -> list[Figures]:
    """Choose points of a front by size and validation error: the smallest, the best, and others evenly between."""
    best = min(range(len(front)), key=lambda i: (front[i]["validation_error"], i))
    front = front[: best + 1]  # larger ones with fewer operations and more errors are left out
    places = np.unique(np.linspace(0, len(front) - 1, min(count, len(front))).round().astype(int))
    return [front[i] for i in places]


def fit_nets(name: str, table: Table, folder: Path, steps: int) -> list[Figures]:
    """Train nets of a few sizes, unless the folder holds them; a fit without a fifth of the rows is validated."""
    X, y = table.train[table.features], table.train[LABEL]
    part, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
    entries = []
    for hidden, bits in NETS:
        words = f"dense {hidden[0]}" if hidden else "linear"
        file = folder / name / "nets" / f"{words}, {bits} bits.tb"
        if not file.exists():
            fitted = []
            for rows in (part, np.arange(len(y))):
                epochs = max(1, steps * BATCH // len(rows))
                net = QuantizedNetClassifier(bits=bits, hidden=hidden, epochs=epochs, batch_size=BATCH, random_state=0)
                fitted.append(net.fit(X.iloc[rows], y.iloc[rows]))
            wrong = 1 - float(fitted[0].score(X.iloc[held_out], y.iloc[held_out]))
            file.parent.mkdir(parents=True, exist_ok=True)
            save(fitted[1].model_, file, metadata={"validation_error": wrong})
        about = {"label": f"{words}, {bits} bits, fixed work,", "file": f"nets/{file.name}", "id": "fixed"}
        entries.append(about | load_metadata(file) | {"settings": {"hidden": hidden, "bits": bits, "steps": steps}})
    return entries


def fit_trees(name: str, table: Table, folder: Path) -> list[Figures]:
    """Learn trees of a few sizes, unless the folder holds them; boosted ones are symmetric, with 16 values."""
    X, y = table.train[table.features], table.train[LABEL]
    part, held_out = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
    entries = []
    for kind, rounds, leaves in TREES:
        words = f"tree of {leaves} leaves" if kind == "tree" else f"{rounds} rounds of {leaves} leaves"
        file = folder / name / "trees" / f"{words}.tb"
        if not file.exists():
            how = {"kind": kind, "leaves": leaves, "random_state": 0}
            how |= {"votes": True} if kind == "tree" else {"rounds": rounds, "symmetric": True, "levels": 16}
            fitted = [
                TreeEnsembleClassifier(**how).fit(X.iloc[rows], y.iloc[rows]) for rows in (part, np.arange(len(y)))
            ]
            wrong = 1 - float(fitted[0].score(X.iloc[held_out], y.iloc[held_out]))
            file.parent.mkdir(parents=True, exist_ok=True)
            save(fitted[1].model_, file, metadata={"validation_error": wrong})
        about = {"label": f"{words}, fixed work,", "file": f"trees/{file.name}", "id": "fixed"}
        entries.append(about | load_metadata(file) | {"settings": {"kind": kind, "rounds": rounds, "leaves": leaves}})
    return entries


def ours(
    name: str, table: Table, folder: Path, seconds: float, pool: Executor, quick: bool = False
) -> Iterator[Callable[[], Figures]]:
    """Search and fit, then start the measurements; yield for each model a function that waits for its figures."""
    names: set[str] = set()
    entries = spread(search(name, table, folder, seconds), 2 if quick else POINTS)
    fixed = [*fit_nets(name, table, folder, 100 if quick else STEPS), *fit_trees(name, table, folder)]
    for entry in [*entries, *fixed]:
        model = load(folder / name / entry["file"])
        assert isinstance(model, BayesNet | NeuralNet | TreeEnsemble)
        bits = int(model_cost(model).bits)
        title = f"tinybayes: {entry['label'].rsplit(',', 1)[0]}, {-(-bits // 8):,} B"
        title += f" ({entry['id'][:4]})" if title in names else ""
        names.add(title)
        about = {"model": title, "ours": True, "validation_error": entry["validation_error"], "bits": bits}
        about["settings"] = entry["settings"]
        started = start(model, table, pool)
        yield lambda about=about, model=model, started=started: about | finish(model, table, started)


def start(model: Model, table: Table, pool: Executor) -> dict[tuple[str, str], Future[list[Measurement]]]:
    """Start all measurements of a model: with gap code, without, and rows with gaps, on each board."""
    started = {}
    for part, (gaps, frame) in parts(model, table).items():
        rows = raw_rows(frame, make_features(model.variables, None))
        texts = to_c(model, name="net", gaps=gaps)
        for board in BOARDS:
            started[part, board] = pool.submit(measure, texts, "net", rows, raw=True, boards=[board], timeout=600.0)
    return started


def parts(model: Model, table: Table) -> dict[str, tuple[bool, pd.DataFrame]]:
    """Return whether the program takes gaps, and the rows; a category that training rows lack is a gap."""
    complete = (encode_frame(table.test, model.variables) >= 0).all(axis=1)
    return {
        "no gap code": (False, table.test[complete]),
        "gap code": (True, table.test),
        "gaps": (True, table.with_gaps()),
    }


def finish(model: Model, table: Table, started: dict[tuple[str, str], Future[list[Measurement]]]) -> Figures:
    """Compare the answers of the boards with Python's, and write down what was measured."""
    figures: Figures = {}
    for part, (gaps, frame) in parts(model, table).items():
        codes = encode_frame(frame, model.variables)
        y, python = encode_column(frame[LABEL], model.target), predict_codes(model, codes)
        scores = _scores(model, codes, gaps)
        mismatches, boards = 0, {}
        for board in BOARDS:
            (found,) = started[part, board].result()
            mismatches += int((found.labels != python).sum())
            if scores is not None:
                mismatches += int((found.scores != scores).any(axis=1).sum())
            boards[board] = cost(found)
            error = float(np.mean(found.labels != y))
        figures[part] = {"rows": len(frame), "error": error, "mismatches": mismatches, **boards}
    return figures


def _scores(model: Model, codes: np.ndarray, gaps: bool) -> np.ndarray | None:
    """Return Python's scores where they are integers."""
    if isinstance(model, NeuralNet):
        return net_scores(model, codes)
    if isinstance(model, TreeEnsemble):
        return tree_scores(model, codes)
    if any(isinstance(cpd.format, Float) for cpd in model.cpds):
        return None
    return integer_log_joint(model, codes, gaps=gaps and make_plan(model, gaps=True).features.gaps)[0]


def cost(found: Measurement) -> Figures:
    return {
        "flash": found.flash,
        "ram": found.ram,
        "stack": found.stack,
        "instructions": round(found.instructions, 1),
    }


def raw_rows(frame: pd.DataFrame, features: Features) -> np.ndarray:
    """Return rows as `predict_raw` takes them: numbers, the codes of categories, and the value of a gap."""
    columns = []
    for variable in features.variables:
        column = frame[variable.name]
        if isinstance(variable.encoding, Categories):
            code = {str(state): code for code, state in enumerate(variable.states)}
            values = [np.nan if text is None else code.get(text, np.nan) for text in as_texts(column)]
            columns.append(np.array(values, dtype=float))
        else:
            columns.append(column.to_numpy(float))
    rows = np.array(columns).T
    return np.where(np.isnan(rows), LOWEST, rows) if features.raw == "int" else rows.astype(np.float32)
