"""The command that estimates marginals."""

import json

import numpy as np
import pytest

import zoo
from cli_host import fails, run
from tinybayes import marginals, save
from tinybayes.deploy.files.uai import write_uai
from tinybayes.deploy.files.uai_marginals import read_marginals, write_marginals
from tinybayes.infer import METHODS, compile_circuit, most_probable


@pytest.fixture
def folder(tmp_path):
    net = zoo.sprinkler()
    write_uai(net, tmp_path / "net.uai")
    save(net, tmp_path / "net.tb")
    save(compile_circuit(net), tmp_path / "circuit.tb")
    (tmp_path / "wet.evid").write_text("1 2 1\n")
    (tmp_path / "never.evid").write_text("3 0 0 1 0 2 1\n")
    (tmp_path / "two.evid").write_text("2\n1 2 1\n1 2 0\n")
    (tmp_path / "other.evid").write_text("1 7 0\n")
    (tmp_path / "state.evid").write_text("1 0 5\n")
    (tmp_path / "odd.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n3\n1 2 3\n")
    (tmp_path / "pair.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n")
    (tmp_path / "rules.clauses").write_text("hard: a\n0.5: a | b\n")
    (tmp_path / "never.clauses").write_text("hard: a\nhard: !a\n")
    write_marginals(marginals(net, {2: 1}).probabilities, tmp_path / "wet.MAR")
    write_marginals([np.array([0.5, 0.5])], tmp_path / "small.MAR")
    return tmp_path


def test_marginals_are_printed_as_uai_text(folder):
    done = run("infer", "net.uai", "--evidence", "wet.evid", "--truth", "wet.MAR", cwd=folder)
    (folder / "out.MAR").write_text(done.stdout)
    found = read_marginals(folder / "out.MAR")
    assert found[0] == pytest.approx([2 / 3, 1 / 3])
    assert found[1] == pytest.approx([7 / 27, 20 / 27])
    assert "Exact (join-tree)" in done.stderr
    assert "Mean Hellinger distance over the variables not observed:" in done.stderr
    assert f"log Z given the evidence: {np.log(27 / 64):.10g}." in done.stderr


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_figures_for_machines(folder, method):
    arguments = ("--evidence", "wet.evid", "--truth", "wet.MAR", "--samples", "4000", "--seed", "3")
    done = run("infer", "net.uai", *arguments, "--method", method, "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["method"] == ("join-tree" if method == "auto" else method)
    assert found["hellinger"] < 0.03
    assert found["marginals"]["x2"] == [0.0, 1.0]
    same = marginals(zoo.sprinkler(), {2: 1}, method=method, samples=4000, seed=3)
    assert found["marginals"]["x0"] == pytest.approx(same[0].tolist(), abs=1e-12)
    assert found["exact"] == same.exact


def test_other_models_and_files(folder):
    run("infer", "net.tb", "--evidence", "wet.evid", "-o", "a.MAR", cwd=folder)
    run("infer", "circuit.tb", "--evidence", "wet.evid", "-o", "b.MAR", cwd=folder)
    for p, q in zip(read_marginals(folder / "a.MAR"), read_marginals(folder / "b.MAR"), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-12)
    assert run("infer", "pair.uai", cwd=folder).stdout.startswith("MAR\n2 2 0.3")
    assert json.loads(run("infer", "rules.clauses", "--json", cwd=folder).stdout)["marginals"]["a"] == [
        0.0,
        1.0,
    ]
    shown = run("infer", "net.uai", "--method", "lw", "--seconds", "0.2", "-o", "c.MAR", cwd=folder).stderr
    for words in ("lw:", "independent ones", "Largest standard error", "Wrote c.MAR."):
        assert words in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.uai", "--evidence", "never.evid"], "evidence: expected something that can occur"),
        (["net.uai", "--evidence", "never.evid", "--method", "gibbs"], "expected evidence that can occur"),
        (["never.clauses"], "can occur"),
        (["odd.uai"], "odd.uai:6: expected the number of entries of function 0, 4"),
        (["net.uai", "--method", "magic"], "method: expected auto or join-tree"),
        (
            ["net.uai", "--truth", "small.MAR"],
            "small.MAR: expected 3 variables with 6 states, as in net.uai, got 1 with 2",
        ),
        (["net.uai", "--truth", "net.uai"], "'MAR'"),
        (["net.uai", "--evidence", "two.evid", "-o", "both.MAR"], "expected a directory"),
        (["net.uai", "--evidence", "two.evid", "--truth", "wet.MAR"], "--truth: expected one evidence file"),
        (["net.uai", "--evidence", "wet.evid", "--evidence", "wet.evid"], "evidence files with different names"),
        (["net.uai", "--task", "PR", "--method", "gibbs"], "--method: expected --task MAR, got PR"),
        (["net.uai", "--task", "mpe", "--seconds", "1"], "--seconds: expected --task MAR, got MPE"),
        (["net.uai", "--task", "MMAP"], "--task: expected MAR or PR or MPE"),
        (["net.uai", "--evidence", "never.evid", "--task", "PR"], "evidence: expected something that can occur"),
        (["net.uai", "--evidence", "other.evid"], "the name or the number of a variable"),
        (["net.uai", "--evidence", "state.evid"], "a state of 'x0'"),
        (["net.uai", "--seconds", "0"], "seconds: expected a positive number"),
        (["net.uai", "--samples", "0"], "samples: expected an integer of at least 1"),
        (["circuit.tb", "--method", "lw"], "a circuit answers exactly"),
        (["nowhere.uai"], "nowhere.uai"),
        (["net.uai", "-o", "nowhere/a.MAR"], "a file in a directory that exists"),
    ],
)
def test_wrong_requests_end_with_one_line(folder, arguments, message):
    fails("infer", *arguments, cwd=folder, message=message)


def test_several_evidence_files_in_one_call(folder):
    files = ("--evidence", "wet.evid", "--evidence", "two.evid")
    shown = run("infer", "net.uai", *files, cwd=folder)
    blocks = shown.stdout.split("MAR\n")[1:]
    assert len(blocks) == 3
    assert blocks[0] == blocks[1] != blocks[2]
    assert "two.2: Exact" in shown.stderr
    for _ in range(2):  # the directory is made, or is there
        run("infer", "net.uai", *files, "-o", "answers", cwd=folder)
    assert sorted(path.name for path in (folder / "answers").iterdir()) == ["two.1.MAR", "two.2.MAR", "wet.MAR"]
    assert read_marginals(folder / "answers" / "two.2.MAR")[2].tolist() == [1.0, 0.0]
    cases = json.loads(run("infer", "net.uai", *files, "--json", cwd=folder).stdout)["cases"]
    assert [case["evidence"] for case in cases] == ["wet", "two.1", "two.2"]


@pytest.mark.parametrize("model", ["net.uai", "net.tb", "circuit.tb"])
def test_the_tasks_of_uai(folder, model):
    word, value = run("infer", model, "--evidence", "wet.evid", "--task", "PR", cwd=folder).stdout.split()
    assert (word, float(value)) == ("PR", pytest.approx(np.log10(27 / 64), abs=1e-12))
    word, count, *states = run("infer", model, "--evidence", "wet.evid", "--task", "mpe", cwd=folder).stdout.split()
    rows, logs = most_probable(compile_circuit(zoo.sprinkler()), np.array([[-1, -1, 1]]))
    assert (word, count, [int(state) for state in states]) == ("MPE", "3", rows[0].tolist())
    found = json.loads(run("infer", model, "--evidence", "wet.evid", "--task", "MPE", "--json", cwd=folder).stdout)
    assert found["log_probability"] == pytest.approx(logs[0], abs=1e-12)


def test_what_inference_takes(folder):
    for model, methods in (
        ("net.uai", ["circuit", "join-tree", "tied"]),
        ("pair.uai", ["circuit", "join-tree", "tied"]),
    ):
        found = json.loads(run("info", model, "--inference", "--json", cwd=folder).stdout)["inference"]
        assert [cost["method"] for cost in found] == methods
        assert all(cost["fits"] and 0 < cost["bytes"] < 1e9 for cost in found)
    shown = run("info", "circuit.tb", "--inference", cwd=folder).stdout
    for words in ("Inference", "circuit", "about", "yes"):
        assert words in shown
