"""The network of friends and smokers for any number of people, as Primula grounds it.

The model is the Markov logic network of Richardson and Domingos (2006): friends of friends are friends (0.7), people
without friends smoke (2.3), smoking causes cancer (1.5), friends both smoke or both do not (1.1). Every ground atom is
a root with a probability of 1/2. Every grounding of a formula is a small tree of logical nodes, and a last node that
is true with probability 1 where the formula holds, else ``exp(-weight)``. Given that all last nodes are true, the atoms
have the distribution of the Markov logic network.

``friends_and_smokers(4)`` has the nodes, tables and neighbourhoods of fs-04 of the UAI 2008 competition (a test says so
; the order of its nodes, and of a person's friends in a disjunction, is arbitrary there);
``friends_and_smokers(7)`` has 3,899 rows, as the network in Table 1 of *On Parameter Tying by Quantization*.
"""

from itertools import product

import numpy as np

from tinybayes.model import CPD, BayesNet, Float, Variable

TRANSITIVE, FRIENDLESS, CANCER, ALIKE = 0.7, 2.3, 1.5, 1.1  # weights of the formulas
IMPLIES, OR, SAME, TRUE = (1.0, 1.0, 0.0, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0)


class _Network:
    """A network under construction; a node is added by its parents and its probabilities of being true."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.cpds: list[CPD] = []

    def add(self, name: str, parents: tuple[int, ...], true: tuple[float, ...]) -> int:
        with np.errstate(divide="ignore"):
            logs = np.log(np.column_stack([1 - np.array(true), true])).astype(np.float32)
        self.variables.append(Variable(name, (0, 1)))
        self.cpds.append(CPD(parents, logs, Float()))
        return len(self.cpds) - 1

    def formula(self, name: str, holds: int, weight: float) -> int:
        """Add the last node of a formula."""
        return self.add(f"{name} observed", (holds,), (float(np.exp(-weight)), 1.0))


def friends_and_smokers(people: int) -> BayesNet:
    """Return the network for so many people; its last nodes are named "... observed"."""
    net, everyone = _Network(), range(people)
    smokes = [net.add(f"smokes({x})", (), (0.5,)) for x in everyone]
    cancer = [net.add(f"cancer({x})", (), (0.5,)) for x in everyone]
    friends = [[net.add(f"friends({x},{y})", (), (0.5,)) for y in everyone] for x in everyone]
    for x, y, z in product(everyone, repeat=3):
        name, first, second, last = f"transitive({x},{y},{z})", friends[x][y], friends[y][z], friends[x][z]
        if x == y == z:  # a constant that no weight is given to
            net.add(name, (first,), (1.0, 1.0))
        elif x == y:  # a constant, too, of two atoms
            net.formula(name, net.add(name, (first, second), TRUE), TRANSITIVE)
        else:
            inner = net.add(f"{name} inner", (second, last), IMPLIES)
            net.formula(name, net.add(name, (first, inner), IMPLIES), TRANSITIVE)
    for x in everyone:
        some = friends[x][0]
        for y, other in enumerate([*friends[x][1:], smokes[x]]):
            some = net.add(f"friendless({x}) {y}", (some, other), OR)
        net.formula(f"friendless({x})", some, FRIENDLESS)
        net.formula(f"cancer({x})", net.add(f"causes({x})", (smokes[x], cancer[x]), IMPLIES), CANCER)
        net.formula(f"alike({x},{x})", net.add(f"alike({x},{x})", (friends[x][x], smokes[x]), TRUE), ALIKE)
        for y in range(x):
            same = net.add(f"same({x},{y})", (smokes[x], smokes[y]), SAME)
            for a, b in ((x, y), (y, x)):
                holds = net.add(f"alike({a},{b})", (friends[a][b], same), IMPLIES)
                net.formula(f"alike({a},{b})", holds, ALIKE)
    return BayesNet(tuple(net.variables), None, tuple(net.cpds))
