"""Friends and smokers: our generator against the network of the competition, and against the formulas themselves."""

from itertools import product

import numpy as np
import pytest

from experiments.parameter_tying.friends import friends_and_smokers
from tinybayes import marginals
from tinybayes.deploy.files.uai import read_uai
from tinybayes.model import BayesNet


def colours(net: BayesNet) -> list[int]:
    """Return a colour for each node: its table, and those of its parents and children.

    One round only: the order in which a person's friends are joined by OR is arbitrary in the file.
    """
    tables = [np.round(np.exp(cpd.log_parameters[:, 1]), 3) for cpd in net.cpds]
    now = [hash((len(cpd.parents), *sorted(table.tolist()))) for cpd, table in zip(net.cpds, tables, strict=True)]
    children: list[list[int]] = [[] for _ in net.cpds]
    for v, cpd in enumerate(net.cpds):
        for parent in cpd.parents:
            children[parent].append(v)
    return sorted(
        hash((now[v], *sorted(now[p] for p in cpd.parents), "|", *sorted(now[c] for c in children[v])))
        for v, cpd in enumerate(net.cpds)
    )


def test_four_people_are_the_network_of_the_competition(data_dir):
    theirs, ours = read_uai(data_dir / "networks" / "fs-04.uai"), friends_and_smokers(4)
    assert colours(ours) == colours(theirs)
    assert colours(friends_and_smokers(3)) != colours(theirs)


@pytest.mark.parametrize(("people", "rows"), [(4, 800), (7, 3899)])
def test_rows_are_those_of_the_paper(people, rows):
    assert sum(len(cpd.table) for cpd in friends_and_smokers(people).cpds) == rows


def test_given_all_formulas_the_atoms_follow_the_markov_logic_network():
    people, net = range(2), friends_and_smokers(2)
    names = [variable.name for variable in net.nodes]
    atoms = names[:8]
    total, sums = 0.0, np.zeros(8)
    for values in product((0, 1), repeat=8):
        atom = dict(zip(atoms, values, strict=True))
        fr = {(x, y): atom[f"friends({x},{y})"] for x in people for y in people}
        sm, ca = ([atom[f"{kind}({x})"] for x in people] for kind in ("smokes", "cancer"))
        score = 0.0
        for x, y, z in product(people, repeat=3):
            score += 0.7 * (not (fr[x, y] and fr[y, z]) or fr[x, z])
        score += sum(2.3 * (any(fr[x, y] for y in people) or sm[x]) + 1.5 * (not sm[x] or ca[x]) for x in people)
        score += sum(1.1 * (not fr[x, y] or sm[x] == sm[y]) for x in people for y in people)
        total += np.exp(score)
        sums += np.exp(score) * np.array(values)
    found = marginals(net, {name: 1 for name in names if name.endswith("observed")}, method="exact")
    assert np.allclose([found[atom][1] for atom in atoms], sums / total, atol=1e-5)
