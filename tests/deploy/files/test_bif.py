"""BIF: what is read by hand, exact round trips, and the public networks."""

import gzip
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from bif_texts import DOG, SMALL, again, put, table
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.network_text import decimals
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import CPD, BayesNet, Codebook, Cuts, DecisionTree, Fixed, Float, Variable

NAMES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", " ", "a b", '"', "\\", "\\n", "\n", "a//b", "/*", "a/b", "{", "}", ";", "|", ",", "é", "table"]
    ),
    st.sampled_from(["network", "\ud800", "\x00", "\u2028", "< 150", "150 to 180", ">= 180", "variable", "(", "0.5"]),
)


# ---------------------------------------------------------------- reading


def test_rows_go_to_their_assignment_whatever_their_order(tmp_path):
    net = read_bif(put(tmp_path, DOG))
    assert net.target is None
    assert [(v.name, v.states) for v in net.variables] == [
        ("out", ("in side", "out")),
        ("bowel", ("well", "sick")),
        ("family", ("none", "one", "two")),
    ]
    assert [cpd.parents for cpd in net.cpds] == [(1, 2), (), ()]
    assert all(cpd.format == Float(64) for cpd in net.cpds)
    assert table(net, "out") == [[0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9], [0.05, 0.95], [0, 1]]
    assert net.cpds[0].table[5, 0] == -math.inf
    assert net.cpds[0].table[0, 0] == np.log(0.2)
    assert table(net, "bowel") == [[0.99, 0.01]]


def test_a_table_with_parents_has_the_child_slowest_and_the_last_parent_fastest(tmp_path):
    # The dog problem of the format's own description: P(out | bowel, family) is .99 .97 .9 .3.
    text = """network d {} variable f { type discrete [2] { t n }; } variable b { type discrete [2] { t n }; }
    variable out { type discrete [2] { t n }; }
    probability ( f ) { table .15 .85; } probability ( b ) { table .01 .99; }
    probability ( out b f ) { table 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7 ; }"""
    net = read_bif(put(tmp_path, text))
    assert net.cpds[2].parents == (1, 0)
    assert table(net, "out") == [[0.99, 0.01], [0.97, 0.03], [0.9, 0.1], [0.3, 0.7]]


def test_default_stands_for_the_rows_not_given(tmp_path):
    text = SMALL.replace("(yes) 0.2, 0.3, 0.5;", "default 0.5, 0.25, 0.25;")
    assert table(read_bif(put(tmp_path, text)), "b") == [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]


def test_names_of_the_public_repositories_are_read_bare(tmp_path):
    bare = ["Asy/Patch", "<5", "12+", ">=7.5", "5-12", "Transp.", "0-3_days", "10%", "a'b", "x=y", "-1", "/", "a\\b"]
    text = f"""network unknown {{ }}
    variable a {{ type discrete [ {len(bare)} ] {{ {", ".join(bare)} }}; }}
    variable b {{ type discrete [ 1 ] {{ x }}; }}
    probability ( a ) {{ table {", ".join(["1"] + ["0"] * (len(bare) - 1))}; }}
    probability ( b | a ) {{ {" ".join(f"({state}) 1.0;" for state in bare)} }}"""
    net = read_bif(put(tmp_path, text))
    assert list(net.variables[0].states) == bare
    assert again(net, tmp_path) == net


def test_a_class_named_by_the_file_becomes_the_last_node(tmp_path):
    net = read_bif(put(tmp_path, SMALL.replace("{\n}", "{ property target = a; }", 1)))
    assert net.target == Variable("a", ("yes", "no"))
    assert [variable.name for variable in net.variables] == ["b"]
    assert [cpd.parents for cpd in net.cpds] == [(1,), ()]
    assert table(net, "b") == [[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]


def test_windows_and_old_mac_line_ends_a_byte_order_mark_and_gzip(tmp_path):
    net = read_bif(put(tmp_path, SMALL))
    for change in ("\r\n", "\r"):
        (tmp_path / "w.bif").write_bytes(("// a comment\n" + SMALL).replace("\n", change).encode("utf-8-sig"))
        assert read_bif(tmp_path / "w.bif") == net
    for name in ("packed.bif.gz", "packed.bif"):
        (tmp_path / name).write_bytes(gzip.compress(SMALL.encode()))
        assert read_bif(tmp_path / name) == net


# ---------------------------------------------------------------- writing


def test_the_text_is_plain(tmp_path):
    write_bif(read_bif(put(tmp_path, SMALL)), tmp_path / "out.bif")
    assert (tmp_path / "out.bif").read_text() == SMALL


def test_class_cut_points_and_kinds_of_states_survive(tmp_path):
    states = Variable("s", (True, False)), Variable("i", (3, -1)), Variable("f", (0.1, math.inf))
    mixed = Variable("mixed", ("a", 2, 0.5, False)), Variable.from_encoding("none", Cuts([]))
    nodes = (*states, *mixed, Variable.from_encoding("cut", Cuts([0.1, 1e30])), Variable("x; y", ("", "< 150")))
    cpds = [zoo.cpd(np.full(node.cardinality, 1 / node.cardinality)) for node in nodes]
    net = BayesNet(nodes[:-1], nodes[-1], cpds)
    found = again(net, tmp_path)
    assert found == net
    kinds = [[type(state) for state in node.states] for node in found.nodes]
    assert kinds == [[type(state) for state in node.states] for node in nodes]
    text = (tmp_path / "again.bif").read_text()
    assert "property states = int ;" in text
    assert "property states = str int float bool ;" in text
    assert "property cuts = 0.10000000149011612 1.0000000150474662e+30 ;" in text
    assert "property cuts = ;" in text


@pytest.mark.parametrize("make", [zoo.sprinkler, zoo.naive_bayes, zoo.tan])
def test_hand_worked_networks_come_back_equal(make, tmp_path):
    assert again(make(), tmp_path) == make()


@given(st.data())
def test_any_names_states_and_tables_come_back_equal(tmp_path_factory, data):
    seed = data.draw(st.integers(0, 2**32))
    states = st.lists(
        st.one_of(NAMES, st.integers(), st.floats(allow_nan=False), st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=lambda state: str(state) if isinstance(state, str) else repr(float(state) + 0.0),
    )
    names = data.draw(st.lists(NAMES, min_size=3, max_size=5, unique=True))
    variables = [Variable(name, tuple(data.draw(states))) for name in names]
    for index, variable in enumerate(variables):
        texts = [str(state) for state in variable.states]
        if len(set(texts)) != len(texts):
            variables[index] = Variable(variable.name, ("a", "b"))
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, len(names) - 1, formats=[Float(64)], variables=variables)
    assert again(net, tmp_path_factory.mktemp("bif")) == net


def test_the_same_network_gives_the_same_gzip(tmp_path):
    net = zoo.tan()
    for name in ("a.bif.gz", "b.bif.gz"):
        write_bif(net, tmp_path / name)
    assert (tmp_path / "a.bif.gz").read_bytes() == (tmp_path / "b.bif.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.bif.gz").read_bytes()).startswith(b"network")
    assert read_bif(tmp_path / "a.bif.gz") == net


def test_trees_are_written_as_full_tables(tmp_path):
    rng = np.random.default_rng(5)
    nets = [zoo.tree_tan(), *(zoo.random_net(rng, 4, 3, trees=True, formats=[Float(64)]) for _ in range(10))]
    assert sum(cpd.tree is not None for net in nets for cpd in net.cpds) > 10
    for net in nets:
        found = again(net, tmp_path)
        assert all(cpd.tree is None for cpd in found.cpds)
        for row in np.ndindex(*(node.cardinality for node in net.nodes)):
            assert oracle.log_joint(found, list(row)) == pytest.approx(oracle.log_joint(net, list(row)), rel=1e-12)


def test_a_tree_over_too_many_parents_is_refused(tmp_path):
    nodes = tuple(Variable(f"v{i}", (0, 1)) for i in range(40))
    tree = DecisionTree(split=[0, -1, -1], first=[0, 0, 0], children=[1, 2], row=[0, 0, 1])
    wide = zoo.cpd([[0.5, 0.5], [0.25, 0.75]], range(39), tree)
    net = BayesNet(nodes, None, (*(zoo.cpd([0.5, 0.5]) for _ in range(39)), wide))
    with pytest.raises(TinybayesError, match=r"16,777,216.*'v39' has 39 parents"):
        write_bif(net, tmp_path / "wide.bif")
    assert not list(tmp_path.iterdir())


def test_quantised_networks_need_normalize(tmp_path):
    levels = Codebook((-math.inf, -3.0, -1.0, 0.5))
    for number_format in (Fixed(2, 1), levels):
        net = zoo.random_net(np.random.default_rng(1), 4, formats=[number_format])
        with pytest.raises(TinybayesError, match=r"sum to one.*normalize=True"):
            write_bif(net, tmp_path / "q.bif")
        found = again(net, tmp_path, normalize=True)
        for before, after in zip(net.cpds, found.cpds, strict=True):
            weights = np.exp(before.log_parameters)
            expected = weights / weights.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(np.exp(after.log_parameters), expected, rtol=1e-12)


def test_a_row_without_any_probability_cannot_be_normalised(tmp_path):
    net = BayesNet((Variable("v", (0, 1)),), None, (CPD((), np.full((1, 2), -np.inf), Float(64)),))
    with pytest.raises(TinybayesError, match="sum to one, got 0 in row 1"):
        write_bif(net, tmp_path / "q.bif", normalize=True)


def test_states_that_look_the_same_are_refused(tmp_path):
    net = BayesNet((Variable("v", (1, "1")),), None, (zoo.cpd([0.5, 0.5]),))
    with pytest.raises(TinybayesError, match="distinct as text"):
        write_bif(net, tmp_path / "v.bif")


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "directory.bif").mkdir()
    for path in (tmp_path / "no" / "net.bif", tmp_path / "directory.bif"):
        with pytest.raises(FileError, match="expected"):
            write_bif(zoo.tan(), path)
    assert [path.name for path in tmp_path.iterdir()] == ["directory.bif"]


# ---------------------------------------------------------------- decimals


@given(st.lists(st.floats(0, 1, exclude_min=True), min_size=1))
def test_decimals_have_the_same_logarithm(values):
    logs = np.log(np.array(values))
    found = decimals(logs)
    assert np.array_equal(np.log(np.array([float(text) for text in found])), logs)


@given(st.integers(1, 999_999_999), st.integers(9, 12))
def test_decimals_are_the_shortest(digits, places):
    value = float(f"{digits}e-{places}")
    text = decimals(np.log(np.array([value])))[0]
    assert len(text) <= len(repr(value))
    assert float(text) == value


def test_decimals_of_the_ends():
    assert decimals(np.array([-np.inf, 0.0, np.log(0.1), np.log(1e-5)])).tolist() == ["0", "1", "0.1", "1e-05"]
    # No double has this logarithm: the nearest probability is one.
    assert decimals(np.array([[-1e-20]])).tolist() == [["1.0"]]


# ---------------------------------------------------------------- real networks

SIZES = {  # variables, arcs and free parameters as the repository states them
    "alarm": (37, 46, 509),
    "andes": (223, 338, 1157),
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "child": (20, 25, 230),
    "hailfinder": (56, 66, 2656),
    "hepar2": (70, 123, 1453),
    "insurance": (27, 52, 1008),
    "munin1": (186, 273, 15622),
    "pigs": (441, 592, 5618),
    "win95pts": (76, 112, 574),
}


@pytest.mark.parametrize("name", SIZES)
def test_public_networks_come_back_equal(name, data_dir, tmp_path):
    net = read_bif(data_dir / "networks" / "bif" / f"{name}.bif.gz")
    free = sum(cpd.table.shape[0] * (cpd.table.shape[1] - 1) for cpd in net.cpds)
    assert (len(net.nodes), sum(len(cpd.parents) for cpd in net.cpds), free) == SIZES[name]
    assert net.is_normalized(1e-6)
    assert again(net, tmp_path) == net
    write_bif(net, tmp_path / "net.bif.gz")
    assert read_bif(tmp_path / "net.bif.gz") == net


def test_munin1_is_as_large_as_it_is(data_dir):
    net = read_bif(data_dir / "networks" / "bif" / "munin1.bif.gz")
    assert len(net.nodes) == 186
    assert sum(len(cpd.parents) for cpd in net.cpds) == 273


def test_rows_of_a_public_network(data_dir):
    net = read_bif(data_dir / "networks" / "bif" / "child.bif.gz")
    names = [node.name for node in net.nodes]
    node = names.index("HypoxiaInO2")
    mixing, lungs = (net.nodes[parent] for parent in net.cpds[node].parents)
    assert (mixing.name, lungs.name) == ("CardiacMixing", "LungParench")
    row = mixing.states.index("Transp.") * lungs.cardinality + lungs.states.index("Normal")
    assert table(net, "HypoxiaInO2")[row] == [0.02, 0.18, 0.8]  # "(Transp., Normal) 0.02, 0.18, 0.80;"
    assert net.nodes[names.index("ChestXray")].states[-1] == "Asy/Patch"
