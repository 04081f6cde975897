"""Model files whose answers are looked at: densities with alarms, encodings, and Markov networks asked in two ways."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz_networks import chosen, networks, written
from fuzz_readers import Mutant, Run

import zoo
from density_host import random_latent
from mutate import Corpus, ModelFiles
from tinybayes import tie
from tinybayes.data.encode import encode_column
from tinybayes.deploy import load, save
from tinybayes.deploy.export import export
from tinybayes.deploy.files.native import load_metadata
from tinybayes.deploy.files.uai import read_uai, read_uai_factors, write_uai
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, log_evidence, log_likelihood, marginals, posteriors
from tinybayes.infer.alarm import Alarm, from_metadata, integer_alarm
from tinybayes.infer.integer_density import integer_density, integer_log_likelihood
from tinybayes.model import BayesNet, Circuit, Cuts, Fixed, Grid, Integers, Variable

LARGE = 4096  # assignments of a network that is asked in two ways
HOSTILE = ["</script><!-- ", 'a"b\\', "*/ /* //", "\u2028\x1b[2J"]
FLOATS = [float("nan"), 0.1, -1e300, 2.5, 16777217.0, -0.0, 5e-324, 7.0, 2.0**40, -3.0]
NUMBERS = [None, *FLOATS[1:], 7, 2**40, -3]
VALUES = ["", "nan", "inf", "-1e400", "0.1", "2.5", "16777217", "1e300", "-0.0", "x", "\ud800", "7", "7.0", "0x10", "٣"]


def _files(models: list[tuple[Any, dict[str, Any]]]) -> ModelFiles:
    from fuzz_harness import place

    directory, files = place(), []
    for model, metadata in models:
        save(model, directory / "seed.tb", metadata=metadata)
        files.append((directory / "seed.tb").read_bytes())
    (directory / "seed.tb").unlink()
    directory.rmdir()
    return ModelFiles(files)


def densities() -> tuple[Mutant, Run]:
    """Latent circuits with alarms: likelihoods in doubles, in integers within their bound, and as C."""
    variables = tuple(Variable(f"v{i}", tuple(range(2 + i % 3))) for i in range(5))
    alarm = {"alarm": Alarm(-6.5, 5.0, 0.05, 60).to_metadata()}
    latent = random_latent(variables, 3)
    seeds = [latent, random_latent(variables, 2, seed=1, cut=0.5), tie(latent, 6).model]
    files = _files([(circuit, alarm) for circuit in seeds])

    def run(data: bytes, directory: Path) -> None:
        path = directory / "input.tb"
        path.write_bytes(data)
        circuit, alarm = load(path), from_metadata(load_metadata(path))
        if not isinstance(circuit, Circuit):
            return
        X = np.zeros((3, len(circuit.nodes)), np.int32)
        X[1] = -1
        X[2, ::2] = -1
        logs = log_likelihood(circuit, X)
        density = integer_density(circuit)
        found = integer_log_likelihood(circuit, X) / 2.0**density.fraction
        inside = np.isfinite(logs) & (logs > -1000)
        assert (np.abs(found[inside] - logs[inside]) <= density.bound).all()
        if alarm is not None:
            scores, raised = integer_alarm(circuit, alarm, X, np.array([0, 1, 2]))
            assert (np.abs(scores) < 2**31).all()
            assert raised[1:].all()
            assert not (raised[0] and logs[0] >= alarm.threshold)
            if chosen(data):
                export(circuit, to="c", alarm=alarm)

    return files.mutant, run


def encodings() -> tuple[Mutant, Run]:
    """Variables with all encodings and hostile names: hostile values become codes; exports hold no raw markup."""
    variables = (
        Variable.from_encoding(HOSTILE[0], Cuts([0.1, 2.5, 1e6])),
        Variable.from_encoding(HOSTILE[1], Cuts([-3, 2**24 + 1], integer=True)),
        Variable.from_encoding(HOSTILE[2], Grid(-1.0, 0.25, 9)),
        Variable.from_encoding(HOSTILE[3], Integers(-2, 5)),
        Variable("numbers", (0.1, 7.0, 2.0)),
        Variable("words", ("red", "1", "</script>")),
        Variable("flags", (False, True)),
    )
    rng = np.random.default_rng(6)
    target = Variable("class", ("no", "<!--"))
    tables = [
        zoo.cpd(rng.dirichlet(np.ones(v.cardinality), 2), [len(variables)], number_format=Fixed(3, 2))
        for v in variables
    ]
    net = BayesNet(variables, target, (*tables, zoo.cpd([[0.5, 0.5]], number_format=Fixed(3, 2))))
    files = _files([(net, {})])

    def run(data: bytes, directory: Path) -> None:
        path = directory / "input.tb"
        path.write_bytes(data)
        model = load(path)
        if not isinstance(model, BayesNet):
            return
        for variable in model.variables:
            for values in ([None, *VALUES], NUMBERS, np.array(FLOATS)):
                try:
                    codes = encode_column(
                        pd.Series(values, name="x", dtype=object if isinstance(values, list) else None), variable
                    )
                except TinybayesError:
                    continue
                assert ((codes >= -1) & (codes < variable.cardinality)).all()
        if chosen(data) and model.target is not None:
            text = str(export(model, to="javascript")["model.js"])
            assert not any(mark in text for mark in ("</", "<!--", "\u2028", "\x1b"))
            described = text[text.rindex("tinybayesProgram({") + 17 : text.rindex(");\nif (typeof")]
            assert json.loads(described)["features"] == [v.name for v in model.variables]

    return files.mutant, run


def join_trees() -> tuple[Mutant, Run]:
    """Networks and Markov networks in the format of UAI: a join tree and a circuit give the same answers."""
    from fuzz_harness import place

    directory = place()
    seeds = [written(write_uai, net, directory / "seed.uai") for net in networks()]
    (directory / "seed.uai").unlink()
    directory.rmdir()
    seeds.append(b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 1.5 0 2 1\n\n6\n1 1 2 3 4 5\n")
    seeds.append(b"MARKOV\n4\n2 2 2 2\n4\n2 0 1\n2 1 2\n2 2 3\n2 3 0\n" + b"\n4\n1e-200 3 0 1\n" * 4)
    corpus = Corpus(seeds, ["BAYES", "MARKOV", "0", "1", "2", "1e-300", "1e300", "4.9e-324", "\n", " "])

    def run(data: bytes, directory: Path) -> None:
        path = directory / "input.uai"
        path.write_bytes(data)
        model = read_uai(path) if data.lstrip().startswith(b"BAYES") else read_uai_factors(path)
        variables = model.nodes if isinstance(model, BayesNet) else model.variables
        cards = [v.cardinality for v in variables]
        if not 0 < np.prod([float(card) for card in cards]) <= LARGE:
            return
        known = {0: data[-1] % cards[0]} if len(data) % 2 else {}
        circuit = compile_circuit(model)
        row = np.array([[known.get(v, -1) for v in range(len(cards))]])
        log = float(log_evidence(circuit, row)[0])
        try:
            found = marginals(model, known, method="join-tree")
        except TinybayesError:
            assert log == -np.inf  # impossible evidence
            return
        assert abs(found.log_z - log) <= 1e-9 * max(1.0, abs(log)), (found.log_z, log)
        np.testing.assert_allclose(np.concatenate(found.probabilities), posteriors(circuit, row)[0], atol=1e-9)

    return corpus.mutant, run
