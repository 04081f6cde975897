"""The same seed gives the same bytes: every learner twice, in fresh processes that differ in all that must not matter.

One process has one thread and one core, the other the threads and cores that there are, with another hash seed.
Run as a script, this file learns one group of models: ``python test_determinism.py GROUP FOLDER THREADS``.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cases import WHOLE

ROWS = 20_000  # rows to label, so that several threads have something to do


def counted() -> Iterator[tuple[str, object, np.ndarray | None]]:
    """Learn whatever is learned without gradients: names, models, and rows to label or None."""
    from sklearn.datasets import load_iris, load_wine

    import tinybayes as tb

    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :8].assign(place=np.array(["north", "south", "east"])[np.arange(len(X)) * 7 % 3])
    text = y.map({0: "barolo", 1: "grignolino", 2: "barbera"})
    for structure in ("naive", "chow-liu", "random"):
        face = tb.BayesNetClassifier(structure, random_state=3).fit(X, text)
        yield structure, face.model_, tb.read_dataset(X, like=face.model_).X
    data = tb.read_dataset(X.assign(kind=text), target="kind")
    weighted = tb.Dataset(data.variables, data.target, data.X, data.y, np.linspace(0.1, 2, len(data)))
    tan = tb.learn_classifier(weighted)
    yield "weighted", tan, data.X
    yield "fixed point", tb.quantize(tan, tb.Fixed(3, 2)), data.X
    yield "quantile", tb.BayesNetClassifier(discretizer="quantile", n_bins=5).fit(X, y).model_, None
    yield "circuit classifier", tb.CircuitClassifier(edge_price=0.5).fit(X, text).circuit_, None
    density = tb.CircuitDensity(edge_price=0.2).fit(load_iris().data)
    yield "circuit density", density.circuit_, None
    yield "greedy circuit", tb.learn_circuit(data, edge_price=0.5, method="greedy").circuit, data.X
    yield "decision trees", tb.learn.learn_tree_cpds(data).net, data.X
    tied = tb.tie(tan, "auto", data=data)
    yield "tied", tied.model, data.X
    yield "tied by table", tb.tie(tan, 4, per_table=True, counts=data).model, data.X
    yield "tied circuit", tb.tie(tb.compile_circuit(tan), 8).model, None
    few = tb.tie(tan, 6).model
    yield "relearned", tb.relearn(few, data, steps=30).model, None
    yield "relearned from samples", tb.relearn(few, data, steps=5, max_edges=10, chains=50, seed=1).model, None
    yield "relearned rows", tb.relearn(few, data, normalized=True, steps=30).model, data.X
    yield from trials(X.assign(kind=text), ["closed-form", "tied", "circuit"])


def trained() -> Iterator[tuple[str, object, np.ndarray | None]]:
    """Learn what is learned by gradient."""
    from sklearn.datasets import load_digits, load_wine

    import tinybayes as tb
    from tinybayes.learn.training.codebook import learn_codebook
    from tinybayes.learn.training.options import CodebookOptions

    X, y = load_wine(return_X_y=True)
    options = {"training": "hybrid", "epochs": 4, "batch_size": 30, "random_state": 5}
    for structure, more in (
        ("chow-liu", {"bits": (3, 2), "structure_noise": 0.1}),
        ("order-free", {"n_candidates": 3}),
    ):
        face = tb.BayesNetClassifier(structure, **options, **more).fit(X[:, :6], y)
        yield f"hybrid {structure}", face.model_, tb.read_dataset(X[:, :6], like=face.model_).X
    data = tb.read_dataset(
        np.column_stack([X[:, :6].round(1), y]), target="x6", discretization=tb.Discretization(discretizer="mdlp")
    )
    net = tb.learn_classifier(data, structure="naive")
    yield (
        "trained codebook",
        learn_codebook(net, tb.tie(net, 5).model.cpds[0].format, data, CodebookOptions(epochs=3, seed=2)),
        data.X,
    )
    dense = tb.QuantizedNetClassifier(bits=3, hidden=8, epochs=4, random_state=1).fit(X, y)
    yield "dense", dense.model_, tb.read_dataset(X, like=dense.model_).X
    images, digits = load_digits(return_X_y=True)
    conv = tb.QuantizedNetClassifier("conv", hidden=(2,), layers=1, epochs=1, random_state=1)
    yield "conv", conv.fit(images[:200], digits[:200]).model_, tb.read_dataset(images, like=conv.model_).X
    yield from trials(pd.DataFrame(X[:, :6]).add_prefix("x").assign(kind=y), ["dense"])


def trials(frame, families) -> Iterator[tuple[str, object, None]]:
    """Carry out some trials of a search."""
    from tinybayes.search.budget import Budget
    from tinybayes.search.families import FAMILIES, Sampled
    from tinybayes.search.families.family import Effort
    from tinybayes.search.prepare import make_views
    from tinybayes.search.trials import carry_out

    views = make_views(frame, "kind", seed=4)
    for name in families:
        family = FAMILIES[name]
        if isinstance(family, Sampled):
            guess = {"family": name, "seed": 1, **family.guesses(views, Budget())[0]}
            settings = [family.fitted({**guess, "bits": bits}, views, Budget()) for bits in (2, 5)]
        else:
            settings = family.settings()[-2:]
        for number, outcome in enumerate(carry_out(views, settings, Effort(30))):
            yield f"trial {name} {number}", outcome.model, None


def answers(folder: Path) -> None:
    """Ask what is drawn at random, or added up over threads."""
    import tinybayes as tb
    from zoo import random_net

    net = random_net(np.random.default_rng(0), 12, formats=[tb.Float(64)])
    circuit = tb.compile_circuit(net)
    rows = circuit.sample(ROWS, 7)
    np.save(folder / "sample.npy", rows)
    weight = np.random.default_rng(1).random(ROWS)
    np.save(folder / "expected_counts.npy", tb.infer.expected_counts(circuit, rows[:, :-1], weight))
    some = np.where(np.arange(13) % 3 == 0, rows[:40], -1)
    np.save(folder / "marginals.npy", tb.infer.posteriors(circuit, some))
    np.save(folder / "gibbs.npy", tb.infer.gibbs(net, some, chains=2, samples=50, seed=9).marginals)


def write(group: str, folder: Path) -> None:
    """Learn a group of models; write them, their C and their labels."""
    import tinybayes as tb

    for name, model, rows in counted() if group == "counted" else trained():
        tb.save(model, folder / f"{name}.tb", metadata={"seed": 1})
        if rows is not None:
            np.save(folder / f"{name}.npy", tb.predict_codes(model, np.resize(rows, (ROWS, rows.shape[1]))))
        query = model.variables[0].name if model.target is None else None
        for file, text in tb.export(model, query=query).items():
            (folder / f"{name} {file}").write_text(text)
    if group == "counted":
        answers(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, list[dict[str, str]]]:
    """Learn both groups of models twice, and return the digests of all files."""

    def run(group: str, threads: int) -> dict[str, str]:
        folder = tmp_path_factory.mktemp(f"{group}-{threads}")
        environment = os.environ | {"PYTHONHASHSEED": str(threads), "TINYBAYES_THREADS": str(threads)}
        command = [sys.executable, __file__, group, str(folder), str(threads)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    with ThreadPoolExecutor(2) as pool:
        jobs = {group: [pool.submit(run, group, threads) for threads in (1, 2)] for group in ("trained", "counted")}
        return {group: [job.result() for job in pair] for group, pair in jobs.items()}


@WHOLE
@pytest.mark.exhaustive
@pytest.mark.parametrize("group", ["counted", "trained"])
def test_the_same_seed_gives_the_same_bytes(runs, group):
    one, two = runs[group]
    assert len(one) >= {"counted": 60, "trained": 20}[group]
    assert one.keys() == two.keys()
    assert sorted(name for name in one if one[name] != two[name]) == []


@WHOLE
@pytest.mark.exhaustive
@pytest.mark.parametrize("group", ["counted", "trained"])
def test_different_models_have_different_bytes(runs, group):
    models = [digest for name, digest in runs[group][0].items() if name.endswith(".tb")]
    assert len(set(models)) == len(models)


def test_another_seed_gives_another_model(tmp_path):
    from sklearn.datasets import load_wine

    import tinybayes as tb

    X, y = load_wine(return_X_y=True)
    for seed in (0, 1):
        tb.save(tb.BayesNetClassifier("random", random_state=seed).fit(X, y).model_, tmp_path / f"{seed}.tb")
    assert (tmp_path / "0.tb").read_bytes() != (tmp_path / "1.tb").read_bytes()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent / "helpers"))
    if sys.argv[3] == "1" and hasattr(os, "sched_setaffinity"):  # one core, for libraries that ask how many there are
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    write(sys.argv[1], Path(sys.argv[2]))
