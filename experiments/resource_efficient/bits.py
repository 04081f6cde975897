"""Figure 6 of resource_efficient_bn_classifiers: training through tables of few bits, and rounding one float model.

    python -m experiments.resource_efficient.bits --data letter --structure naive

The structures are naive Bayes and, as in the paper, the tree that the best run of TAN Subset in Table 1 found. Its
float tables, or those of naive Bayes with its best setting of Table 1, are rounded to every format of 1 to 8 bits with
1 to 6 of them before the binary point: the baseline. Then tables are trained through the formats, in two stages:

1. `TRIED` settings of every format, for a few epochs, on nine tenths of the training rows.
2. For each number of bits, `SETTINGS` settings of the format that was best by test error, for all epochs on all rows;
   the setting of stage 1 with the least validation error, for which no test row was looked at; and trainings that
   start from the float tables, with small learning rates, through the format that was best for rounding and the one
   that was best in stage 1.

Everything but the setting chosen on validation rows is chosen on test rows, as in the paper, the baseline too.
Results are added to results/bits.json. They are of the first fold; then

    python -m experiments.resource_efficient.bits --data satimage --structure naive --folds

runs what was trained there for all epochs on the other folds, each with its own float model and tree, and errors become
means of the folds. So the settings of stage 2 are those that the first fold has chosen.
"""

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.provenance import provenance
from experiments.store import read_report, read_store, write_report
from experiments.sweep import TableSweep, read_sweeps
from experiments.training import train_tables
from tinybayes import datasets
from tinybayes.compress import quantize
from tinybayes.data import named
from tinybayes.infer import evaluate
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training.candidates import Candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import BayesNet, Dataset, Fixed

TABLE1 = Path(__file__).parents[1] / "differentiable_tan" / "table1.toml"
BATCH = {"letter": 100, "usps": 100, "satimage": 50, "mnist": 250}
ROWS = {"naive": "naive", "tree": "subset"}  # of Table 1
BITS, INTEGER_BITS = range(1, 9), range(1, 7)
TRIED, SETTINGS, SHORT = 6, 32, 60
RATES, SMALL_RATES = (3e-3, 3e-2), (3e-4, 3e-5, 3e-6, 3e-8)
LAM, GAMMA = 0.5, 0.4  # how far exponents of ten are drawn from those of the float model
Record = dict[str, Any]


def best_of_table1(data: str, structure: str) -> tuple[TableSweep, int]:
    """Return the sweep and the number of its setting with the least test error, without noise or sharing."""
    done = read_store(TABLE1.parent / "results" / f"{TABLE1.stem}.jsonl")
    found = []
    for sweep in read_sweeps(TABLE1):
        if (
            isinstance(sweep, TableSweep)
            and (sweep.data, sweep.title) == (data, ROWS[structure])
            and sweep.name in done
        ):
            errors = sweep.means(done[sweep.name], 2, "test_error")
            found += [(error, sweep.name, sweep, setting) for setting, error in errors.items()]
    _, _, sweep, setting = min(found, key=lambda one: one[:2])
    return sweep, setting


def float_model(data: str, structure: str, rows: Dataset, epochs: int) -> tuple[BayesNet, Candidates, Record]:
    """Train the best setting of Table 1; return the network, its structure as the only candidate, and the setting."""
    sweep, setting = best_of_table1(data, structure)
    run = sweep.configuration(rows, setting, {})
    trained = train_tables(rows, [run], TrainingOptions(epochs=epochs, batch_size=BATCH[data]))[0]
    assert trained.net is not None  # a search with an ordering
    parent = np.array(trained.parents)[:, None]
    fixed = Candidates(parent, np.ones(parent.shape, bool))
    return trained.net, fixed, {"sweep": sweep.name, **sweep.setting(setting)}


def parameters(rows: Dataset, fixed: Candidates) -> int:
    """Count the entries of all tables; every feature has the class as a parent."""
    assert rows.target is not None
    states, parents = np.array([v.cardinality for v in rows.variables]), fixed.parent[:, 0]
    return int((states * np.where(parents >= 0, states[parents], 1)).sum() + 1) * rows.target.cardinality


def draw(setting: Record, number: int, bits: int, integer: int) -> Record:
    """Draw a setting near that of the float model; it depends on its number and the format alone."""
    generator = np.random.default_rng([number, bits, integer])
    return {
        "bits": bits,
        "integer": integer,
        "number": number,
        "lam": setting["lam"] * 10 ** generator.uniform(-LAM, LAM),
        "gamma": setting["gamma"] * 10 ** generator.uniform(-GAMMA, GAMMA),
        "eta": setting["eta"],
        "learning_rate": RATES[number % len(RATES)],
    }


def configuration(one: Record, fixed: Candidates, start: BayesNet | None = None) -> TableConfiguration:
    """Return a run of `train_tables`."""
    hyper = {name: one[name] for name in ("lam", "gamma", "eta", "learning_rate")}
    number_format = Fixed(one["integer"], one["bits"] - one["integer"])
    return TableConfiguration(candidates=fixed, number_format=number_format, start=start, seed=one["number"], **hyper)


def measure(data: str, structure: str, epochs: int, short: int) -> Record:
    """Round and train through all formats."""
    began = time.monotonic()
    split = datasets.load(data)
    train, test = split.train, split.test
    net, fixed, setting = float_model(data, structure, train, epochs)
    result: Record = {"data": data, "structure": structure, "epochs": epochs, "setting": setting}
    result["parents"] = fixed.parent[:, 0].tolist()
    result["parameters"] = parameters(train, fixed)
    result["float"] = round(evaluate(net, test).error, 6)
    formats = [(bits, integer) for bits in BITS for integer in INTEGER_BITS]
    rounded = {one: evaluate(quantize(net, Fixed(one[1], one[0] - one[1])), test).error for one in formats}

    tried = [draw(setting, number, *one) for one in formats for number in range(TRIED)]
    part, held_out = hold_out(train, 0.1, 0)
    options = TrainingOptions(epochs=short, batch_size=BATCH[data], every=10**9)
    runs = [configuration(one, fixed) for one in tried]
    first = train_tables(part, runs, options, validation=held_out, test=test, networks=False)
    print(f"{data} {structure}: stage 1 of {len(runs)} runs after {time.monotonic() - began:.0f} s", flush=True)

    wanted: list[tuple[str, Record]] = []
    for bits in BITS:
        own = [i for i, one in enumerate(tried) if one["bits"] == bits]
        best = tried[min(own, key=lambda i: first[i].test_error)]["integer"]
        wanted += [("drawn", draw(setting, number, bits, best)) for number in range(SETTINGS)]
        wanted.append(("validation", tried[min(own, key=lambda i: first[i].validation_error)]))
        for integer in sorted({best, min(INTEGER_BITS, key=lambda i: rounded[bits, i])}):
            wanted += [
                ("started", {**draw(setting, number, bits, integer), **_loss(setting), "learning_rate": rate})
                for number, rate in enumerate(SMALL_RATES)
            ]
    runs = [configuration(one, fixed, net if kind == "started" else None) for kind, one in wanted]
    options = TrainingOptions(epochs=epochs, batch_size=BATCH[data], every=10**9)
    second = train_tables(train, runs, options, test=test, networks=False)
    result["trained"] = [
        {"kind": kind, **one, "error": round(run.test_error, 6)}
        for (kind, one), run in zip(wanted, second, strict=True)
    ]
    result["rounded"] = [{"bits": b, "integer": i, "error": round(error, 6)} for (b, i), error in rounded.items()]
    result["runs"] = len(tried) + len(wanted)
    return result | {"provenance": provenance(time.monotonic() - began)}


def on_another_fold(one: Record, fold: int) -> Record:
    """Return the errors of the trainings of a result, and of rounding, on the rows of another fold."""
    began, data, structure, epochs = time.monotonic(), one["data"], one["structure"], one["epochs"]
    split = datasets.load(data, fold=fold)
    net, fixed, setting = float_model(data, structure, split.train, epochs)
    if setting != one["setting"]:
        raise SystemExit(f"{data} {structure}: Table 1 has a better setting than that of the first fold: run it again")
    runs = [configuration(run, fixed, net if run["kind"] == "started" else None) for run in one["trained"]]
    options = TrainingOptions(epochs=epochs, batch_size=BATCH[data], every=10**9)
    trained = train_tables(split.train, runs, options, test=split.test, networks=False)
    formats = [Fixed(run["integer"], run["bits"] - run["integer"]) for run in one["rounded"]]
    return {
        "float": round(evaluate(net, split.test).error, 6),
        "trained": [round(run.test_error, 6) for run in trained],
        "rounded": [round(evaluate(quantize(net, form), split.test).error, 6) for form in formats],
        "runs": len(runs),
        "provenance": provenance(time.monotonic() - began),
    }


def with_fold(one: Record, more: Record) -> Record:
    """Add the errors on another fold to a result: `error` is the mean of `errors`."""

    def joined(record: Record, name: str, error: float) -> Record:
        errors = [*record.get(f"{name}s", [record[name]]), error]
        return record | {f"{name}s": errors, name: round(float(np.mean(errors)), 6)}

    lists = {
        name: [joined(run, "error", error) for run, error in zip(one[name], more[name], strict=True)]
        for name in ("trained", "rounded")
    }
    made = [*one.get("provenances", [one["provenance"]]), more["provenance"]]
    return joined(one, "float", more["float"]) | lists | {"runs": one["runs"] + more["runs"], "provenances": made}


def of_first_fold(one: Record) -> Record:
    """Return a result as it was before other folds were added, for comparison with what was run on that fold alone."""
    if "floats" not in one:
        return one
    lists = {name: [run | {"error": run["errors"][0]} for run in one[name]] for name in ("trained", "rounded")}
    return one | lists | {"float": one["floats"][0]}


def _loss(setting: Record) -> Record:
    return {name: setting[name] for name in ("lam", "gamma", "eta")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["letter", "satimage", "usps"])
    parser.add_argument("--structure", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--folds", action="store_true", help="add the other folds to what is stored, with its epochs")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--short", type=int, default=SHORT)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "bits.json")
    options = parser.parse_args()
    for data, structure in product(options.data, options.structure):
        if not options.folds:
            _store(options.output, measure(data, structure, options.epochs, options.short))
            continue
        while True:
            stored = (read_report(options.output) or {"results": []})["results"]
            one = next((one for one in stored if (one["data"], one["structure"]) == (data, structure)), None)
            if one is None:
                parser.exit(2, f"error: {data} {structure}: its first fold has not been run; leave --folds out\n")
            fold = len(one.get("floats", [0]))
            if fold == named.n_folds(data):
                break
            _store(options.output, with_fold(one, on_another_fold(one, fold)))


def _store(path: Path, new: Record) -> None:
    """Put a result in the place of an earlier one, and say what came out."""
    kept = {(one["data"], one["structure"]): one for one in (read_report(path) or {"results": []})["results"]}
    kept[new["data"], new["structure"]] = new
    write_report(path, {"command": "python -m experiments.resource_efficient.bits", "results": list(kept.values())})
    drawn = {b: min(o["error"] for o in new["trained"] if o["bits"] == b) for b in BITS}
    print(new["data"], new["structure"], new["float"], drawn, flush=True)


if __name__ == "__main__":
    main()
