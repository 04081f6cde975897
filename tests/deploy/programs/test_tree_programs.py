"""Tree ensembles in C, C++ and Arduino: the integers and labels of Python in every form, under sanitizers."""

from dataclasses import replace

import numpy as np
import pytest

from networks import every_state
from raw_values import expected_codes, float_rows, int_rows, numbers_of, variable_of
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Cuts, Grid, Integers
from tree_ensembles import kinds, tree_ensemble
from tree_host import TreeCase, run_trees

KINDS = kinds()
FORMS = ("nested", "nodes", "levels")


def encoded(model, raw, *, numbers, short=False):
    """Give the features encodings: cuts and grids alone, or every kind in turn."""
    integer, variables = raw == "int", []
    for i, v in enumerate(model.variables):
        k = v.cardinality
        step = 3 if integer else 0.5 if short else 0.7
        cuts = Cuts((np.arange(k - 1) - k // 2) * step, integer=integer)
        grid = Grid(-8, 4, k, integer=True) if integer else Grid(-1, 0.25, k)
        variables.append(variable_of(f"v{i}", [cuts, grid, Integers(-2, k - 3), k][i % (2 if numbers else 4)]))
    return replace(model, variables=tuple(variables))


def raw_case(name, model, raw, *, gaps=True, seed=0, rows=200, **options):
    values = (int_rows if raw == "int" else float_rows)(model.variables, np.random.default_rng(seed), rows)
    codes = expected_codes(model.variables, numbers_of(values)).astype(np.int32)
    if not gaps:
        complete = (codes >= 0).all(axis=1)
        values, codes = values[complete], codes[complete]
    return TreeCase(name, model, values, codes, raw, gaps, **options)


def code_case(name, model, *, gaps=True, seed=0, rows=40, **options):
    """Rows of codes; missing ones are any codes that are no states."""
    rng = np.random.default_rng(seed)
    case = TreeCase(name, model, np.empty(0), np.empty(0), gaps=gaps)
    kind = np.dtype(case.plan.features.state.removesuffix("_t"))
    codes = every_state(model, rows=rows)[:300].astype(np.int64)
    states = np.array([v.cardinality for v in model.variables])
    if gaps:
        far = rng.integers(states, np.iinfo(kind).max, codes.shape, endpoint=True)
        far = np.where(rng.random(codes.shape) < 0.3, states, far)
        far = np.where(rng.random(codes.shape) < 0.3, np.iinfo(kind).max, far)
        given = np.where(rng.random(codes.shape) < rng.choice([0, 0.1, 0.5], (len(codes), 1)), far, codes)
    else:
        given = codes
    codes = np.where(given < states, given, -1).astype(np.int32)
    return TreeCase(name, model, given.astype(kind), codes, "none", gaps, **options)


def check(directory, cases, target="c"):
    for case, (labels, scores) in zip(cases, run_trees(directory, cases, target), strict=True):
        exact = tree_scores(case.model, case.codes)
        said = f"{case.name} {case.raw} gaps={case.gaps} {case.form}"
        np.testing.assert_array_equal(scores, exact, said)
        np.testing.assert_array_equal(labels, exact.argmax(axis=1), said)


def symmetric(values, *, seed, largest=100, **options):
    return tree_ensemble(9, leaves=8, symmetric=True, values=values, largest=largest, seed=seed, **options)


SYMMETRIC = {
    "few values": symmetric(7, seed=1),
    "values in the leaves": symmetric(60, seed=2),
    "many values": symmetric(60, seed=3, largest=2**20),
    "two bytes": symmetric(400, seed=4, states=[50, 3]),
    "one level": tree_ensemble(9, leaves=2, symmetric=True, values=4, seed=5),
    "deep": tree_ensemble(3, leaves=64, symmetric=True, values=40, classes=2, seed=6),
    "one class": tree_ensemble(20, leaves=4, symmetric=True, values=4, classes=1, seed=7),
    "few tests": tree_ensemble(30, leaves=8, symmetric=True, values=16, states=[3, 4], sets=0, seed=8),
    "few sets": tree_ensemble(30, leaves=8, symmetric=True, values=16, states=[3, 9], sets=0.7, seed=9),
}


def models(form):
    """All kinds that can have a form."""
    return SYMMETRIC if form == "levels" else KINDS


@pytest.mark.parametrize("gaps", [True, False], ids=["gaps", "complete"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_codes(tmp_path, form, gaps):
    check(tmp_path, [code_case(f"m{i}", model, gaps=gaps, form=form) for i, model in enumerate(models(form).values())])


@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("form", FORMS)
def test_raw_rows(tmp_path, form, raw):
    chosen = [model for key, model in models(form).items() if not key.startswith("many ")]
    if form != "levels":
        chosen.append(tree_ensemble(7, sets=0, states=[9, 9, 9], leaves=30, seed=5))
        chosen.append(tree_ensemble(7, sets=0, states=[9, 9, 9, 9], leaves=30, seed=5, kind="votes"))
    cases = []
    for i, model in enumerate(chosen):
        for numbers in (True, False):
            for gaps in (True, False):
                coded = encoded(model, raw, numbers=numbers, short=i % 2 == 0)
                cases.append(raw_case(f"m{len(cases)}", coded, raw, gaps=gaps, form=form))
    check(tmp_path, cases)
