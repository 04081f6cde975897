"""The sweep behind the defaults of training by gradient: python -m experiments.tuning (three minutes on a GPU).

A grid of settings on digits, letter, satimage (first fold) and usps, for three structures and two lengths of training;
errors on a fifth of the training rows that was held out, and on the test rows, which were not used to choose. The
default is the setting whose validation error is, on average, the least multiple of the best one's for its data and
structure.
"""

import itertools
import json
import math
import time
from pathlib import Path

from experiments.provenance import provenance
from experiments.store import write_text
from experiments.training import train_tables
from tinybayes import datasets
from tinybayes.learn import chow_liu, naive_bayes
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training import candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration

COLUMNS = ["data", "structure", "steps", "epochs", "lam", "gamma", "learning_rate", "structure_rate"]


def main() -> None:
    runs, began = [], time.monotonic()
    for name, structure, steps in itertools.product(
        ("digits", "letter", "satimage", "usps"), ("naive", "chow-liu", "subset"), (2000, 6000)
    ):
        data, test = datasets.load(name)
        rows, validation = hold_out(data, 0.2, 0)
        search = structure == "subset"
        fixed = {"naive": naive_bayes, "chow-liu": chow_liu}
        space = candidates.subset(len(data.variables), 8) if search else candidates.fixed(fixed[structure](rows))
        rates = (1e-3, 1e-2, 5e-2) if search else (1e-3,)
        grid = list(itertools.product((10, 30, 100, 300), (1, 3, 10, 30, 90), (3e-3, 1e-2, 3e-2), rates))
        settings = [dict(zip(COLUMNS[4:], values, strict=True)) for values in grid]
        epochs = max(10, math.ceil(100 * steps / len(rows)))
        trained = train_tables(
            rows,
            [TableConfiguration(candidates=space, **setting) for setting in settings],
            TrainingOptions(epochs=epochs),
            validation=validation,
            test=test,
            networks=False,
        )
        for values, result in zip(grid, trained, strict=True):
            figures = [round(result.validation_error, 6), round(result.test_error, 6)]
            runs.append([name, structure, steps, epochs, *values, *figures])
        print(name, structure, steps, min(r.validation_error for r in trained), flush=True)
    columns = [*COLUMNS, "validation_error", "test_error"]
    report = {"provenance": provenance(time.monotonic() - began), "columns": columns, "runs": runs}
    write_text(Path(__file__).parent / "tuning.json", json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
