"""Write a Bayesian network by hand, compile it to a circuit, and ask it anything, exactly."""

import numpy as np

import tinybayes as tb


def cpd(parents: tuple[int, ...], *rows: list[float]) -> tb.CPD:
    """One row of probabilities for each state of the parents."""
    return tb.CPD(parents, tb.Float(64).encode(np.log(rows)), tb.Float(64))


rain = tb.Variable("rain", ("no", "yes"))
sprinkler = tb.Variable("sprinkler", ("off", "on"))
wet = tb.Variable("wet", ("no", "yes"))
net = tb.BayesNet(
    (rain, sprinkler, wet),
    None,
    (
        cpd((), [0.8, 0.2]),
        cpd((0,), [0.6, 0.4], [0.99, 0.01]),  # given rain
        cpd((0, 1), [0.99, 0.01], [0.1, 0.9], [0.2, 0.8], [0.01, 0.99]),  # given rain and sprinkler
    ),
)
circuit = tb.compile_circuit(net)
print(f"{circuit.n_nodes} nodes, {circuit.n_edges} edges")

evidence = np.array([[-1, -1, 1]])  # the grass is wet; -1 is unknown
query = np.array([[1, -1, -1]])
print(f"P(wet) = {np.exp(circuit.log_likelihood(evidence)[0]):.4f}")
print(f"P(rain | wet) = {circuit.conditional(query, evidence)[0]:.4f}")
completed, _ = circuit.most_probable(evidence)
print("most probable:", {v.name: v.states[s] for v, s in zip(net.variables, completed[0], strict=True)})
print("drawn, given that the grass is wet:", circuit.sample(4, seed=0, evidence=evidence[0]).tolist())
