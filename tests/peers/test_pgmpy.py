"""pgmpy: exact posteriors by variable elimination, trees and parameters, and networks there and back.

One of its queries asks for one variable, so of the large networks some variables are asked for, spread over all.
"""

import os
import warnings

import numpy as np
import pytest
from exchanged import QUESTIONS, posterior, same_network, states, weather
from others import BIF, UAI, answers, bif_answers, bif_file, small_networks, table, to_pgmpy, uai_answers

import zoo
from tinybayes import Float, Variable, chow_liu, load, marginals, maximum_likelihood, read_dataset, save
from tinybayes.deploy.files.uai import read_uai_factors

os.environ["TQDM_DISABLE"] = "1"
pytest.importorskip("pgmpy")
pytestmark = pytest.mark.filterwarnings("ignore")  # of what its next versions will do
SMALL = small_networks()
MOST = 12  # variables asked for in a large network
# Its elimination takes ten seconds for a variable of mastermind1, and was not tried for the widest noisy-or.
TOO_LARGE = {"mastermind1", "bn2o-30-20-200-1a"}


@pytest.fixture(scope="module", autouse=True)
def pgmpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgmpy.estimators
        import pgmpy.inference
        import pgmpy.models
        import pgmpy.parameter_estimator
        import pgmpy.readwrite
    return pgmpy


def compare(pgmpy, model, row, ours, tolerance):
    """Ask for variables that were not observed, spread over all."""
    engine = pgmpy.inference.VariableElimination(model)
    known = {f"x{v}": int(row[v]) for v in np.flatnonzero(row >= 0)}
    hidden = np.flatnonzero(row < 0)
    for v in hidden[:: -(-len(hidden) // MOST)] if len(hidden) else ():
        found = engine.query([f"x{v}"], evidence=known, show_progress=False)
        np.testing.assert_allclose(found.values, ours[v], atol=tolerance)


@pytest.mark.parametrize("name", SMALL)
def test_posteriors_of_small_networks(pgmpy, name):
    net = SMALL[name]
    model = to_pgmpy(net)
    for row, ours in zip(*answers(net, 4), strict=True):
        compare(pgmpy, model, row, ours, 1e-6)


@pytest.mark.parametrize("name", BIF)
def test_the_repository_as_pgmpy_reads_it(pgmpy, data_dir, name, tmp_path):
    """Nothing of ours is between the file and its answer; states are found by their names."""
    net, rows, ours = bif_answers(data_dir, name)
    engine = pgmpy.inference.VariableElimination(
        pgmpy.readwrite.BIFReader(str(bif_file(data_dir, name, tmp_path))).get_model()
    )
    for row, mine in zip(rows, ours, strict=True):
        known = {net.nodes[v].name: str(net.nodes[v].states[row[v]]) for v in np.flatnonzero(row >= 0)}
        hidden = np.flatnonzero(row < 0)
        for v in hidden[:: -(-len(hidden) // MOST)]:
            node = net.nodes[v]
            found = engine.query([node.name], evidence=known, show_progress=False)
            values = [found.get_value(**{node.name: str(s)}) for s in node.states]
            np.testing.assert_allclose(values, mine[v], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in UAI if name not in TOO_LARGE])
def test_posteriors_of_the_competitions(pgmpy, data_dir, name):
    """Built from our tables: its reader of UAI takes minutes, and knows no exponents."""
    net, row, ours = uai_answers(data_dir, name, "rand20")
    compare(pgmpy, to_pgmpy(net), row, ours, 1e-10)


def pairs(structure):
    return {frozenset((f"x{p}", f"x{i}")) for i, parents in enumerate(structure.parents) for p in parents}


def test_trees(pgmpy, digits):
    data, frame = digits
    target = f"x{len(data.variables)}"
    search = pgmpy.estimators.TreeSearch(frame, root_node="x0", n_jobs=1)
    tan = search.estimate("tan", class_node=target, show_progress=False)
    assert pairs(chow_liu(data)) == {frozenset(edge) for edge in tan.edges()}
    features = read_dataset(frame.drop(columns=target).astype(str))
    search = pgmpy.estimators.TreeSearch(frame.drop(columns=target), root_node="x0", n_jobs=1)
    plain = search.estimate("chow-liu", show_progress=False)
    assert pairs(chow_liu(features)) == {frozenset(edge) for edge in plain.edges()}


@pytest.mark.parametrize("smoothing", [0.5, 1.0])
def test_parameters(pgmpy, digits, smoothing):
    data, frame = digits
    net = maximum_likelihood(data, chow_liu(data), smoothing=smoothing, number_format=Float(64))
    model = pgmpy.models.DiscreteBayesianNetwork(to_pgmpy(net).edges())
    names = {f"x{v}": list(range(node.cardinality)) for v, node in enumerate(net.nodes)}
    options = {"prior_type": "dirichlet", "pseudo_counts": smoothing, "state_names": names}
    model.fit(frame, estimator=pgmpy.parameter_estimator.DiscreteBayesianEstimator(**options))
    for v, cpd in enumerate(net.cpds):
        theirs = model.get_cpds(f"x{v}")
        order = [theirs.variables.index(f"x{p}") for p in cpd.parents]  # its parents come in an order of its own
        values = theirs.values.transpose(*order, 0).reshape(-1, net.nodes[v].cardinality)
        np.testing.assert_allclose(table(net, v), values, atol=1e-12)


@pytest.mark.parametrize("suffix", ["bif", "xmlbif"])
def test_models_there_and_back(pgmpy, tmp_path, suffix):
    net = weather()
    reader, writer = (getattr(pgmpy.readwrite, f"{suffix.upper()}{kind}") for kind in ("Reader", "Writer"))
    save(net, tmp_path / f"ours.{suffix}")
    theirs = reader(str(tmp_path / f"ours.{suffix}")).get_model()
    engine = pgmpy.inference.VariableElimination(theirs)
    for variable, evidence in QUESTIONS:
        found = engine.query([variable], evidence=evidence, show_progress=False)
        values = [found.get_value(**{variable: state}) for state in states(net, variable)]
        np.testing.assert_allclose(values, posterior(net, variable, evidence), atol=1e-6)
    writer(theirs).write(str(tmp_path / f"theirs.{suffix}"))
    same_network(load(tmp_path / f"theirs.{suffix}"), net)


def ask_by_number(pgmpy, model, net, prefix):
    """Compare the answers of a network whose names were lost with ours."""
    engine, names = pgmpy.inference.VariableElimination(model), [v.name for v in net.nodes]
    for variable, evidence in QUESTIONS:
        known = {f"{prefix}{names.index(n)}": list(states(net, n)).index(s) for n, s in evidence.items()}
        found = engine.query([f"{prefix}{names.index(variable)}"], evidence=known, show_progress=False)
        values = found.values / found.values.sum()  # of factors it gives the weights
        np.testing.assert_allclose(values, posterior(net, variable, evidence), atol=1e-6)


@pytest.mark.xfail(strict=True, raises=ValueError, reason="pgmpy takes the child's states as the slowest of a table")
def test_uai_to_pgmpy(pgmpy, tmp_path):
    """The format says that the last variable of a scope, the child, runs fastest."""
    save(weather(), tmp_path / "ours.uai")
    ask_by_number(pgmpy, pgmpy.readwrite.UAIReader(str(tmp_path / "ours.uai")).get_model(), weather(), "var_")


def test_uai_to_pgmpy_as_factors(pgmpy, tmp_path):
    """Of Markov networks its reader takes the last variable as the fastest; the tables of ours are such factors."""
    save(weather(), tmp_path / "ours.uai")
    text = (tmp_path / "ours.uai").read_text()
    (tmp_path / "factors.uai").write_text(text.replace("BAYES", "MARKOV"))
    ask_by_number(pgmpy, pgmpy.readwrite.UAIReader(str(tmp_path / "factors.uai")).get_model(), weather(), "var_")


def test_uai_from_pgmpy_as_factors(pgmpy, tmp_path):
    """Two states everywhere: its writer lists the numbers of states by size, not by variable."""
    rng = np.random.default_rng(0)
    variables = [Variable(f"x{v}", (0, 1)) for v in range(7)]
    net = zoo.random_net(rng, 7, max_parents=3, target=False, variables=variables)
    markov = to_pgmpy(net).to_markov_model()
    pgmpy.readwrite.UAIWriter(markov).write(str(tmp_path / "theirs.uai"))
    found = marginals(read_uai_factors(tmp_path / "theirs.uai"), {0: 1}, method="exact").probabilities
    for mine, theirs in zip(marginals(net, {0: 1}, method="exact").probabilities, found, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-6)
