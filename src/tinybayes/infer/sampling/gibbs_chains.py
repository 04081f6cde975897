"""Gibbs sampling of the marginals of networks and log-linear models, for a budget."""

from collections.abc import Mapping

import numpy as np

from tinybayes._kernels.gibbs import Sums, burn, sample
from tinybayes._kernels.gibbs_chain import enter
from tinybayes.infer.gibbs import Queries, Run, new_chain
from tinybayes.infer.log_linear import as_network
from tinybayes.infer.sampling._chains import chain_count, run_chains
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.model import CPD, BayesNet, Float, LogLinear

BURN_IN = 1000  # sweeps
_NOTE = "one variable moves at a time: where zeros forbid this, regions that no chain has visited are missing"


def gibbs_marginals(
    model: BayesNet | LogLinear,
    known: Mapping[int, int],
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    chains: int | None = None,
    burn_in: int = BURN_IN,
) -> Marginals:
    """Estimate all marginals; the chances that values are drawn from are averaged, not the values."""
    net = model if isinstance(model, BayesNet) else network(model)
    variables = model.nodes if isinstance(model, BayesNet) else model.variables
    evidence = np.full((1, len(net.nodes)), -1, dtype=np.int64)
    for v, state in known.items():
        evidence[0, v] = state
    queries = Queries(evidence, np.full(evidence.shape, -1))
    count = chains or chain_count()
    plan = Run(net, queries, count, burn_in, 1, True, seed)
    states = int(plan.net.first_state[len(variables)])
    made = [_Gibbs(plan, queries.evidence[0], number, burn_in, states) for number in range(count)]
    zeros = any(np.isneginf(cpd.log_parameters).any() for cpd in net.cpds)
    first_state = plan.net.first_state[: len(variables) + 1]
    return run_chains(variables, made, first_state, budget, "gibbs", progress, (_NOTE,) if zeros else ())


class _Gibbs:
    """A chain; it is started and burnt in when it is first asked."""

    def __init__(self, plan: Run, evidence: np.ndarray, number: int, burn_in: int, states: int) -> None:
        self.plan, self.evidence, self.number, self.burn_in, self.states = plan, evidence, number, burn_in, states
        net = plan.net
        self.free = np.flatnonzero((evidence < 0) & (net.states > 1))
        self.fixed = np.flatnonzero((evidence >= 0) | (net.states < 2))
        self.asked = plan.queries.asked[0]
        self.logs = np.empty(int(net.states.max()))
        self.chain = new_chain(net)
        self.started = False

    def advance(self, sweeps: int) -> np.ndarray:
        net, chain = self.plan.net, self.chain
        if not self.started:
            self.plan.begin(chain, self.evidence, 0, self.number)
            enter(net, chain, self.asked, -1)
            burn(net, chain, self.free, self.asked, -1, self.burn_in, self.logs)
            self.started = True
        size = int(net.first_state[-1])
        one = np.zeros(1, dtype=np.int64)
        sums = Sums(one, one.copy(), np.zeros(2), np.zeros(size), np.zeros(size))
        sample(net, chain, self.free, self.asked, -1, True, np.array([0, sweeps]), sums, self.logs)
        sums.total[net.first_state[self.fixed] + chain.x[self.fixed]] = sweeps
        return sums.total[: self.states]


def network(model: LogLinear) -> BayesNet:
    """Return a network, not normalised, whose entries multiply to what the features add up to.

    Factors that cannot be the distribution of one of their variables are those of helpers with a single state, which
    come after the variables.
    """
    shape, classes = as_network(model)
    values, begin, cpds = np.append(model.weights, 0.0)[classes], 0, []
    for cpd in shape.cpds:
        table = values[begin : begin + cpd.table.size].reshape(cpd.table.shape)
        cpds.append(CPD(cpd.parents, table, Float(64), cpd.tree))
        begin += cpd.table.size
    return BayesNet(shape.variables, None, tuple(cpds))
