"""Models and files at the edge of what can be written: the smallest, the impossible, and what is just too large."""

import ast
import io
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from test_circuit_c import run as run_circuit

import neural_nets
import zoo
from c_host import labels_and_scores
from networks import classifier
from targets_host import Case, run_micropython
from tinybayes.deploy import save
from tinybayes.deploy._boards import boards
from tinybayes.deploy.export import TARGETS, export
from tinybayes.deploy.files import bif, native
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.programs import onnx as onnx_target
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.names import Names
from tinybayes.deploy.programs.plan import full_table, lay_out, make_plan
from tinybayes.deploy.programs.program import WIDTH
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores
from tinybayes.model import BayesNet, Circuit, Fixed, Float, Inputs, Variable, with_target


def one_node(kind):
    """The smallest circuits: an indicator, or a parameter that stands for everything."""
    none = np.empty(0, int)
    table = np.log([0.25]) if kind == 0 else np.empty(0)
    return Circuit([Variable("a", (0, 1, 2))], None, np.array([kind]), np.zeros(2, int), none, [0], table, Float(64))


@pytest.mark.parametrize("arithmetic", ["integer", "float"])
@pytest.mark.parametrize(("kind", "wanted"), [(1, [1.0, 0.0, 0.0]), (0, [1 / 3, 1 / 3, 1 / 3])])
def test_circuits_of_one_node(tmp_path, kind, wanted, arithmetic):
    X = np.array([[-1], [2]])
    possible, labels, posterior, bound = run_circuit(tmp_path, one_node(kind), X, 0, arithmetic)
    assert possible.all()
    assert (labels == 0).all()
    scale = 65536 if arithmetic == "integer" else 1
    np.testing.assert_allclose(posterior / scale, [wanted, wanted], atol=bound)


def impossible():
    """A state that no class has, in a table without the class, and a class that never is."""
    variables = (Variable("a", (0, 1, 2)), Variable("b", (0, 1)))
    rng = np.random.default_rng(0)
    of_b = zoo.cpd(rng.dirichlet([1, 1], 9), [0, 2], number_format=Float())
    return BayesNet(
        variables,
        Variable("y", ("p", "q", "r")),
        (zoo.cpd([0, 1 / 4, 3 / 4], number_format=Float()), of_b, zoo.cpd([1 / 2, 0, 1 / 2], number_format=Float())),
    )


def test_what_is_impossible_in_every_class_stays_impossible(tmp_path):
    net = impossible()
    X = np.array([[a, b] for a in range(3) for b in range(2)])
    exact = class_scores(net, X)
    assert np.isneginf(exact[:2]).all()
    labels, scores = labels_and_scores(tmp_path, to_c(net, name="net"), "net", net, X, score="float")
    np.testing.assert_allclose(scores, exact, rtol=1e-5)
    np.testing.assert_array_equal(labels, scores.argmax(axis=1))
    terms = lay_out(net)
    assert len(terms.common) == len(terms.common_constant) == 0
    code = next(text for name, text in export(net, "micropython").items() if name.endswith(".py"))
    assert '-float("inf")' in (code.decode() if isinstance(code, bytes) else code)


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_without_a_class_is_not_exported(target):
    with pytest.raises(TinybayesError, match="class"):
        export(with_target(classifier("tree", Fixed(3, 1)), None), target)
    with pytest.raises(TinybayesError, match="export: expected a model with a class, got none"):
        lay_out(zoo.sprinkler())


def test_decision_trees_are_written_out_up_to_a_size(monkeypatch):
    net = zoo.tree_tan()
    node = next(number for number, cpd in enumerate(net.cpds) if cpd.tree is not None)
    assert full_table(net, node, net.cpds[node]).tolist() == zoo.tree_tan().cpds[1].table[[0, 1, 0, 2]].tolist()
    monkeypatch.setattr("tinybayes.deploy.programs.plan.MAX_ENTRIES", 12)
    assert full_table(net, node, net.cpds[node]).size == 12
    monkeypatch.setattr("tinybayes.deploy.programs.plan.MAX_ENTRIES", 11)
    with pytest.raises(TinybayesError, match=r"distribution of 'b': expected at most 11 entries.*compile the network"):
        full_table(net, node, net.cpds[node])


def test_neural_nets_with_too_many_states():
    net = neural_nets.neural_net((2,), states=[65_536])
    assert export(net, "c")
    for large in ({"states": [65_537]}, {"classes": 65_537, "states": [2]}):
        with pytest.raises(TinybayesError, match="export: expected at most 65,536 states of a variable, got 65,537"):
            export(neural_nets.neural_net((), **large), "c")


def test_tables_too_large_for_onnx(monkeypatch):
    pytest.importorskip("onnx")
    net = classifier("naive", Fixed(3, 1), states=[2, 3], classes=2)
    monkeypatch.setattr(onnx_target, "LARGEST", 4 * 5 * 2)
    assert export(net, "onnx")
    monkeypatch.setattr(onnx_target, "LARGEST", 4 * 5 * 2 - 1)
    with pytest.raises(TinybayesError, match="onnx: expected tables of at most 39 bytes, got 40; export to C"):
        export(net, "onnx")
    dense = neural_nets.neural_net((3,), states=[2, 2], classes=2)  # 2 x 3 and 3 x 2 weights
    monkeypatch.setattr(onnx_target, "LARGEST", 4 * 12 - 1)
    with pytest.raises(TinybayesError, match="got 48"):
        export(dense, "onnx")


def test_headers_of_model_files_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "_HEADER_LIMIT", 100)
    with pytest.raises(TinybayesError, match="model: expected names, states and metadata within 100 bytes"):
        save(zoo.tan(), tmp_path / "m.tb")
    assert not list(tmp_path.iterdir())


def test_bif_without_a_name_and_with_properties_everywhere(tmp_path):
    write_bif(zoo.sprinkler(), tmp_path / "a.bif")
    text = (tmp_path / "a.bif").read_text()
    text = re.sub(r"network [^{]*\{", "network {", text)
    text = re.sub(r"(probability[^{]*\{)", r"\1 property note nothing here ;", text)
    assert text.count("property note") == 3
    (tmp_path / "b.bif").write_text(text)
    assert read_bif(tmp_path / "b.bif") == read_bif(tmp_path / "a.bif")


def test_networks_without_variables_have_no_text(tmp_path):
    with pytest.raises(TinybayesError, match="expected a network with variables, got none"):
        bif.write_bif(BayesNet((), None, ()), tmp_path / "a.bif")


def test_what_does_not_link_says_why(tmp_path):
    try:
        boards.need_tools()
    except TinybayesError as reason:
        pytest.skip(str(reason))
    board = boards.find_board("m0+")
    with pytest.raises(TinybayesError, match=r"expected code that compiles and links, got .*error: .*unknown type"):
        boards.build(tmp_path, {"main.c": "word reset(void) { return 1; }\n"}, board, [])
    with pytest.raises(TinybayesError, match=r"links, got .*undefined reference to .nobody"):
        boards.build(tmp_path, {"main.c": "int nobody(void); int reset(void) { return nobody(); }\n"}, board, [])
    with pytest.raises(TinybayesError, match=r"got .{300}$"):
        boards.build(tmp_path, {"main.c": f"{'word' * 200} reset(void) {{ return 1; }}\n"}, board, [])


def test_programs_that_are_missing_or_do_not_end(tmp_path, monkeypatch):
    with pytest.raises(TinybayesError, match="measuring: expected the program"):
        boards._run(["no-such-program"], tmp_path, 1.0)
    with pytest.raises(TinybayesError, match=r"sleep: expected an end within 0.05 s, got none; give more time"):
        boards._run(["sleep", "5"], tmp_path, 0.05)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TinybayesError, match="the program arm-none-eabi-gcc, got none on the path; on Debian: apt-get"):
        boards.need_tools()


def constant(bits):
    """A circuit whose value is two to the power of `bits`, whatever is known."""
    none = np.empty(0, int)
    table = np.array([bits * np.log(2)])
    return Circuit([Variable("a", (0, 1))], None, [0], np.zeros(2, int), none, [0], table, Float(64))


@pytest.mark.parametrize(("arithmetic", "low", "high"), [("float", -126, 127), ("integer", -30_000, 30_000)])
def test_values_fill_the_range_of_the_arithmetic(arithmetic, low, high):
    for bits in (low + 0.5, high - 0.5):
        assert to_c(constant(bits), query="a", arithmetic=arithmetic)
    for bits in (low - 0.5, high + 0.5):
        with pytest.raises(TinybayesError, match=rf"expected values from 2\*\*{low} to 2\*\*{high}"):
            to_c(constant(bits), query="a", arithmetic=arithmetic)


def test_headers_of_circuits():
    def header(states, arithmetic):
        none = np.empty(0, int)
        variables = [Variable("a", tuple(range(states))), Variable("b", (0, 1))]
        circuit = Circuit(variables, None, [1], np.zeros(2, int), none, [0], np.empty(0), Float(64))
        return to_c(circuit, name="net", query="b", arithmetic=arithmetic)["net.h"]

    assert "#define NET_UNKNOWN 255\n" in header(255, "integer")
    assert "const uint8_t x[2]" in header(255, "integer")
    assert "#define NET_UNKNOWN 65535\n" in header(256, "integer")
    assert "const uint16_t x[2]" in header(256, "integer")
    assert "#define NET_ONE 65536\n" in header(2, "integer")
    assert "NET_ONE" not in header(2, "float")
    for text in (header(2, "integer"), header(2, "float")):
        assert "#define NET_VARIABLES 2\n" in text
        assert "#define NET_STATES 2\n" in text
        notes = "/* an integer from 0 to 1 */", "/* ignored: it is asked for */"
        assert f"NET_A = 0, {notes[0]}\n    NET_B = 1 {notes[1]}\n" in text


def test_questions_show_ten_of_many_names():
    def asked(count):
        variables = [Variable(f"v{i}", (0, 1)) for i in range(count)]
        none = np.empty(0, int)
        return to_c(Circuit(variables, None, [1], np.zeros(2, int), none, [0], np.empty(0), Float(64)), query="other")

    for count, shown in ((10, "v8, v9, got"), (11, "v8, v9, ..., got")):
        with pytest.raises(TinybayesError, match=f"query: expected one of the variables v0, .*{shown} 'other'; name"):
            asked(count)


@pytest.mark.parametrize(
    ("form", "bits"), [(Fixed(3, 1), 4), (Fixed(4, 4), 8), (Fixed(8, 1), 16), (Fixed(8, 8), 16), (Fixed(8, 9), 24)]
)
def test_tables_of_micropython_take_whole_bytes_or_bits(form, bits):
    net = classifier("naive", form, states=[2, 3, 4] * 20, classes=3)
    module = ast.parse(export(net, "micropython", name="net")["net.py"])
    tables = [
        node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    ]
    assert sum(map(len, tables)) == -(-lay_out(net).rows.size * bits // 8)


def test_bounds_of_floats_are_small():
    for structure in ("naive", "tree"):
        assert 0 < make_plan(classifier(structure, Float(32))).float_error < 1e-4


def test_constants_with_one_name_get_numbers():
    names = Names({"X_A_B"})
    assert [names.make("x", text) for text in ("a b", "a-b", "a_b", "c")] == ["X_A_B_2", "X_A_B_3", "X_A_B_4", "X_C"]


def test_libraries_of_arduino_are_files_that_all_can_read():
    (content,) = export(classifier("naive", Fixed(3, 1)), "arduino", name="net").values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o644}
        assert {entry.date_time[:3] for entry in archive.infolist()} == {(1980, 1, 1)}


def test_every_line_of_a_table_has_its_width():
    for net in (classifier("tree", Fixed(3, 1), states=[2] * 40), classifier("naive", Fixed(3, 1), states=[9] * 30)):
        lines = to_c(net, name="net")["net.c"].splitlines()
        data = [line for line in lines if re.fullmatch(r"    [\dxA-FU{}, -]+", line)]
        assert data
        assert max(map(len, data)) <= WIDTH
        assert any(len(line) > WIDTH - 16 for line in data)


@pytest.mark.parametrize(("multiplier", "center"), [([1, 2, 3], 1), ([2, 2, 2], 3), ([2, 1, 2], [0, 1, 1])])
def test_micropython_scales_each_input_by_its_own(tmp_path, multiplier, center):
    net = neural_nets.neural_net((4,), bits=3, states=[4, 3, 5])
    inputs = Inputs(np.arange(3), np.full(3, -1), np.array(multiplier), np.broadcast_to(center, 3))
    case = Case("net", replace(net, inputs=inputs), neural_nets.rows_of(net))
    ((labels, scores),) = run_micropython(tmp_path, [case])
    np.testing.assert_array_equal(scores, case.exact)
    np.testing.assert_array_equal(labels, case.exact.argmax(axis=1))


def test_models_are_named_by_twelve_digits():
    for net in (classifier("naive", Fixed(3, 1)), neural_nets.neural_net((3,))):
        assert re.search(r"Model [0-9a-f]{12}\.", to_c(net, name="net")["net.c"])
