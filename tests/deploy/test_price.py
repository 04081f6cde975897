"""Prices of programs: exact tables, a hand-worked program, and figures close to measured ones."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import zoo
from networks import classifier, codebook, every_state
from neural_nets import kinds, neural_net, rows_of
from tinybayes import model_cost
from tinybayes.cost import model_cost as parameter_cost
from tinybayes.deploy._boards.boards import PACKAGES
from tinybayes.deploy._price.coefficients import COEFFICIENTS
from tinybayes.deploy._price.counts import DIALECT, Counts, count_program, table_bytes
from tinybayes.deploy.measure import measure
from tinybayes.deploy.price import CORES, ProgramCost, price, program_cost
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Array
from tinybayes.errors import TinybayesError
from tinybayes.model import Cuts, Fixed, Float, Grid, Integers, Variable

missing = [f"{tool} (Debian: {packages})" for tool, packages in PACKAGES.items() if shutil.which(tool) is None]
emulated = pytest.mark.skipif(bool(missing), reason=f"not on this machine: {', '.join(missing)}")


def mixed_net(seed=3, form=Fixed(3, 1)):  # noqa: B008 - a format is constant
    rng = np.random.default_rng(seed)
    encodings = [Cuts([-3.5, 5, 9]), Grid(-8, 2, 7), Integers(4, 6), Cuts(np.arange(20) / 3), Cuts([0.1, 7])]
    variables = [Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(encodings)]
    target = Variable("y", tuple("pqrstuvwx"))
    return zoo.random_net(rng, 5, 0, True, [form], False, [*variables, target])


MEASURED = {
    "network of mixed encodings": mixed_net(),
    "tree": classifier("tree", Fixed(3, 3), features=12, classes=7),
    "net": neural_net((12, 7), bits=3, states=[6] * 20, classes=5),
}


@emulated
@pytest.mark.parametrize("key", MEASURED)
def test_prices_are_close_to_measurements(key):
    net = MEASURED[key]
    codes = (rows_of if key == "net" else every_state)(net, rows=20)[:20]
    rows = make_features(net.variables, "float").values(codes)
    texts = to_c(net, name="net", raw="float", gaps=False)
    for core, real in zip(("m0+", "m4"), measure(texts, "net", rows, raw=True), strict=True):
        cost = program_cost(net, core, raw="float", gaps=False, rows=codes)
        assert cost.flash == pytest.approx(real.flash, rel=0.25)
        assert cost.instructions == pytest.approx(real.instructions, rel=0.25)
        assert cost.stack == pytest.approx(real.stack, rel=0.25)
        assert cost.ram == real.ram == 0


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.parametrize(
    "net",
    [mixed_net(), mixed_net(form=codebook(13)), mixed_net(form=Float(32)), kinds()["conv scaled"], kinds()["deep"]],
    ids=["fixed", "codebook", "float", "convolution", "deep"],
)
def test_tables_take_the_bytes_of_the_compiler(net, tmp_path):
    (tmp_path / "net.c").write_text(to_c(net, name="net", gaps=False, extras=False)["net.c"])
    (tmp_path / "net.h").write_text(to_c(net, name="net", gaps=False, extras=False)["net.h"])
    command = ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0plus", "-Os", "-fdata-sections", "-c", "net.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    listed = subprocess.run(["arm-none-eabi-size", "-A", "net.o"], cwd=tmp_path, capture_output=True, text=True)
    sections = {name: int(size) for name, size in re.findall(r"^\.rodata\.(\w+)\s+(\d+)", listed.stdout, re.MULTILINE)}
    plan = make_plan(net, None)
    ours = {array.name: table_bytes([array]) for array in classifier_program(plan, DIALECT, "").arrays}
    assert sections.items() <= ours.items()
    assert sum(sections.values()) >= 0.9 * count_program(plan).tables


def test_tables_are_aligned_and_structures_padded():
    byte, word = Array("a", np.zeros(3, np.uint8)), Array("b", np.zeros((2, 2), np.uint32))
    pair = Array("c", np.zeros(5, [("x", "u2"), ("y", "u1")]))
    assert table_bytes([byte]) == 3
    assert table_bytes([byte, word]) == 4 + 16
    assert table_bytes([word, byte]) == 16 + 3
    assert table_bytes([byte, pair]) == 4 + 5 * 4


def test_a_hand_worked_price(monkeypatch):
    figures = {
        "bytes": {"alu": 2.0, "load8": 3.0},
        "instructions": {"alu": 1.0, "load8": 2.5},
        "stack": {"frame": 10.0},
    }
    monkeypatch.setitem(COEFFICIENTS, "cortex-m0+", figures)
    counts = Counts(101, {"alu": 10, "load8": 4, "new": 7}, {"alu": 100, "load8": 40}, 48, {"frame": 2})
    cost = price(counts, "cortex-m0+")
    assert cost == ProgramCost("cortex-m0+", 136, 0, 68, 200.0, 5.83, 101, 35)  # 200 * 1.4 / 48 MHz
    assert price(counts, "cortex-m0+", 24e6).microseconds == 11.67
    assert "136 B of flash (101 tables, 35 code)" in str(cost)


def test_a_hand_worked_program():
    counts = count_program(make_plan(zoo.naive_bayes(), "float"))
    # Two features with 2 + 3 rows of two floats, and two cut points of 16 bits; all else is in the code.
    assert counts.tables == 4 * 2 * 5 + 2 * 2
    assert counts.run["float_add"] == 4  # two features, two classes
    assert counts.run["float_compare"] == 1
    assert counts.arrays >= 4 + 2 * 4  # codes and sums


def test_larger_models_cost_more():
    def cost(states=4, features=8, classes=5, form=Fixed(3, 1)):  # noqa: B008
        return program_cost(classifier("naive", form, states=[states] * features, classes=classes))

    base = cost()
    assert cost(states=8).tables > base.tables
    assert cost(features=16).instructions > base.instructions
    assert cost(classes=20).flash > base.flash
    assert cost(form=Fixed(3, 5)).tables > base.tables
    assert base.flash == base.tables + base.code
    assert base.flash % 4 == 0


def test_flash_and_stack_need_no_running():
    net = mixed_net()
    still, few, whole = program_cost(net, most=0), program_cost(net, most=4), program_cost(net)
    assert (still.flash, still.tables, still.stack) == (whole.flash, whole.tables, whole.stack)
    assert np.isnan([still.instructions, still.microseconds]).all()
    assert few.instructions == pytest.approx(whole.instructions, rel=0.1)
    assert few.instructions != whole.instructions


def test_a_core_chooses_the_price_of_the_program():
    net = mixed_net()
    assert model_cost(net) == parameter_cost(net)
    assert model_cost(net, "m4", clock=1e6, gaps=False) == program_cost(net, "cortex-m4", clock=1e6, gaps=False)


def test_code_for_gaps_takes_flash():
    net = classifier("tree", Fixed(3, 1), features=8, classes=5)
    with_gaps, without = program_cost(net), program_cost(net, gaps=False)
    assert with_gaps.code > without.code + 100
    assert with_gaps.instructions < 1.5 * without.instructions


def test_rows_of_zeros_skip_the_rows_of_a_net_with_lanes():
    zeros = np.zeros((4, 20), int)
    for units, ratio in ((12, 0.95), (80, 0.7)):  # the small one is compact
        net = neural_net((units,), bits=4, states=[6] * 20, classes=5)
        empty, full = (program_cost(net, rows=rows).instructions for rows in (zeros, zeros + 5))
        assert (empty < ratio * full) == (units == 80)


def test_codes_instead_of_raw_values():
    net = mixed_net()
    assert program_cost(net, raw="none").flash < program_cost(net, raw="float").flash - 100
    assert program_cost(net, raw="none", rows=np.full((2, 5), -1)).instructions > 0


def test_names_of_cores_and_clocks():
    net = classifier("naive", Fixed(3, 1))
    assert program_cost(net, "m4") == program_cost(net, "Cortex-M4")
    assert program_cost(net, "m4").core == "cortex-m4"
    assert program_cost(net, clock=24e6).microseconds == pytest.approx(2 * program_cost(net).microseconds, rel=0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"core": "avr"}, r"core: expected one of cortex-m0\+, cortex-m3, cortex-m4, cortex-m7, got 'avr'; or measure"),
        ({"clock": 0.0}, "clock: expected a positive frequency in Hz"),
        ({"rows": np.zeros((2, 3), int)}, r"rows: expected rows of 5 codes, at least one, got shape \(2, 3\)"),
        ({"raw": "text"}, "raw: expected one of float, int, none"),
    ],
)
def test_wrong_questions(options, words):
    with pytest.raises(TinybayesError, match=words):
        program_cost(classifier("naive", Fixed(3, 1)), **options)


def test_every_core_has_coefficients_without_negative_ones():
    assert set(COEFFICIENTS) == set(CORES)
    for figures in COEFFICIENTS.values():
        assert set(figures) == {"bytes", "instructions", "stack"}
        assert all(value >= 0 for values in figures.values() for value in values.values())
