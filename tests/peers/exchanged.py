"""A classifier to exchange, and questions about it. Its names are words: pyAgrum's reader of BIF knows no quotes."""

import numpy as np
import pandas as pd

from tinybayes import compile_circuit, learn_classifier, read_dataset
from tinybayes.infer import ask_codes
from tinybayes.infer.ask import parse_query

QUESTIONS = [("play", {"wind": "strong"}), ("sky", {"play": "no", "wet": "yes"}), ("wet", {})]


def weather():
    generator = np.random.default_rng(3)
    n = 500
    sky = generator.choice(["clear", "cloudy", "rain"], n)
    wind = np.where(generator.random(n) < 0.7, np.where(sky == "rain", "strong", "weak"), "weak")
    play = np.where((sky != "rain") & (generator.random(n) < 0.8), "yes", "no")
    frame = pd.DataFrame({"sky": sky, "wind": wind, "wet": np.where(sky == "rain", "yes", "no"), "play": play})
    return learn_classifier(read_dataset(frame, target="play"), structure="chow-liu")


def states(net, variable):
    return next(v.states for v in net.nodes if v.name == variable)


def posterior(net, variable, evidence):
    """P(variable | evidence) by our circuits, which other tests compare with sums over all assignments."""
    circuit = compile_circuit(net)
    known = ", ".join(f"{name}={state}" for name, state in evidence.items())
    rows = [parse_query(f"{variable}={state} | {known}", circuit.nodes) for state in states(net, variable)]
    return [ask_codes(circuit, *row).probability for row in rows]


def same_network(one, two):
    assert {v.name: v.states for v in one.nodes} == {v.name: v.states for v in two.nodes}
    for variable, evidence in QUESTIONS:
        np.testing.assert_allclose(posterior(one, variable, evidence), posterior(two, variable, evidence), atol=2e-6)
