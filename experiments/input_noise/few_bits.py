"""Chow-Liu trees of letter at 4 bits with input noise: python -m experiments.input_noise.few_bits.

A tenth of the training rows chooses among three settings; the chosen one learns from all training rows, and its test
error is measured once. About four minutes on one core.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.provenance import provenance
from experiments.store import Record, write_report
from experiments.training import train_tables
from tinybayes.data import named
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training.candidates import fixed
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, Trained, noisy
from tinybayes.model import Dataset, Fixed

RESULTS = Path(__file__).parent / "results" / "few_bits.json"
SEED, VALIDATION, SHORT, EPOCHS = 0, 0.1, 150, 800
COMMON: dict[str, Any] = {"lam": 170.0, "gamma": 1.5, "learning_rate": 0.03, "structure_noise": 0.1, "sharing": 1.0}
SETTINGS = ((Fixed(3, 1), 0.1), (Fixed(3, 1), 0.15), (Fixed(2, 2), 0.1))  # number format, input noise


def trained(data: Dataset, settings: tuple[tuple[Fixed, float], ...], epochs: int, **others: Any) -> list[Trained]:
    """Train trees through tables of 4 bits."""
    tree = fixed(chow_liu(data))
    runs = [
        noisy(TableConfiguration(candidates=tree, number_format=known, input_noise=noise, seed=SEED, **COMMON))
        for known, noise in settings
    ]
    return train_tables(data, runs, TrainingOptions(epochs=epochs, shuffle_seed=SEED), **others)


def main() -> None:
    began = time.perf_counter()
    train, test = named.load("letter")
    rows, held_out = hold_out(train, VALIDATION, SEED)
    tried: list[Record] = []
    results = trained(rows, SETTINGS, SHORT, validation=held_out)
    for (known, noise), result in zip(SETTINGS, results, strict=True):
        tried.append({**asdict(known), "input_noise": noise, "validation_error": result.validation_error})
    print(tried, flush=True)
    best = min(range(len(tried)), key=lambda k: tried[k]["validation_error"])
    result = trained(train, (SETTINGS[best],), EPOCHS, test=test)[0]
    assert result.net is not None
    size = sum(cpd.table.size for cpd in result.net.cpds) // 2
    found = {"chosen": tried[best], "epochs": EPOCHS, "bytes": size, "test_error": result.test_error}
    head = {"command": "python -m experiments.input_noise.few_bits", "seed": SEED, "tried": tried}
    write_report(RESULTS, head | {"provenance": [provenance(time.perf_counter() - began)], "results": [found]})
    print(found)


if __name__ == "__main__":
    main()
