"""Neural networks in C: the integers of Python under sanitizers, and every way in which words are seen."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c_host import SANITIZERS, labels_and_codes
from neural_nets import kinds, neural_net, rows_of
from targets_host import Case, run_c
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.net import Kernel
from tinybayes.deploy.programs.packing import net_banks
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.errors import TinybayesError
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import Cuts, NeuralNet, Variable
from tinybayes.model.neural_net import Inputs, Layer


def widest():
    """A network whose sums reach the ends of 32 bits: weights of one sign, large multipliers of several sizes."""
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(128))
    codes, multiplier = np.repeat([[0, 255]], 128, axis=0), 65535 - np.arange(128) % 3
    inputs = Inputs(np.arange(128), np.full(128, -1), multiplier, np.zeros(128, int))
    bias = 2**31 - 1 - 255 * int(multiplier.sum())
    return NeuralNet(variables, Variable("y", ("a", "b")), inputs, (Layer(codes, 8, np.array([-bias, bias])),), 1.0)


def images():
    """Images whose pixels are scaled and moved alike or each on its own, and some that need more than a byte."""
    net = neural_net(((5,), 4), bits=2, image=(4, 5), states=[3] * 20, activation="sign", seed=13)
    place, ones, ramp = np.arange(20), np.ones(20, int), np.arange(20) % 4
    return {
        f"image {name}": replace(net, inputs=Inputs(place, -ones, multiplier, center))
        for name, multiplier, center in [
            ("doubled", 2 * ones, ones),
            ("negative", -ones, 0 * ones),
            ("moved", ones, ramp),
            ("scaled", 1 + ramp, ones),
            ("wide", 100 * ones + ramp, 7 * ones),
        ]
    }


SPECIAL = {"widest": widest()} | images()
NETS = kinds() | SPECIAL
DENSE = [key for key, net in NETS.items() if not net.layers[0].convolution]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the code says of all networks, built together under sanitizers; of dense ones with lanes in any case."""
    cases = {key: Case(f"net{i}", net, rows_of(net)) for i, (key, net) in enumerate(NETS.items())}
    cases |= {f"lanes {key}": replace(cases[key], name=f"lanes{i}", form="lanes") for i, key in enumerate(DENSE)}
    found = run_c(tmp_path_factory.mktemp("nets"), list(cases.values()), SANITIZERS)
    return {key: (case, *answer) for (key, case), answer in zip(cases.items(), found, strict=True)}


@pytest.mark.parametrize("key", [*NETS, *(f"lanes {key}" for key in DENSE)])
def test_scores_and_labels_are_those_of_python(answers, key):
    case, labels, scores = answers[key]
    exact = net_scores(case.net, case.X)
    np.testing.assert_array_equal(scores, exact)
    np.testing.assert_array_equal(labels, exact.argmax(axis=1))


def test_sums_reach_the_end_of_32_bits(answers):
    case, _, scores = answers["widest"]
    assert max(case.net.reach) == 2**31 - 1
    assert scores.max() == 2**31 - 1
    assert scores.min() == -(2**31) + 1


def test_images_whose_sums_might_leave_32_bits_are_refused():
    net = neural_net(((2,),), bits=8, image=(4, 4), states=[256] * 16, activation="sign")
    size = 2**31 // (200 * int(np.abs(net.layers[0].weights).sum(axis=(0, 1, 2)).max()))
    many = size + np.arange(16) % 2  # no common factor
    wide = replace(net, inputs=Inputs(np.arange(16), np.full(16, -1), many, 127 * many))
    assert max(wide.reach) < 2**31  # around zero they stay, but not above it
    with pytest.raises(TinybayesError, match="convolution: expected sums below 2\\*\\*31"):
        to_c(wide)


@pytest.mark.parametrize("kind", ["float", "int32_t"])
def test_raw_values_fall_into_the_same_states(tmp_path, kind):
    net = neural_net((4,), bits=3, states=[3, 3, 3])
    edges = ([-1.5, 2.0], [0.0, 10.0], [7.5, 8.0])
    net = replace(net, variables=tuple(Variable.from_encoding(f"v{i}", Cuts(e)) for i, e in enumerate(edges)))
    values = np.array([[-2, 0, 7], [-1, 10, 8], [2, -1, 9], [1, 11, 100]])
    texts = to_c(net, name="net", raw="float" if kind == "float" else "int")
    labels, codes = labels_and_codes(tmp_path, texts, "net", net, values, kind)
    wanted = np.column_stack([np.searchsorted(e, values[:, i], side="right") for i, e in enumerate(edges)])
    np.testing.assert_array_equal(codes, wanted)
    np.testing.assert_array_equal(labels, net_scores(net, wanted).argmax(axis=1))


def test_the_code_has_no_float_no_memory_of_its_own_and_needs_only_stdint():
    for net, form in [(net, form) for net in kinds().values() for form in (None, "lanes")]:
        text = "".join(to_c(net, form=form).values())
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert not re.search(r"\b(float|double|malloc|memset|int64_t|uint64_t)\b", code)
        assert set(re.findall(r"#include .*", code)) == {'#include "model.h"', "#include <stdint.h>"}
        assert not re.search(r"^static (?!const|void|MODEL_NOINLINE void|\w+ \w+\()", code, flags=re.MULTILINE)


@given(
    units=st.integers(1, 80),
    bits=st.integers(1, 8),
    peak=st.sampled_from([1, 2, 16, 255, 300, 70_000]),
    count=st.integers(1, 200),
    times=st.booleans(),
)
def test_banks_hold_every_unit_once_and_lanes_never_overflow(units, bits, peak, count, times):
    codes = np.random.default_rng(units).integers(0, 2**bits, (3, units))
    banks = net_banks(units, bits, np.full(count, (2**bits - 1) * peak), times=times)
    assert [bank.first for bank in banks] == [0, *np.cumsum([bank.count for bank in banks])[:-1]]
    assert sum(bank.count for bank in banks) == units
    for bank in banks:
        shape, words = bank.shape, bank.words(codes).astype(np.uint64)
        for i in range(bank.count):
            plane, at = divmod(i, shape.room)
            lane, position = divmod(at, shape.each)
            shift = np.uint64(lane * shape.lane + position * bits)
            np.testing.assert_array_equal(words[:, plane] >> shift & np.uint64(2**bits - 1), codes[:, bank.first + i])
        if shape.lanes > 1:
            assert (shape.chunk or count) * (2**bits - 1) * peak < 2**shape.lane
        assert shape.each * bits <= shape.lane


def test_functions_are_shared_by_layers():
    text = to_c(neural_net((8, 8, 8), bits=4, states=[17] * 8, classes=8), form="lanes")["model.c"]
    assert len(re.findall(r"^static MODEL_NOINLINE void add\d", text, flags=re.MULTILINE)) <= 2


def test_stages_have_no_negative_number():
    for net in kinds().values():
        for stage in make_plan(net).stages:
            assert stage.peaks.min() >= 0
            assert 0 <= stage.pad <= stage.peaks.max()
            assert np.abs(stage.bias).max() < 2**31


def test_kernels_say_what_they_do():
    (bank,) = net_banks(8, 4, np.full(10, 15 * 16), times=True)
    dialect = Dialect("net", "net_")
    text = Kernel(bank.shape, 4, True).add(dialect).text(dialect)
    assert "a[0] += w * x;" in text
    assert text.count("+=") == bank.shape.each + 1
