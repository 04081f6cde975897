"""Commands on hostile models and options: what is impossible is a sentence, and no name steers the terminal."""

import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cli_host import fails, run
from tinybayes import BayesNet, TinybayesError, Variable, save
from tinybayes.model import CPD, Float
from tinybayes.search.explore import explore

STEERING = "\x1b]0;owned\x07\x9b2J\u202e"


def impossible(name="rain", state="no"):
    """A network in which a state rules out a class."""
    with np.errstate(divide="ignore"):
        rain = np.log(np.array([[0.5, 0.5], [1.0, 0.0]]))
        clouds = np.log(np.array([[0.3, 0.7], [0.6, 0.4]]))
        wet = np.log(np.array([[0.5, 0.5]]))
    cpds = tuple(CPD(p, t, Float(64)) for p, t in (((2,), rain), ((2,), clouds), ((), wet)))
    features = Variable(name, (state, "yes")), Variable("clouds", ("few", "many"))
    return BayesNet(features, Variable("wet", ("wet", "dry")), cpds)


def test_explain_says_what_is_impossible(tmp_path):
    save(impossible(), tmp_path / "net.tb")
    pd.DataFrame({"rain": ["yes"], "clouds": ["few"]}).to_csv(tmp_path / "rows.csv", index=False)
    shown = run("explain", "net.tb", "rows.csv", cwd=tmp_path).stdout
    assert "dry is impossible, and its log-odds are infinite: with it, rain = yes cannot happen." in shown
    assert "+inf" in shown
    run("explain", "net.tb", "rows.csv", "--limit", "0", cwd=tmp_path)
    assert '"total": null' in run("explain", "net.tb", "rows.csv", "--json", cwd=tmp_path).stdout


def test_no_name_steers_the_terminal_or_a_header(tmp_path):
    name, state = f"rain{STEERING}", f"no{STEERING}"
    save(impossible(name, state), tmp_path / "net.tb")
    pd.DataFrame({name: [state], "clouds": ["few"]}).to_csv(tmp_path / "rows.csv", index=False)
    said = [
        run("info", "net.tb", cwd=tmp_path),
        run("explain", "net.tb", "rows.csv", cwd=tmp_path),
        run("query", "net.tb", "| clouds=few", "--marginals", cwd=tmp_path),
        run("explain", "net.tb", "rows.csv", "--against", f"x{STEERING}", cwd=tmp_path, code=2),
        run("export", "net.tb", "--to", "c", "-o", "code", cwd=tmp_path),
    ]
    for one in said:
        assert not set(one.stdout + one.stderr) & set(STEERING) - set("]0;owned2J")
    assert any("\\x1b]0;owned" in one.stdout for one in said)
    for file in (tmp_path / "code").iterdir():
        assert not set(file.read_text()) & {"\x1b", "\x07", "\x9b", "\u202e"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--max-error", "nan"), "--max-error: expected error from 0 to 1"),
        (("--max-ops", "-1"), "operations: expected at least 1"),
        (("--max-feature-cost", "nan"), "features: expected a cost of at least 0"),
        (("--seed", "-1"), "--seed: expected an integer from 0 to 4294967295"),
        (("--seed", str(2**32)), "--seed: expected an integer from 0 to 4294967295"),
        (("--trials", "1" + "0" * 400), "trials: expected 1 to 1,000,000,000"),
        (("--workers", "1" + "0" * 400), "--workers: expected an integer up to 4096, got one of 1,329 bits"),
    ],
)
def test_numbers_that_mean_nothing(tmp_path, given, message):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,v\n")
    fails("explore", "t.csv", "--target", "y", "-o", "out", "--time", "2s", *given, cwd=tmp_path, message=message)


@pytest.mark.parametrize("taken", ["models", "trials"])
def test_a_file_where_a_search_needs_a_directory(tmp_path, taken):
    (tmp_path / taken).write_text("a file")
    with pytest.raises(TinybayesError, match=f"{taken}: expected a directory"):
        explore(load_iris(as_frame=True).frame, "target", output=tmp_path, seconds=2, families="tree")


def test_a_directory_that_is_removed_in_mid_run(tmp_path):
    folder = tmp_path / "search"

    def remove(state):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(TinybayesError, match="search"):
        explore(load_iris(as_frame=True).frame, "target", output=folder, seconds=2, families="tree", report=remove)


def test_paths_that_cannot_be_looked_up(tmp_path):
    """A name that is too long, or links in a circle: as in a directory of others, nobody can say what is there."""
    (tmp_path / "t.csv").write_text("a,y\n" + "1,u\n2,v\n" * 9)
    (tmp_path / "round").symlink_to("round")
    run("fit", "t.csv", "--target", "y", "-o", "m.tb", cwd=tmp_path)
    explored = ["explore", "t.csv", "--target", "y", "--time", "1s", "-o"]
    for path in ("x" * 300, "round/x.csv"):
        for command in (
            ["fit", path, "--target", "y", "-o", "new.tb"],
            ["fit", "t.csv", "--target", "y", "-o", path],
            ["info", path],
            ["export", "m.tb", "--to", "c", "-o", path],
            ["plot", path, "--figure", "structure", "-o", "f.svg"],
            ["infer", "m.tb", "-o", path],
            ["serve", path],
            ["learn-circuit", "t.csv", "-o", "c.tb", "--checkpoint", path],
            [*explored, "new", "--class-weight", path],
        ):
            fails(*command, cwd=tmp_path, message=": expected a path that can be looked up, got ")
        fails(*explored, path, cwd=tmp_path, message="expected a directory to write to, got ")
