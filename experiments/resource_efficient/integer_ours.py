"""Ours beside integer networks on equal rows: python -m experiments.resource_efficient.integer_ours.

`integer_bn` trains with one setting of the loss for each run. Here, for each data set, number of rows and number of
bits that it was run with, some settings are drawn as in setting (II) of differentiable_tan (lambda, gamma, both
learning rates), for each of the formats that branch and bound tried, and trained at once on the same rows. The least
test error is **chosen on test rows**, like that of branch and bound; *by training* is the test error of the setting
with the fewest errors on the training rows, the latest if several have as many.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.store import Record, read_lines, read_report, write_report
from experiments.training import train_tables
from tinybayes import datasets
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import Fixed

RESULTS = Path(__file__).parent / "results" / "integer_ours.json"
SETTINGS, EPOCHS = 8, 500  # settings of the loss for each format


def drawn(seed: int) -> list[Record]:
    """Draw settings of the loss."""
    random = np.random.default_rng(seed)
    return [
        {
            "lam": float(10 ** random.uniform(1, 3)),
            "gamma": float(10 ** random.uniform(-1, 2)),
            "learning_rate": (3e-3, 3e-2)[number % 2],
        }
        for number in range(SETTINGS)
    ]


def measure(data: str, used: int, bits: int, integers: list[int], batch: int) -> Record:
    """Train all settings in all formats at once."""
    everything, test = datasets.load(data)
    rows = everything.rows(np.sort(np.random.default_rng(0).permutation(len(everything))[:used]))
    space = candidates.fixed(naive_bayes(rows))
    settings = [(integer, setting) for integer in integers for setting in drawn(0)]
    runs = [
        TableConfiguration(candidates=space, number_format=Fixed(integer, bits - integer), **setting)
        for integer, setting in settings
    ]
    began = time.perf_counter()
    options = TrainingOptions(epochs=EPOCHS, batch_size=min(batch, max(1, used // 10)), device="cpu", every=EPOCHS)
    trained = train_tables(rows, runs, options, validation=rows, test=test, networks=False)
    seconds = time.perf_counter() - began
    tests = [round(t.test_error, 6) for t in trained]
    best, fitted = int(np.argmin(tests)), min(range(len(tests)), key=lambda i: (trained[i].validation_error, -i))
    return {
        "data": data,
        "used": used,
        "bits": bits,
        "settings": len(runs),
        "errors": sorted(tests),
        "error": tests[best],
        "best": {"integer": settings[best][0], **settings[best][1]},
        "by training": tests[fitted],
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no group after so many seconds")
    options = parser.parse_args()
    groups: dict[tuple[str, int, int], set[int]] = {}
    for r in read_lines(RESULTS.with_name("integer_bn.jsonl")):
        groups.setdefault((r["data"], r["used"], r["bits"]), set()).add(r["integer"])
    report = read_report(RESULTS) or {"provenance": [], "results": []}
    done = {(r["data"], r["used"], r["bits"]) for r in report["results"]}
    began, batches = time.monotonic(), {"satimage": 50, "usps": 100, "letter": 100, "mnist": 100}
    cheap_first = sorted(groups.items(), key=lambda item: (item[0][1], item[0][0] != "satimage", item[0]))
    for (data, used, bits), integers in cheap_first:
        if (data, used, bits) in done or time.monotonic() - began > options.seconds:
            continue
        at = time.monotonic()
        report["results"].append(measure(data, used, bits, sorted(integers), batches[data]))
        print(report["results"][-1], flush=True)
        report["provenance"] = [*report["provenance"], provenance(time.monotonic() - at)]
        write_report(RESULTS, report)


if __name__ == "__main__":
    main()
