"""What input noise does to margins, to few bits and to few rows: python -m experiments.input_noise.analysis.

Chow-Liu trees of letter, one setting of the loss, two seeds, about equally many steps of training. Nothing is chosen:
test errors of all runs are written. About 15 minutes on one core.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.provenance import provenance
from experiments.store import Record, write_report
from experiments.training import train_tables
from tinybayes.data import named
from tinybayes.infer.scores import class_scores
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.training.candidates import fixed
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, Trained
from tinybayes.model import Dataset, Fixed

RESULTS = Path(__file__).parent / "results" / "analysis.json"
NOISE, SEEDS, STEPS, BATCH = (0.0, 0.05, 0.1, 0.2, 0.4), (0, 1), 13_000, 100
ROWS = (250, 500, 1000, 2000, 4000, 8000)
FORMATS = {1: Fixed(1, 0), 2: Fixed(2, 0), 3: Fixed(3, 0), 4: Fixed(3, 1), 6: Fixed(3, 3), 8: Fixed(3, 5)}
COMMON: dict[str, Any] = {"lam": 170.0, "gamma": 1.5, "learning_rate": 0.03}


def trained(data: Dataset, test: Dataset, **format_of: Fixed) -> dict[float, list[Trained]]:
    """Return the trees of all seeds for every amount of noise."""
    tree, found = fixed(chow_liu(data)), {}
    options = TrainingOptions(epochs=max(1, STEPS // (len(data) // BATCH)), batch_size=BATCH)
    for noise in NOISE:
        runs = [TableConfiguration(candidates=tree, input_noise=noise, seed=s, **format_of, **COMMON) for s in SEEDS]
        found[noise] = train_tables(data, runs, options, test=test)
    return found


def error(results: list[Trained]) -> float:
    """Return the mean test error."""
    return round(float(np.mean([result.test_error for result in results])), 5)


def margins(result: Trained, rows: Dataset) -> np.ndarray:
    """Return by how much the score of the class exceeds the best other one, in nats."""
    assert result.net is not None
    assert rows.y is not None
    scores = class_scores(result.net, rows.X)
    own = np.take_along_axis(scores, rows.y[:, None], axis=1)[:, 0]
    np.put_along_axis(scores, rows.y[:, None], -np.inf, axis=1)
    return own - scores.max(axis=1)


def main() -> None:
    began = time.perf_counter()
    train, test = named.load("letter")
    lines: list[Record] = []
    for noise, results in trained(train, test).items():
        about: Record = {"part": "margins", "input_noise": noise, "test_error": error(results)}
        for name, rows in (("train", train), ("test", test)):
            margin = margins(results[0], rows)
            about[name] = {
                "median": round(float(np.median(margin)), 3),
                "below_half": round(float((margin < COMMON["gamma"] / 2).mean()), 4),
                "wrong": round(float((margin < 0).mean()), 4),
            }
        lines.append(about)
        print(about, flush=True)
    cases = [("rows", count, train.rows(np.arange(count)), {}) for count in ROWS]
    cases += [("bits", bits, train, {"number_format": known}) for bits, known in FORMATS.items()]
    for part, value, rows, given in cases:
        for noise, results in trained(rows, test, **given).items():
            lines.append({"part": part, part: value, "input_noise": noise, "test_error": error(results)})
        print(lines[-len(NOISE) :], flush=True)
    head = {"command": "python -m experiments.input_noise.analysis", "seeds": SEEDS, "setting": COMMON, "steps": STEPS}
    write_report(RESULTS, head | {"provenance": [provenance(time.perf_counter() - began)], "results": lines})


if __name__ == "__main__":
    main()
