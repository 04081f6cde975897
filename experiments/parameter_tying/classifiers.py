"""A codebook of 2^b levels against b-bit fixed point: python -m experiments.parameter_tying.classifiers.

Naive Bayes and the tree of Chow and Liu are trained in floats, each with one good setting of the loss. Their tables are
then stored in b bits an entry, in five ways:

- rounded: the fixed-point format with the fewest errors on the training rows
- codebook: the best levels for the log-parameters, each entry counting alike or as often as it is used, whichever has
  fewer errors on the training rows
- levels: the levels of that codebook trained, every entry keeping its own
- fixed point, trained: entries trained through the levels of that fixed-point format
- codebook, trained: entries and levels trained

All trainings begin with the float network and take the same number of epochs with the same settings. What a codebook
costs beyond b bits an entry, its levels, is in `bits`. Circuits learned on two data sets are rounded and tied likewise,
judged by the log-likelihood of the test rows. Each finished part is appended to results/classifiers.jsonl and not
repeated.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.resource_efficient.bits import BATCH, INTEGER_BITS
from experiments.store import Record, append_line, pack, read_lines, write_report
from experiments.training import train_tables
from tinybayes import datasets, evaluate, learn_circuit, model_cost, tie
from tinybayes.compress import quantize
from tinybayes.infer import log_evidence
from tinybayes.learn import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates
from tinybayes.learn.training.codebook import learn_codebook
from tinybayes.learn.training.options import CodebookOptions, TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import BayesNet, Circuit, Codebook, Dataset, Fixed, Float

HERE = Path(__file__).parent
BITS = range(1, 9)
SETTINGS = {
    ("letter", "naive"): {"lam": 61, "gamma": 1.24, "eta": 10, "learning_rate": 3e-2},
    ("letter", "chow-liu"): {"lam": 43, "gamma": 6.9, "eta": 2, "learning_rate": 3e-3},
    ("usps", "naive"): {"lam": 290, "gamma": 69, "eta": 12, "learning_rate": 3e-3},
    ("usps", "chow-liu"): {"lam": 26, "gamma": 56, "eta": 3, "learning_rate": 3e-3},
    ("satimage", "naive"): {"lam": 30, "gamma": 30, "eta": 10, "learning_rate": 3e-3},
    ("satimage", "chow-liu"): {"lam": 30, "gamma": 30, "eta": 10, "learning_rate": 3e-3},
}
CIRCUITS = {"nltcs": 0.1, "kdd": 0.1}  # the price of an edge


def as_book(form: Fixed) -> Codebook:
    """Return the values of a fixed-point format as levels."""
    return Codebook(tuple(np.unique(form.decode(np.arange(2**form.bits))).tolist()))


def stored(
    net: BayesNet, rows: Dataset, bits: int, setting: dict[str, float], training: dict[str, int]
) -> Iterator[tuple[str, BayesNet]]:
    """Store a float network in so many bits an entry, in all ways."""
    formats = [Fixed(integer, bits - integer) for integer in INTEGER_BITS]
    form = min(formats, key=lambda one: evaluate(quantize(net, one), rows).error)
    distinct = len(np.unique(np.concatenate([cpd.log_parameters.reshape(-1) for cpd in net.cpds])))
    levels = min(2**bits, distinct)
    tied = min((tie(net, levels).model, tie(net, levels, counts=rows).model), key=lambda one: evaluate(one, rows).error)
    book = tied.cpds[0].format
    assert isinstance(book, Codebook)
    yield "rounded", quantize(net, form)
    yield "codebook", tied
    yield "levels", learn_codebook(net, book, rows, CodebookOptions(reassign=False, **setting, **training))
    through = learn_codebook(net, as_book(form), rows, CodebookOptions(move_levels=False, **setting, **training))
    yield "fixed point, trained", quantize(through, form)
    yield "codebook, trained", learn_codebook(net, book, rows, CodebookOptions(**setting, **training))


def classifier(data: str, structure: str, done: list[Record], epochs: int, again: int) -> Iterator[Record]:
    """Train a float network, and store it in the numbers of bits that are not done yet."""
    known = {r["bits an entry"] for r in done if (r["data"], r.get("structure")) == (data, structure)}
    if known >= set(BITS):
        return
    rows, test = datasets.load(data)
    tree = naive_bayes(rows) if structure == "naive" else chow_liu(rows)
    setting = SETTINGS[data, structure]
    run = TableConfiguration(candidates=candidates.fixed(tree), **setting)
    net = train_tables(rows, [run], TrainingOptions(epochs=epochs, batch_size=BATCH[data], device="cpu"))[0].net
    assert net is not None  # a tree is always a network
    training = {"epochs": again, "batch_size": BATCH[data]}
    head = {"data": data, "structure": structure, "float": round(evaluate(net, test).error, 6)}
    for bits in sorted(set(BITS) - known):
        began, ways = time.perf_counter(), {}
        for way, one in stored(net, rows, bits, setting, training):
            figures = {"error": evaluate(one, test).error, "training error": evaluate(one, rows).error}
            ways[way] = {key: round(value, 6) for key, value in figures.items()} | {"bits": model_cost(one).bits}
        seconds = round(time.perf_counter() - began, 1)
        yield {**head, "bits an entry": bits, "seconds": seconds, "ways": ways}


def circuits(data: str, done: list[Record]) -> Iterator[Record]:
    """Learn a circuit, round it and tie it."""
    if any(r["data"] == data for r in done):
        return
    split = datasets.load(data)
    circuit = learn_circuit(split.train, edge_price=CIRCUITS[data]).circuit
    assert circuit is not None  # since edges have a price
    assert split.valid is not None
    head = {"data": data, "edges": circuit.n_edges, "parameters": len(circuit.table)}
    head["float"] = round(mean_log(circuit, split.test), 5)
    for bits in BITS:
        began = time.perf_counter()
        forms = [Fixed(integer, bits - integer) for integer in INTEGER_BITS]
        rounded = [replace(circuit, table=form.encode(circuit.log_parameters), format=form) for form in forms]
        best = max(rounded, key=lambda one: mean_log(one, split.valid))
        tied = tie(circuit, min(2**bits, len(np.unique(circuit.log_parameters)))).model
        ways = {
            way: {"test": round(mean_log(one, split.test), 5), "bits": model_cost(one).bits}
            for way, one in (("rounded", best), ("codebook", tied))
        }
        yield {**head, "bits an entry": bits, "seconds": round(time.perf_counter() - began, 1), "ways": ways}


def mean_log(circuit: Circuit, data: Dataset) -> float:
    """Return the exact mean log-likelihood of rows under a circuit that need not be normalised."""
    plain = replace(circuit, table=circuit.log_parameters, format=Float(64))
    nothing = np.full((1, len(circuit.nodes)), -1)
    return float(log_evidence(plain, data.X).mean() - log_evidence(plain, nothing)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=500, help="of the float networks")
    parser.add_argument("--again", type=int, default=50, help="epochs of the trainings in few bits")
    parser.add_argument("--quick", action="store_true", help="few epochs, results not kept")
    options = parser.parse_args()
    store = HERE / "results" / ("classifiers-quick.jsonl" if options.quick else "classifiers.jsonl")
    epochs, again = (3, 2) if options.quick else (options.epochs, options.again)
    done = read_lines(store)
    runs = [lambda s=s: classifier(*s, done, epochs, again) for s in SETTINGS]
    runs += [lambda name=name: circuits(name, done) for name in CIRCUITS]
    for run in runs:
        for record in list(run()) if options.quick else run():
            done.append(record)
            append_line(store, record)
            print(record, flush=True)
    if not options.quick:
        report = {"provenance": provenance(sum(r["seconds"] for r in done)), "epochs": epochs, "again": again}
        pack(store)
        write_report(store.with_suffix(".json"), {**report, "results": done})


if __name__ == "__main__":
    main()
