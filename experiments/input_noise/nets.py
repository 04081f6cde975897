"""Noise in the inputs of neural networks: python -m experiments.input_noise.nets. Minutes on a GPU.

Dense networks of 6 bits on raw integers, two thirds of the rows for training (a permutation of seed 0); amounts of
noise, mixed rows and two learning rates, one seed each. Test errors; nothing is chosen but the learning rate.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from experiments.provenance import provenance
from experiments.store import Record, write_report
from experiments.training import train_nets
from tinybayes.data.named import load_raw
from tinybayes.learn.training.nets import NetConfiguration
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.search.prepare import make_views
from tinybayes.search.views import Views

RESULTS = Path(__file__).parent / "results" / "nets.json"
NETS = {"letter": ((116, 116), (64, 64)), "digits": ((44, 44), (24, 24)), "satimage": ((64, 64),)}
EPOCHS = {"letter": 300, "digits": 600, "satimage": 300}
NOISE, MIXUP, RATES = (0.0, 0.1, 0.2, 0.3, 0.4), (0.0, 0.4), (3e-3, 1e-2)


def views_of(name: str) -> Views:
    """Return a data set with a third of its rows as test rows."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_raw(name)
    frame = pd.DataFrame(np.asarray(X)).rename(columns=lambda c: f"x{c}").assign(label=np.asarray(y))
    test = np.random.default_rng(0).permutation(len(frame)) < len(frame) // 3
    parts = (frame[part].reset_index(drop=True) for part in (~test, test))
    return make_views(next(parts), "label", test=next(parts))


def measured(name: str) -> list[Record]:
    """Train all nets of a data set."""
    views, lines = views_of(name), []
    rows, test = views.rows("fine", all_seen=True)[0], views.by_name["fine"].test
    for hidden, batch_norm in product(NETS[name], (True, False)):
        runs = [
            NetConfiguration(
                hidden=hidden, bits=6, batch_norm=batch_norm, input_noise=noise, mixup=mixup, learning_rate=rate
            )
            for noise, mixup, rate in product(NOISE, MIXUP, RATES)
        ]
        for run, result in zip(
            runs, train_nets(rows, runs, TrainingOptions(epochs=EPOCHS[name]), test=test), strict=True
        ):
            about = {"data": name, "hidden": hidden, "batch_norm": batch_norm, "error": round(result.test_error, 5)}
            lines.append(about | {key: getattr(run, key) for key in ("input_noise", "mixup", "learning_rate")})
    return lines


if __name__ == "__main__":
    made = [line for name in NETS for line in measured(name)]
    write_report(RESULTS, {"provenance": [provenance(0.0)], "results": made})
