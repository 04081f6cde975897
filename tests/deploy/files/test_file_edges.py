"""Files at the edge of what is read: exact limits, places in messages, and what messages show of long lists."""

import re

import numpy as np
import pytest

import zoo
from networks import classifier
from tinybayes.deploy import load, measure, save
from tinybayes.deploy._boards import monitor
from tinybayes.deploy.files import network_text, uai
from tinybayes.deploy.files.ac import read_ac
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.deploy.files.uai import read_uai_factors
from tinybayes.deploy.files.uai_marginals import read_marginals
from tinybayes.deploy.programs.c import to_c
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer import compile_circuit
from tinybayes.model import CPD, BayesNet, Codebook, Fixed, Float, Variable


def put(path, text):
    path.write_text(text)
    return path


def bif_of(tables):
    """Chain the nodes: each has the one before as its only parent, the first has the last."""
    text = "network n {\n}\n"
    for name in tables:
        text += f"variable {name} {{\n  type discrete [ 2 ] {{ x, y }};\n}}\n"
    return text


def test_long_cycles_are_shortened(tmp_path):
    names = [f"v{i:02}" for i in range(14)]
    text = bif_of(names)
    for i, name in enumerate(names):
        text += f"probability ( {name} | {names[i - 1]} ) {{\n  (x) 0.5, 0.5;\n  (y) 0.5, 0.5;\n}}\n"
    with pytest.raises(FileError) as caught:
        read_bif(put(tmp_path / "a.bif", text))
    shown = str(caught.value)
    assert shown.count("->") == 10
    assert shown.endswith("-> ...")


def test_the_line_of_a_wrong_number_is_that_of_its_row(tmp_path):
    text = bif_of(["a", "b"]) + "probability ( a ) {\n  table 0.5, 0.5;\n}\n"
    text += "probability ( b | a ) {\n  (x) 0.5, 0.5;\n  (y) 0.5, half;\n}\n"
    with pytest.raises(FileError, match=r"a\.bif:14: .*half"):
        read_bif(put(tmp_path / "a.bif", text))
    with pytest.raises(FileError, match=r"a\.bif:14: expected probabilities of 'b' between 0 and 1, got 1.5"):
        read_bif(put(tmp_path / "a.bif", text.replace("0.5, half", "1.5, 0")))


def test_impossible_entries_stay_so_when_rows_are_normalised(tmp_path):
    book = Codebook((-np.inf, -1.0, -0.5))
    net = BayesNet((Variable("a", (0, 1, 2)),), None, (CPD((), np.array([[0, 1, 2]]), book),))
    write_bif(net, tmp_path / "a.bif", normalize=True)
    found = np.exp(read_bif(tmp_path / "a.bif").cpds[0].log_parameters[0])
    np.testing.assert_allclose(found, np.array([0, np.exp(-1), np.exp(-0.5)]) / (np.exp(-1) + np.exp(-0.5)))


def test_states_that_read_alike_are_shown_ten_of_many(tmp_path):
    net = BayesNet((Variable("a", (*range(12), "0")),), None, (CPD((), np.full((1, 13), -np.log(13)), Float(64)),))
    with pytest.raises(TinybayesError, match=r"distinct as text, got \[0, 1, 2, 3, 4, 5, 6, 7, 8, 9\]"):
        write_bif(net, tmp_path / "a.bif")


def test_named_weights_are_shown_ten_of_many():
    text = "".join(f"w{i} = 1\n" for i in range(12))
    with pytest.raises(TinybayesError, match=r"named weight \(w0, .*, w8, w9\), got"):
        parse_clauses(text + "other: a\n")


@pytest.mark.parametrize("line", ["v 0 x", "v 0", "+ 0 x"])
def test_circuits_show_the_words_that_are_no_numbers(tmp_path, line):
    with pytest.raises(FileError, match=rf"integers, got .*{re.escape(line[2:])}"):
        read_ac(put(tmp_path / "a.ac", f"(2)\nv 0 0\n{line}\nEOF\n"))


def test_headers_lie_within_the_file(tmp_path):
    path = tmp_path / "m.tb"
    path.write_bytes((100).to_bytes(8, "little") + b" " * 20)
    with pytest.raises(FileError, match=r"a header within the file and .* got 28 bytes in all for a header of 100"):
        load(path)
    with pytest.raises(TinybayesError, match="metadata: expected content that JSON can hold"):
        save(zoo.tan(), path, metadata={"a": np.inf})


def test_markov_networks_up_to_their_limits(tmp_path, monkeypatch):
    path = put(tmp_path / "a.uai", "MARKOV\n2\n2 3\n2\n2 0 1\n1 0\n6\n1 2 3 4 5 6\n2\n1 1\n")
    monkeypatch.setattr(uai, "_MAX_STATES", 5)
    monkeypatch.setattr("tinybayes.deploy.files.network_text.MAX_ENTRIES", 8)
    assert len(read_uai_factors(path).factors) == 2
    monkeypatch.setattr("tinybayes.deploy.files.network_text.MAX_ENTRIES", 7)
    with pytest.raises(FileError, match="at most 7 numbers in all tables, got more with function 1"):
        read_uai_factors(path)
    monkeypatch.setattr(uai, "_MAX_STATES", 4)
    with pytest.raises(FileError, match="at most 4 states of all variables, got 5"):
        read_uai_factors(path)


def test_marginals_of_three_variables_in_the_older_form(tmp_path):
    found = read_marginals(put(tmp_path / "a.MAR", "MAR\n1\n3 2 0.5 0.5 1 1.0 1 1.0\n"))
    assert [part.tolist() for part in found] == [[0.5, 0.5], [1.0], [1.0]]
    assert read_marginals(put(tmp_path / "a.MAR", "MAR\n1 1 1.0000009\n"))[0].tolist() == [1.0000009]
    with pytest.raises(FileError, match=r"a probability, got 1\.00001"):
        read_marginals(put(tmp_path / "a.MAR", "MAR\n1 1 1.00001\n"))
    with pytest.raises(FileError, match=r"a\.MAR:3: expected probabilities that sum to one, got 1.1"):
        read_marginals(put(tmp_path / "a.MAR", "MAR\n1 2\n0.5\n0.6\n"))


def test_what_is_read_from_a_header():
    net = classifier("naive", Fixed(3, 1), states=[2, 3], classes=300)
    _, probe = measure._probe(to_c(net, name="net"), "net")
    assert (probe.element, probe.width, probe.label, probe.classes) == ("uint8_t", 2, "uint16_t", 300)


def test_timings_have_enough_calls():
    for rows in (1, 7, 100, 10_000):
        for row_bytes in (1, 60, monitor.BLOCK, 3 * monitor.BLOCK):
            block = min(rows, max(1, monitor.BLOCK // row_bytes))
            found = monitor.repeats(rows, row_bytes)
            enough = found * block >= monitor.CALLS and found * rows >= 16 * monitor.CALLS
            fewer = (found - 1) * block < monitor.CALLS or (found - 1) * rows < 16 * monitor.CALLS
            assert enough
            assert fewer


def test_messages_show_40_characters_of_a_text():
    assert network_text.shorten("a" * 40) == repr("a" * 40)
    assert network_text.shorten("a" * 41) == repr("a" * 37 + "...")


def test_messages_show_the_beginning_of_files_and_scopes(tmp_path):
    with pytest.raises(FileError, match=r"got '[a-z]{30}'$"):
        read_ac(put(tmp_path / "a.ac", "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"))
    scope = " ".join(map(str, [*range(11), 0]))
    with pytest.raises(FileError, match=r"got 0 1 2 3 4 5 6 7 8 9$"):
        read_uai_factors(put(tmp_path / "a.uai", f"MARKOV\n12\n{'2 ' * 12}\n1\n12 {scope}\n"))


def test_the_line_of_a_wrong_number_behind_other_numbers():
    tokens = network_text.Tokens(network_text.Source("a.txt", "1 2\n3\nx 4"))
    assert tokens.numbers(2, "numbers")[0].tolist() == [1, 2]
    with pytest.raises(FileError, match=r"a\.txt:3: expected a number, got 'x'"):
        tokens.numbers(3, "numbers")


def test_tables_may_have_as_many_probabilities_as_allowed(monkeypatch):
    monkeypatch.setattr(network_text, "MAX_ENTRIES", 8)
    builder = network_text.NetworkBuilder(network_text.Source("a.txt", "").error, ["a", "b"], [2, 4])
    assert builder.shape(1, [0], 0) == (2, 4)
    with pytest.raises(FileError, match="at most 8 probabilities"):
        builder.shape(0, [], 0)


def test_decimals_of_small_probabilities_have_12_digits_if_these_will_do():
    random = np.random.default_rng(0)
    texts = [f"{digits}e-311" for digits in random.integers(10**11, 10**12, 3000)]
    written = network_text.decimals(np.log(np.array(texts, dtype=np.float64)))
    assert max(len(text.split("e")[0].replace(".", "")) for text in written) <= 12


TINY = ["1e-400", "5e-324", "0.3e-308", "-2E-310", "0." + "0" * 330 + "7"]


@pytest.mark.parametrize("word", TINY)
def test_numbers_that_doubles_do_not_hold_are_refused_where_they_stand(tmp_path, word):
    """They would be read as zero, which is impossible, or with few of their digits."""
    uai_file = put(tmp_path / "a.uai", f"MARKOV\n1\n2\n1\n1 0\n\n2\n0.0\n{word}\n")
    with pytest.raises(FileError, match=r"a\.uai:9: expected zero, or a number from 2\.23e-308 to 1\.8e\+308"):
        read_uai_factors(uai_file)
    if not word.startswith("-"):
        with pytest.raises(FileError, match=r"a\.ac:3: expected zero, or a number"):
            read_ac(put(tmp_path / "a.ac", f"(2)\nv 0 0\nn {word}\n* 0 1\nEOF\n"))


def test_zeros_and_the_smallest_number_of_all_digits_are_read(tmp_path):
    zeros = ["0", "0.0", "-0.0", "0e-999", "00.00e5", "2.2250738585072014e-308"]
    text = f"MARKOV\n1\n{len(zeros)}\n1\n1 0\n\n{len(zeros)}\n{' '.join(zeros)}\n"
    found = read_uai_factors(put(tmp_path / "a.uai", text)).weights
    assert np.isneginf(found[:5]).all()
    assert found[5] == np.log(2.2250738585072014e-308)


@pytest.mark.parametrize("suffix", ["uai", "bif", "xmlbif", "ac"])
@pytest.mark.parametrize("low", [-745.2, -708.5, -5000.0])
def test_parameters_that_doubles_do_not_hold_are_not_written_as_zero(tmp_path, suffix, low):
    table = np.array([[0.0, low]])
    net = BayesNet((Variable("a", (0, 1)),), None, (CPD((), table, Float(64)),))
    model = compile_circuit(net) if suffix == "ac" else net
    with pytest.raises(TinybayesError, match=r"doubles hold, got exp\(-.*package's own format"):
        save(model, tmp_path / f"a.{suffix}")
    assert not list(tmp_path.iterdir())
    save(model, tmp_path / "a.tb")
    kept = load(tmp_path / "a.tb")
    logs = kept.log_parameters if suffix == "ac" else kept.cpds[0].log_parameters[0]
    assert low in logs.tolist()
