"""Tree ensembles in C, C++ and Arduino: the integers and labels of Python in every form, under sanitizers."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import whole
from networks import classifier, every_state
from raw_values import expected_codes, float_rows, int_rows, numbers_of, variable_of
from tinybayes.compress.trees import tie_leaves
from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import level_bytes, node_bytes
from tinybayes.deploy._boards.boards import PACKAGES
from tinybayes.deploy._price.counts import count_program
from tinybayes.deploy.export import export
from tinybayes.deploy.measure import measure
from tinybayes.deploy.price import price, program_cost
from tinybayes.deploy.programs import tree_nodes
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.errors import TinybayesError
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.trees.boosting import learn_boosted_trees
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Cuts, Dataset, Fixed, Grid, Integers
from tree_ensembles import kinds as every_kind
from tree_ensembles import tree_ensemble
from tree_host import TreeCase, run_trees

KINDS = every_kind()
MISSING = [tool for tool in PACKAGES if shutil.which(tool) is None]
emulated = pytest.mark.skipif(bool(MISSING), reason=f"not on this machine: {', '.join(MISSING)}")
FORMS = ("nested", "nodes", "levels")


NUMBERS, EVERY_KIND, STATES_IN_SETS = "numbers", "every kind", "states in sets"


def encoded(model, raw, *, kinds, short=False):
    """Give the features encodings: cuts and grids alone, or every kind in turn; of sets of states only, if told so."""
    integer, variables = raw == "int", []
    in_sets = set(model.trees.feature[model.trees.is_set].tolist()) if kinds == STATES_IN_SETS else set()
    for i, v in enumerate(model.variables):
        k = v.cardinality
        step = 3 if integer else 0.5 if short else 0.7
        cuts = Cuts((np.arange(k - 1) - k // 2) * step, integer=integer)
        grid = Grid(-8, 4, k, integer=True) if integer else Grid(-1, 0.25, k)
        every = [cuts, grid, Integers(-2, k - 3), k]
        chosen = every[2 + i % 2] if i in in_sets else every[i % (2 if kinds == NUMBERS else 4)]
        variables.append(variable_of(f"v{i}", chosen))
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


LARGE = {
    "long branches": tree_ensemble(2, leaves=400, states=[60] * 6, sets=0, kind="votes", seed=1),
    "many values": tree_ensemble(2, leaves=300, states=[200] * 6, sets=0, largest=2**20, seed=2),
    "many values and sets": tree_ensemble(5, leaves=200, states=[60, 300], sets=0.5, largest=2**20, seed=3),
    "wide numbers": tree_ensemble(3, leaves=300, states=[60] * 6, sets=0.3, kind="all", seed=4),
    "many features": tree_ensemble(9, leaves=30, states=[9] * 300, sets=0, seed=5),
    "one tree of many values": tree_ensemble(1, leaves=300, states=[200] * 3, sets=0, largest=2**20, seed=6),
}
FEW = ("class 1 trees", "all 7 trees", "sets", "many states", "single leaf", "no sets")
FEW += ("few values", "values in the leaves", "many values", "few sets")


def models(form, *, every):
    """All kinds that can have a form, or some of them."""
    of_form = SYMMETRIC if form == "levels" else KINDS | LARGE
    return {key: model for key, model in of_form.items() if every or (key in FEW and key not in LARGE)}


EVERY = [False, *whole(True)]


@pytest.mark.parametrize("every", EVERY, ids=["some", "all"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_codes(tmp_path, form, every):
    cases = [
        code_case(f"m{i}{gaps:d}", model, gaps=gaps, form=form)
        for i, model in enumerate(models(form, every=every).values())
        for gaps in ((True, False) if every else (i % 3 > 0,))
    ]
    check(tmp_path, cases)


def raw_cases(form, raw, *, every):
    """Raw rows of all encodings, or of numbers that are compared as they are."""
    chosen = models(form, every=every)
    if form != "levels":
        chosen["thresholds"] = tree_ensemble(7, sets=0, states=[9, 9, 9], leaves=30, seed=5)
        chosen["thresholds, votes"] = tree_ensemble(7, sets=0, states=[9, 9, 9, 9], leaves=30, seed=5, kind="votes")
        chosen["one tree"] = tree_ensemble(1, sets=0, states=[9, 9, 9], leaves=30, seed=6, kind="votes", start=False)
    cases = []
    for i, model in enumerate(chosen.values()):
        some = (NUMBERS if i % 4 else EVERY_KIND, STATES_IN_SETS)
        for kinds in (NUMBERS, EVERY_KIND, STATES_IN_SETS) if every else some:
            for gaps in (True, False) if every else (i % 3 > 0,):
                coded = encoded(model, raw, kinds=kinds, short=i % 2 == 0)
                cases.append(raw_case(f"m{len(cases)}", coded, raw, gaps=gaps, form=form))
    return cases


@pytest.mark.parametrize("every", EVERY, ids=["some", "all"])
@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("form", FORMS)
def test_raw_rows(tmp_path, form, raw, every):
    check(tmp_path, raw_cases(form, raw, every=every))


def test_long_trees_have_wide_numbers(tmp_path, monkeypatch):
    """Trees of more than 64 kB take numbers of more bytes; here trees of more than 300 bytes do."""
    monkeypatch.setattr(tree_nodes, "LONGEST", 300)
    cases = [code_case(f"m{i}", model, form="nodes") for i, model in enumerate(LARGE.values())]
    assert any("uint16_t node[" in case.export("c")[f"{case.name}.c"] for case in cases)
    check(tmp_path, cases)


@pytest.mark.parametrize("target", ["cpp", "arduino"])
def test_other_languages_say_the_same(tmp_path, target):
    if target == "cpp" and shutil.which("g++") is None:
        pytest.skip("no g++ on this machine")
    cases = []
    for form in FORMS:
        model = SYMMETRIC["few values"] if form == "levels" else KINDS["class 7 trees"]
        cases.append(code_case(f"m{len(cases)}", model, form=form, extras=True))
        for raw in ("float", "int"):
            given = encoded(tree_ensemble(3, sets=0, states=[9] * 3, symmetric=True, leaves=8), raw, kinds=NUMBERS)
            cases.append(raw_case(f"m{len(cases)}", given, raw, form=form, extras=True))
    check(tmp_path, cases, target)


@st.composite
def any_case(draw):
    """Draw trees of any kind, encodings, rows and a form."""
    form = draw(st.sampled_from((*FORMS, None)))
    symmetric = form == "levels" or draw(st.booleans())
    model = tree_ensemble(
        draw(st.integers(1, 6)),
        leaves=draw(st.sampled_from([1, 2, 4, 8])) if symmetric else draw(st.integers(1, 20)),
        kind="class" if form == "levels" else draw(st.sampled_from(["class", "all", "votes"])),
        sets=draw(st.sampled_from([0, 0, 0.5, 1])),
        states=draw(st.lists(st.integers(1, 20) | st.sampled_from([33, 255, 256]), min_size=1, max_size=5)),
        classes=draw(st.integers(1, 4)),
        values=draw(st.sampled_from([None, 1, 3, 20])),
        largest=draw(st.sampled_from([1, 127, 128, 40_000, 2**24, 2**28])),
        symmetric=symmetric,
        start=draw(st.booleans()),
        seed=draw(st.integers(0, 999)),
    )
    raw, options = draw(st.sampled_from(["none", "float", "int"])), {"gaps": draw(st.booleans()), "form": form}
    options |= {"seed": draw(st.integers(0, 99)), "extras": draw(st.booleans())}
    if raw == "none":
        return code_case("m", model, **options)
    model = encoded(
        model, raw, kinds=draw(st.sampled_from([NUMBERS, EVERY_KIND, STATES_IN_SETS])), short=draw(st.booleans())
    )
    return raw_case("m", model, raw, rows=60, **options)


@settings(max_examples=4, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow])
@given(st.lists(any_case(), min_size=10, max_size=10))
def test_any_trees(cases):
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), [replace(case, name=f"m{i}") for i, case in enumerate(cases)])


def test_raw_values_need_no_encoder_where_numbers_are_cut():
    model = encoded(KINDS["no sets"], "float", kinds=NUMBERS)
    header = export(model, "c", raw="float")["model.h"]
    assert "model_encode" not in header
    assert "MODEL_MISSING" not in header
    assert "model_scores(const float value[6], int32_t scores[3])" in header


@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("form", ["nested", "nodes"])
def test_raw_values_need_no_encoder_where_states_are_in_sets(form, raw):
    model = encoded(KINDS["sets"], raw, kinds=STATES_IN_SETS)
    assert model.trees.is_set.any()
    texts = export(model, "c", raw=raw, form=form)
    assert "encode" not in texts["model.h"]
    assert ("whole(" in texts["model.c"]) == (raw == "float")
    assert "model_encode" in export(encoded(model, raw, kinds=NUMBERS), "c", raw=raw, form=form)["model.h"]


def test_one_tree_of_votes_returns_the_class_without_sums():
    votes = tree_ensemble(1, kind="votes", sets=0, start=False, leaves=8, seed=2)
    text = export(votes, "c", extras=False)["model.c"]
    assert "sum" not in text
    assert "row_score" not in text


def test_a_form_must_fit_the_model():
    with pytest.raises(TinybayesError, match="form: expected symmetric trees with one value in a leaf"):
        export(KINDS["no sets"], "c", form="levels")
    with pytest.raises(TinybayesError, match="form: expected one of nested, nodes, levels, got 'loop'"):
        export(KINDS["no sets"], "c", form="loop")
    with pytest.raises(TinybayesError, match="form: expected trees or a neural net with this option"):
        export(classifier("naive", Fixed(3, 1)), "c", form="nodes")


def tables_of(model, form, **options):
    program = classifier_program(make_plan(model, form=form, **options), Dialect("net", "net_"), "")
    return sum(array.values.nbytes for array in program.arrays)


def learned():
    """Trees that were learned, in which every test matters."""
    rng = np.random.default_rng(0)
    variables = tuple(variable_of(f"v{i}", Cuts(np.arange(9))) for i in range(6))
    X = rng.integers(0, 10, (600, 6)).astype(np.int32)
    y = (X[:, 0] * X[:, 1] + 9 * X[:, 2] > 60).astype(np.int32) + (X[:, 3] > 6)
    data = Dataset(variables, variable_of("y", 3), X, y)
    boosted = learn_boosted_trees(data, BoostingOptions(rounds=12, leaves=8, symmetric=True))
    return {
        "votes": learn_forest(data, ForestOptions(trees=5, leaves=60, votes=True)),
        "boosted": learn_boosted_trees(data, BoostingOptions(rounds=5, leaves=6)),
        "symmetric": boosted,
        "tied": tie_leaves(boosted, 16, data),
    }


LEARNED = learned()


@pytest.mark.parametrize("key", LEARNED)
def test_the_price_of_a_model_counts_the_tables_of_its_program(key):
    model = LEARNED[key]
    nodes = tables_of(model, "nodes")
    if level_bytes(model) is None:
        assert 0.99 * node_bytes(model) - 2 <= nodes <= node_bytes(model)
    else:
        assert nodes <= node_bytes(model)  # tests that those above answer are left out
        assert tables_of(model, "levels") == level_bytes(model)
        assert tables_of(model, None) == model_cost(model).bytes


@emulated
@pytest.mark.parametrize("key", ["votes", "tied"])
def test_prices_are_close_to_measurements(key):
    model = LEARNED[key]
    codes = np.random.default_rng(1).integers(0, 10, (20, 6))
    texts = export(model, "c", name="net", raw="float")
    rows = make_plan(model, "float").features.values(codes)
    for core, real in zip(("m0+", "m4"), measure(texts, "net", rows, raw=True), strict=True):
        np.testing.assert_array_equal(real.scores, tree_scores(model, codes))
        cost = program_cost(model, core, raw="float", rows=codes)
        assert cost.flash == pytest.approx(real.flash, rel=0.1)
        assert cost.instructions == pytest.approx(real.instructions, rel=0.2)


def test_forms_trade_flash_for_instructions():
    model = LEARNED["tied"]
    prices = {form: price(count_program(make_plan(model, "int", form=form)), "cortex-m0+") for form in FORMS}
    assert prices["levels"].flash < prices["nodes"].flash < prices["nested"].flash
    assert prices["nested"].instructions < prices["nodes"].instructions
    assert program_cost(model, raw="int").flash == prices["levels"].flash
