"""The compact form of small dense networks in C: when it is chosen, what it holds, and the integers of Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinybayes.deploy.programs.net_compact as compact_module
from c_host import SANITIZERS, labels_and_codes
from neural_nets import neural_net, rows_of
from raw_values import with_encodings
from targets_host import Case, run_arduino, run_c, run_cpp
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.price import model_cost
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.net_compact import BYTES, VALUES, WEIGHTS, pack
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.errors import TinybayesError
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import Grid
from tinybayes.model.neural_net import Layer

DIALECT = Dialect("net", "net_")


def is_compact(net, **options):
    return "layer0" not in to_c(net, extras=False, **options)["model.c"]


# Weights


@pytest.mark.parametrize("bits", range(1, 9))
@given(count=st.integers(1, 70), seed=st.integers(0, 99))
def test_codes_are_cut_out_of_words_as_the_code_does_it(bits, count, seed):
    codes = np.random.default_rng(seed).integers(0, 2**bits, count)
    words = iter(pack(codes, bits).tolist())
    found, w = [], 1
    for _ in codes:
        if bits >= 7:
            w = next(words)
        elif w == 1:
            w = next(words) + (256 if 8 % bits == 0 else 0)
        found.append(w & 2**bits - 1)
        w = w if bits >= 7 else w >> bits
    assert found == codes.tolist()
    assert next(words, None) is None


@pytest.mark.parametrize("bits", range(1, 9))
def test_weights_have_no_padding_but_the_marks_of_words(bits):
    size = {1: 105, 2: 210, 4: 420, 7: 840, 8: 840}.get(bits, 4 * -(-840 // (31 // bits)))
    assert pack(np.zeros(840, int), bits).nbytes == size


# When it is chosen


@pytest.mark.parametrize(
    ("net", "chosen"),
    [
        (neural_net((24,), bits=8, states=[9] * 29), True),  # 768 weights
        (neural_net((24,), bits=8, states=[9] * 30), False),
        (neural_net(bits=1, states=[2] * 100, classes=20), True),
        (neural_net(bits=1, states=[2] * 100, classes=21), False),  # 2,100 weights
        (neural_net((29,), bits=1, states=[3] * 70), False),  # 2,117 weights
        (neural_net((64,), bits=4, states=[3] * 8), True),
        (neural_net((8, 120), bits=1, states=[3] * 1), False),  # 129 values
        (neural_net((8, 119), bits=1, states=[3] * 1), True),
        (neural_net((6,), bits=2, inputs="some"), False),  # indicators of some states
        (neural_net((6,), bits=2, inputs="one-hot", scaled=True), False),  # with several multipliers
        (neural_net((6,), bits=2, inputs="one-hot"), True),
        (neural_net(((3,),), bits=2, image=(4, 4)), False),
    ],
)
def test_small_dense_networks_of_whole_features_are_compact(net, chosen):
    assert is_compact(net) == chosen
    assert not is_compact(net, form="lanes")


def test_the_limits_are_those_of_the_documents():
    assert (BYTES, WEIGHTS, VALUES) == (768, 2048, 128)


def test_layers_that_differ_in_kind_have_lanes():
    net = neural_net((6, 5), bits=3)
    first, second, last = net.layers
    assert not is_compact(replace(net, layers=(replace(first, codes=first.codes % 4, bits=2), second, last)))
    signs = Layer(first.codes, first.bits, first.bias, "sign")
    assert not is_compact(replace(net, layers=(signs, second, last)))
    assert not is_compact(replace(net, layers=(first, replace(second, after=0, before=20), last)))


def test_a_form_must_fit_the_network():
    with pytest.raises(TinybayesError, match="form: expected dense layers"):
        to_c(neural_net(((3,),), bits=2, image=(4, 4)), form="compact")
    with pytest.raises(TinybayesError, match="form: expected one of compact, lanes, got 'nested'"):
        to_c(neural_net((3,)), form="nested")
    assert is_compact(neural_net((70, 50), bits=3, states=[17] * 40), form="compact")  # beyond all limits


@pytest.mark.parametrize("bits", [1, 3, 4, 6, 8])
@pytest.mark.parametrize("hidden", [(), (9,), (9, 9)])
def test_it_is_smaller_by_its_price(monkeypatch, bits, hidden):
    for inputs in ("ordinal", "one-hot", "mixed"):
        net = neural_net(hidden, bits=bits, inputs=inputs, classes=5, states=[5] * 9, seed=bits)
        small = model_cost(net, "cortex-m0+")
        monkeypatch.setattr(compact_module, "BYTES", 0)
        large = model_cost(net, "cortex-m0+")
        monkeypatch.undo()
        assert small.flash < large.flash - 40


# What it answers


def nets():
    """All bits and activations, layers of equal and of other sizes, numbers and indicators."""
    kinds = [
        (bits, activation, hidden)
        for bits in range(1, 9)
        for activation, hidden in (("relu", (5,)), ("sign", (4, 4)), ("relu", (3, 6, 2)), ("sign", ()))
    ]
    found = {}
    for i, (bits, activation, hidden) in enumerate(kinds):
        inputs, scaled = (("ordinal", False), ("ordinal", True), ("one-hot", False), ("mixed", False))[(i + bits) % 4]
        net = neural_net(hidden, bits=bits, activation=activation, inputs=inputs, scaled=scaled, seed=i, classes=4)
        found[f"{bits} bits, {activation}, {hidden}, {inputs}, {scaled}"] = net
    return found


NETS = nets()


def cases(start, *, gaps):
    made = []
    for i, net in enumerate(NETS.values()):
        X = rows_of(net, rows=20)
        codes = None
        if gaps:  # codes from the number of states on are missing ones
            rng = np.random.default_rng(i)
            missing = rng.random(X.shape) < 0.3
            cards = np.array([v.cardinality for v in net.variables])
            codes = np.where(missing, rng.integers(cards, 256, X.shape), X)
            X = np.where(missing, -1, X)
        made.append(Case(f"{start}{i}", net, X, codes))
    return made


@pytest.mark.parametrize("run", [lambda *given: run_c(*given, SANITIZERS), run_cpp, run_arduino])
def test_scores_and_labels_are_those_of_python(tmp_path, run):
    assert all(is_compact(net) for net in NETS.values())
    tried = cases("full", gaps=False) + cases("gaps", gaps=True)
    tried = tried if run not in (run_cpp, run_arduino) else tried[::5]
    for case, (labels, scores) in zip(tried, run(tmp_path, tried), strict=True):
        np.testing.assert_array_equal(scores, case.exact, err_msg=case.name)
        np.testing.assert_array_equal(labels, case.exact.argmax(axis=1))


def test_without_gaps_scores_are_those_of_python():
    for net in NETS.values():
        program = classifier_program(make_plan(net, form="compact"), DIALECT, "")
        machine = Machine(program, DIALECT)
        X = rows_of(net)[:8]
        for row, exact in zip(X.tolist(), net_scores(net, X).tolist(), strict=True):
            scores = [0] * len(exact)
            machine.call("net_scores", [(row, 0), (scores, 0)])
            assert scores == exact


def on_grids(*, alike, wide=False):
    steps = [0.25] * 4 if alike else [0.25, 0.5, 2.0, 0.125]
    counts = [9] * 4 if alike else [9, 4, 200, 7]
    grids = [Grid(-step * i, step, count) for i, (step, count) in enumerate(zip(steps, counts, strict=True))]
    net = neural_net((6,), bits=3, states=counts, scaled=True, seed=5, classes=5)
    if wide:  # centres of 16 bits, beside which bytes would leave a gap
        net = replace(net, inputs=replace(net.inputs, center=np.array([700, -5, 3, 9])))
    return with_encodings(net, grids)


@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize(("alike", "wide"), [(True, False), (False, False), (False, True)])
def test_raw_values_fall_into_the_same_states(tmp_path, alike, wide, gaps):
    net = on_grids(alike=alike, wide=wide)
    rng = np.random.default_rng(0)
    values = (rng.normal(0, 3, (200, 4)) * [1, 1, 60, 1]).astype(np.float32)
    values[:8] = np.array([np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-45, 3e38, -3e38])[:, None]
    codes = np.column_stack(
        [
            np.searchsorted(v.encoding.cuts, values[:, i].astype(float), side="right")
            for i, v in enumerate(net.variables)
        ]
    )
    texts = to_c(net, name="net", raw="float", gaps=gaps)
    labels, found = labels_and_codes(tmp_path, texts, "net", net, values, "float")
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(labels, net_scores(net, codes).argmax(axis=1))


def test_the_encoder_and_the_network_share_the_ends_of_grids():
    text = to_c(on_grids(alike=False), name="net", raw="float", extras=False)["net.c"]
    assert text.count("grid[4] = {") == 1
    assert "z <= grid[i].top" in text
    assert "s < grid[k].top" in text
    assert "z < 9U" in to_c(on_grids(alike=True), name="net", raw="float", extras=False)["net.c"]
