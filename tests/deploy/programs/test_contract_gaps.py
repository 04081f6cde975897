"""The contract with gaps: 75 classifiers, all kinds of neural nets and trees, coded and raw, in every target with gaps.

A twentieth of the entries is missing. Labels and scores are those of Python: integers to the bit, floats within the
bound that the code states.
"""

import os
import shutil

import numpy as np
import pytest
from test_gaps_python import RUNNERS as IN_PYTHON
from test_gaps_python import check, unusual

from cases import whole
from gaps import with_gaps
from networks import classifier, every_state, formats
from neural_nets import kinds, rows_of
from raw_hosts import RawCase, run_raw
from raw_values import expected_codes, numbers_of, plain_rows, with_encodings
from targets_host import RUNNERS, Case
from tinybayes.model import Cuts, Grid, Integers, NeuralNet, TreeEnsemble
from tree_ensembles import kinds as tree_kinds

pytestmark = pytest.mark.exhaustive
TARGETS = ("c", "cpp", "arduino", "micropython", "onnx")
SHARE = 0.05
THINNED = ("cpp", "arduino")  # these share the functions of C: every third model, unless all are asked for

TREES = ("class 1 trees", "all 1 trees", "class 7 trees", "all 7 trees", "votes 7 trees", "no sets", "sets", "codebook")
TREES += ("symmetric", "symmetric tree", "many tests", "wide values")


def contract():
    """Naive Bayes, trees and forests in every format with 2 to 26 classes, and unusual ones; nets; decision trees."""
    nets = {}
    for s, (structure, features) in enumerate([("naive", 5), ("tree", 6), ("forest", 5), ("forest", 9)]):
        for f, form in enumerate(formats()):
            classes, key = [2, 3, 1, 5, 10, 26][(s + f) % 6], f"{structure} of {features} {form}"
            nets[key] = classifier(structure, form, seed=90 * s + f, classes=classes, features=features)
    trees = {f"trees {key}": tree_kinds()[key] for key in TREES}
    return nets | unusual() | {f"net {key}": net for key, net in kinds().items()} | trees


CONTRACT = contract()


def coded(number, net):
    complete = (rows_of if isinstance(net, NeuralNet) else every_state)(net, rows=100)
    return Case(f"net{number}", net, with_gaps(complete, SHARE, number).astype(np.int32))


def encoding_of(kind, states, *, integer):
    """Return an encoding of each kind with so many states; the last one is that of categories."""
    if kind == 0:
        return Cuts(np.arange(states - 1) * (3 if integer else 0.7) - 5, integer=integer)
    if kind == 1:
        return Grid(-8, 4, states, integer=True) if integer else Grid(-1, 0.25, states)
    return Integers(-2, states - 3) if kind == 2 else states


def raw(number, net):
    """Give encodings to the features: integers for every third model, floats for the others.

    Half of the trees test numbers only, which they compare as they are.
    """
    integer, among = number % 3 == 2, 2 if isinstance(net, TreeEnsemble) and number % 2 else 4
    encodings = [
        encoding_of((i + number) % among, v.cardinality, integer=integer and (i + number) % among < 2)
        for i, v in enumerate(net.variables)
    ]
    net = with_encodings(net, encodings)
    values = plain_rows(net.variables, np.random.default_rng(number), 100, "int" if integer else "float", SHARE)
    codes = expected_codes(net.variables, numbers_of(values)).astype(np.int32)
    return RawCase(f"net{number}", net, codes, values=values)


def answers(target, directory, cases):
    if target in IN_PYTHON:
        given = [(case.values, case.raw) if isinstance(case, RawCase) else (case.X, "none") for case in cases]
        return [IN_PYTHON[target](case.net, *rows) for case, rows in zip(cases, given, strict=True)]
    return run_raw(target, directory, cases) if isinstance(cases[0], RawCase) else RUNNERS[target](directory, cases)


@pytest.mark.parametrize("make", [*whole(coded), raw])  # other tests have coded rows in every target
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_what_python_says(tmp_path, target, make):
    if target == "cpp" and shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    step = 3 if target in THINNED and not os.environ.get("TINYBAYES_WHOLE") else 1
    cases = [make(number, net) for number, net in enumerate(CONTRACT.values())][::step]
    for key, case, (labels, scores) in zip(
        list(CONTRACT)[::step], cases, answers(target, tmp_path, cases), strict=True
    ):
        assert case.gaps, key
        check(case.net, case.X, labels, scores)


@pytest.mark.parametrize("make", [coded, raw])
def test_the_contract_is_large_and_has_gaps(make):
    nets, trees = (sum(isinstance(net, kind) for net in CONTRACT.values()) for kind in (NeuralNet, TreeEnsemble))
    assert (len(CONTRACT) - nets - trees, nets, trees) == (75, 32, 12)
    cases = [make(number, net) for number, net in enumerate(CONTRACT.values())]
    entries, missing = (sum(f(case.X) for case in cases) for f in (np.size, lambda X: int((X < 0).sum())))
    assert 0.045 < missing / entries < 0.055
    assert all((case.X < 0).any() for case in cases)
    if make is raw:
        kinds_seen = {(type(v.encoding).__name__, case.raw) for case in cases for v in case.net.variables}
        assert len(kinds_seen) == 8
