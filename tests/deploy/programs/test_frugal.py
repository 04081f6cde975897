"""What exporters leave out: tables that say nothing, buffers and bits that nobody reads; and how they count costs."""

import re

import numpy as np
import pytest

import tinybayes.deploy.programs.net as net_module
from c_host import SANITIZERS
from networks import classifier
from neural_nets import neural_net, rows_of
from targets_host import Case, run_c
from tinybayes.deploy.export import export
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.net import Term, terms
from tinybayes.deploy.programs.packing import Bank, Shape, _work
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.model import Fixed, Float

NARROW, WIDE, WHOLE = Shape(32, 8, 4, 5), Shape(32, 10, 5, 21), Shape(32, 32, 16, 0)


@pytest.mark.parametrize(
    ("main", "rest"), [(NARROW, WIDE), (WIDE, NARROW), (WHOLE, NARROW), (NARROW, WHOLE), (WIDE, WHOLE)]
)
def test_lanes_are_emptied_before_those_of_either_bank_overflow(tmp_path, monkeypatch, main, rest):
    """Products are at most 3 * 16, so that 5 of them stay below 2**8, and 21 below 2**10."""
    units = main.room + 7
    net = neural_net(bits=2, classes=units, states=[17] * 31)
    forced = [Bank(0, main.room, 2, main), Bank(main.room, 7, 2, rest)]
    monkeypatch.setattr(net_module, "net_banks", lambda *_, **__: forced)
    case = Case("net", net, rows_of(net), form="lanes")
    ((labels, scores),) = run_c(tmp_path, [case], SANITIZERS)
    np.testing.assert_array_equal(scores, case.exact)
    np.testing.assert_array_equal(labels, case.exact.argmax(axis=1))


def test_sums_are_cleared_only_where_lanes_are_emptied_on_top_of_them(monkeypatch):
    net = neural_net(bits=2, classes=16, states=[17] * 31)
    for shape, cleared in ((NARROW, True), (WHOLE, False)):
        monkeypatch.setattr(net_module, "net_banks", lambda *_, shape=shape, **__: [Bank(0, 16, 2, shape)])
        assert ("clear(sum," in to_c(net, form="lanes")["model.c"]) == cleared


def test_buffers_have_room_for_what_enters_a_layer_and_no_more():
    source = to_c(neural_net(((8,), (12,), 20), bits=2, image=(8, 10), states=[17] * 80, seed=9))["model.c"]
    assert "uint8_t z[120];" in source  # 8 x 10 pixels with their border
    sizes = dict(re.findall(r"uint8_t (even|odd)\[(\d+)\];", source))
    assert sizes == {"even": str(6 * 7 * 8), "odd": str(2 * 2 * 12)}


@pytest.mark.parametrize(("multiplier", "table"), [([5, 5, 5, 5], False), ([5, 5, 6, 5], True)])
def test_equal_multipliers_are_no_table(multiplier, table):
    net = neural_net((4,), bits=3)
    object.__setattr__(net.layers[0], "multiplier", np.array(multiplier))
    assert ("multiplier0[" in to_c(net, form="lanes")["model.c"]) == table
    assert ("multiplier[" in to_c(net, form="compact")["model.c"]) == table


def test_states_of_a_feature_are_one_term():
    net = neural_net(bits=2, inputs="mixed", states=[4, 3, 2])
    found = terms(net, make_plan(net, gaps=True).stages[0])
    assert found == [Term(0, 0), Term(1, 1, 0, 3), Term(2, 4)]
    assert [term.rows for term in found] == [slice(0, 1), slice(1, 4), slice(4, 5)]


def test_values_of_zero_and_one_are_added_without_multiplication():
    for inputs, states, flags in (("one-hot", [4] * 7, True), ("ordinal", [2] * 7, True), ("ordinal", [3] * 7, False)):
        net = neural_net(bits=2, inputs=inputs, states=states)
        assert make_plan(net).stages[0].flags == flags
        assert ("* x;" in to_c(net, form="lanes")["model.c"]) == (not flags)


@pytest.mark.parametrize("bits", [1, 3, 4, 7, 8, 9, 16, 17])
def test_tables_of_micropython_have_no_byte_too_many(bits):
    net = classifier("naive", Fixed(3, bits - 3), states=[5] * 30, classes=4)
    source = export(net, "micropython", name="net")["net.py"]
    module: dict[str, object] = {}
    exec(compile(source, "net.py", "exec"), module)
    size = max(len(value) for value in module.values() if isinstance(value, bytes))
    codes = 30 * 5 * 4
    packed = -(-codes * bits // 8) + (8 % bits > 0)  # the last code is read with the byte after it
    assert size == (packed if bits < 8 else codes * -(-bits // 8))


def test_estimates_of_instructions_are_those_counted_by_hand():
    # A word of 8 codes in one lane: 6 to fetch and add it, 2 for each further code; 8 stores, each 6, for 9 terms.
    assert Shape(32, 32, 8, 9).work(9) == pytest.approx(6 + 2 * 7 + 6 * 8 / 9)
    # Two lanes need a mask for each further code, and are emptied three times.
    assert Shape(32, 16, 4, 3).work(9) == pytest.approx(6 + 3 * 3 + 6 * 8 * 3 / 9)
    # 10 rows, half of them zero: 22 + 5 and two words of 4 + 4 * (4 + times) - 1; then 8 codes of both words.
    assert _work(Shape(32, 32, 8, 0), 16, 10, False) == 5 * (27 + 2 * (4 + 8 * 4 - 1)) + 2 * (12 + 9 * 8)
    assert _work(Shape(16, 16, 4, 0), 8, 10, True) == 5 * (27 + 2 * (4 + 4 * 5 - 1 + 1)) + 2 * (12 + 9 * 4)
    # Lanes: a mask for each code but the first; of 10 terms 5 are zero, so two chunks of 3.
    assert _work(Shape(32, 16, 4, 3), 8, 10, True) == 5 * (27 + 4 + 4 * 6 - 2) + 2 * (12 + 9 * 8)


@pytest.mark.parametrize(("features", "checked"), [(60, False), (61, True)])
def test_the_end_of_the_last_chunk_is_checked_only_where_it_is_short(features, checked):
    net = classifier("naive", Fixed(2, 2), states=[2] * features, classes=11, seed=1)
    source = to_c(net)["model.c"]
    sizes = {int(size) for size in re.findall(r"end = r \+ (\d+);", source)}
    assert sizes
    assert (f"if (end > row + {features})" in source) == any(features % size for size in sizes)
    assert any(features % size for size in sizes) == checked


def test_scores_of_floats_say_how_exact_they_are():
    few, many = (classifier("naive", Float(32), states=[3] * k, seed=2) for k in (2, 40))
    text = {k: to_c(net)["model.h"] for k, net in (("few", few), ("many", many))}
    bounds = {k: float(re.search(r"within (\S+) nats", said)[1]) for k, said in text.items()}
    assert 0 < bounds["few"] < bounds["many"] < 1e-3
