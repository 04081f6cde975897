"""Which moves, and whether noise should end: python -m experiments.input_noise.kernels.

Chow-Liu trees of letter and satimage (first fold), one setting of the loss each, with several kernels of moves. Beside
the test error stands that of tables averaged over the noise, as scores are in expectation. Minutes on a GPU.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.store import Record, write_report
from experiments.training import train_tables
from tinybayes.data import named
from tinybayes.infer import predict_codes
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.training.candidates import fixed
from tinybayes.learn.training.input_noise import full, moves
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import BayesNet, Dataset

RESULTS = Path(__file__).parent / "results" / "kernels.json"
EPOCHS = 500
SETTINGS = {
    "letter": {"lam": 300.0, "gamma": 1.5, "structure_noise": 0.1, "sharing": 1.0, "input_noise": 0.15},
    "satimage": {"lam": 300.0, "gamma": 8.0, "input_noise": 0.3},
}
# Factor of the noise, reach of a move in bins (0: to the next bin), share of the noise at the end.
KERNELS = ((1, 0, 1), (1, 0.7, 1), (1, 1, 1), (1, 1.5, 1), (1, 0, 0), (1.7, 0, 0), (1, 0.7, 0), (1, 1, 0.3))


def kernels_of(data: Dataset, reach: float) -> list[np.ndarray]:
    """Return for each feature where a code moves to: a row of probabilities for each state."""
    cumulative = full(moves(data, reach))
    assert cumulative is not None  # only features of very many states have no whole table
    shares = np.diff(np.minimum(cumulative, 1.0), axis=2, prepend=0.0)
    return [own[: v.cardinality, : v.cardinality] for own, v in zip(shares, data.variables, strict=True)]


def averaged(net: BayesNet, data: Dataset, run: TableConfiguration) -> BayesNet:
    """Return a network whose tables are the means over the noise in a feature and its parent."""
    noise = run.input_noise
    mixed = [(1 - noise) * np.eye(len(q)) + noise * q for q in kernels_of(data, run.noise_reach)]
    assert data.target is not None
    cpds, classes = [], data.target.cardinality
    for f, cpd in enumerate(net.cpds[:-1]):
        parents = [p for p in cpd.parents if p < len(data.variables)]
        table = cpd.table.reshape(-1, classes, data.variables[f].cardinality)
        if parents:
            table = np.einsum("pq,qcx->pcx", mixed[parents[0]], table)
        table = np.einsum("xz,pcz->pcx", mixed[f], table)
        cpds.append(replace(cpd, table=table.reshape(cpd.table.shape)))
    return replace(net, cpds=(*cpds, net.cpds[-1]))


def measured(name: str) -> list[Record]:
    """Train all kernels on a data set."""
    split = named.load(name)
    setting, candidates = SETTINGS[name], fixed(chow_liu(split.train))
    runs = []
    for factor, reach, end in KERNELS:
        noise = {"input_noise": factor * setting["input_noise"], "noise_reach": reach, "noise_end": end}
        runs.append(TableConfiguration(candidates=candidates, learning_rate=0.03, **setting | noise))
    lines = []
    results = train_tables(split.train, runs, TrainingOptions(epochs=EPOCHS), test=split.test)
    for run, result in zip(runs, results, strict=True):
        assert result.net is not None
        labels = predict_codes(averaged(result.net, split.train, run), split.test.X)
        kernel = {key: getattr(run, key) for key in ("input_noise", "noise_reach", "noise_end")}
        errors = {"test_error": result.test_error, "averaged_error": float((labels != split.test.y).mean())}
        lines.append({"data": name, **kernel, **errors})
    return lines


if __name__ == "__main__":
    made = [line for name in SETTINGS for line in measured(name)]
    write_report(RESULTS, {"provenance": [provenance(0.0)], "results": made})
