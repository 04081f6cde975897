"""What makes the command line pleasant: one screen of help, silence on demand, near matches, next steps."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import tinybayes.cli
import tinybayes.deploy
from cases import WHOLE
from cli_host import fails, run
from tinybayes.cli import COMMANDS
from tinybayes.errors import near

COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38;[25])")
NAMES = [command.__name__.replace("_", "-") for commands in COMMANDS.values() for command, _, _ in commands]


def process(*arguments, cwd, **environment):
    """Run the command line as a process of its own, without what the terminal of the tests says about colours."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    command = [sys.executable, "-m", "tinybayes", *arguments]
    done = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_tells_the_story_in_one_screen(tmp_path):
    shown = run("--help", cwd=tmp_path).stdout
    assert len(shown.splitlines()) < 50
    places = [shown.index(f"─ {panel} ─") for panel in ("Learn", "Ask", "Ship", "See")]
    assert places == sorted(places)
    assert shown.index("learned under a price") < shown.index("1. demo") < shown.index("3. Or query") < places[0]
    for name in NAMES:
        assert re.search(rf"^│ {name} ", shown, re.MULTILINE), name
    assert "Exit codes: 0 done, 2 bad input, 3 no model keeps the limits, 130 interrupted" in shown


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_and_can_be_quiet(tmp_path, name):
    shown = run(name, "--help", cwd=tmp_path).stdout
    assert f"Example: tinybayes {name}" in shown
    assert "--quiet" in shown
    assert "--json" in shown or name == "serve"


def test_quiet_leaves_answers_and_errors(place):
    for words in (
        ("fit", "train.csv", "--target", "species", "-o", "quiet.tb"),
        ("evaluate", "quiet.tb", "test.csv"),
        ("predict", "quiet.tb", "test.csv", "-o", "quiet.csv"),
        ("info", "quiet.tb"),
        ("tie", "quiet.tb", "-o", "quiet_tied.tb"),
        ("convert", "quiet.tb", "quiet.bif"),
        ("export", "quiet.tb", "-o", "quiet"),
        ("explain", "quiet.tb", "test.csv"),
    ):
        loud = run(*words, cwd=place).stdout
        assert loud.strip()
        for silent in (run(*words, "--quiet", cwd=place), run("-q", *words, cwd=place)):
            assert not silent.stdout
            assert not silent.stderr
        assert run(*words, cwd=place).stdout == loud, "the silence of one command reached the next"
    assert json.loads(run("evaluate", "quiet.tb", "test.csv", "--json", "-q", cwd=place).stdout)["rows"] == 75
    answer = run("query", "quiet.tb", "species=setosa", "-q", cwd=place)
    assert re.fullmatch(r"P\(species=setosa\) = 0\.\d+\n", answer.stdout)
    assert not answer.stderr
    fails("evaluate", "quiet.tb", "nowhere.csv", "--quiet", cwd=place, message="nowhere.csv")


@WHOLE
@pytest.mark.exhaustive
def test_no_color_is_honoured(place):
    words = ("fit", "--help")
    assert COLOUR.search(process(*words, cwd=place, FORCE_COLOR="1", TERM="xterm-256color"))
    assert not COLOUR.search(process(*words, cwd=place, FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1"))
    assert "\x1b" not in process(*words, cwd=place)


def test_the_shell_completes_commands(tmp_path):
    request = {"_TINYBAYES_COMPLETE": "complete_bash", "COMP_WORDS": "tinybayes exp", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from tinybayes.cli import app; app(prog_name='tinybayes')"],
        env=os.environ | request,
        capture_output=True,
        text=True,
    )
    assert set(done.stdout.split()) == {"explore", "explain", "export"}


def test_near_names_are_suggested(place):
    fit = ("fit", "train.csv", "-o", "m.tb")
    fails(*fit, "--target", "Specis", cwd=place, message="did you mean 'species'?")
    fails(*fit, "--target", "species", "--drop", "petal width", cwd=place, message="did you mean 'petal width (cm)'?")
    fails("explore", "train.csv", "--target", "spcies", "-o", "s", cwd=place, message="did you mean 'species'?")
    fails("fit", "trian.csv", "--target", "y", "-o", "m.tb", cwd=place, message="did you mean 'train.csv'?")
    fails("query", "iris.tb", "specis=setosa", cwd=place, message="did you mean 'species'?")
    fails("query", "iris.tb", "species=setossa", cwd=place, message="did you mean 'setosa'?")
    fails(
        "convert", "iris.tb", "o.tb", "--target", "petal width", cwd=place, message="did you mean 'petal width (cm)'?"
    )
    assert "explore" in run("explor", cwd=place, code=2).stderr
    assert near("zz", ["species", "petal"]) == ""


def test_each_command_says_what_to_try_next(place):
    name = "my model.tb"
    steps = (
        (("fit", "train.csv", "--target", "species", "-o", name), ["evaluate", name, "TEST_TABLE"]),
        (("evaluate", name, "test.csv"), ["export", name, "--to", "c", "-o", "firmware"]),
        (("predict", name, "test.csv", "-o", "next.csv"), ["explain", name, "test.csv", "--row", "1"]),
        (("info", name), ["evaluate", name, "TEST_TABLE"]),
        (("tie", name, "-o", "t.tb"), ["export", "t.tb", "--to", "c", "-o", "firmware"]),
        (("explain", name, "test.csv"), ["export", name, "--to", "c", "-o", "firmware"]),
        (("plot", name, "--figure", "structure", "-o", "next.svg"), ["export", name, "--to", "c", "-o", "firmware"]),
        (("convert", name, "next.bif"), ["info", "next.bif"]),
        (("learn-circuit", "train.csv", "-o", "c.tb"), ["query", "c.tb"]),
    )
    for words, expected in steps:
        said = run(*words, cwd=place).stdout.partition("Now try: tinybayes ")[2].splitlines()[0]
        assert shlex.split(said)[: len(expected)] == expected


def test_an_interrupt_is_the_exit_code_130(place, monkeypatch):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(tinybayes.deploy, "read_classifier", interrupted)
    run("info", "iris.tb", cwd=place, code=130)


def test_the_directory_of_a_search_stands_for_the_chosen_model(place, tmp_path):
    (tmp_path / "models").mkdir()
    shutil.copy(place / "iris.tb", tmp_path / "models" / "a1.tb")
    model = {"id": "a1", "family": "naive", "label": "naive", "bits": 8, "bytes": 1, "operations": 12, "parameters": 1}
    front = {"chosen": "a1", "models": [{**model, "multiplications": 0, "file": "models/a1.tb"}]}

    def write(found):
        (tmp_path / "front.json").write_text(json.dumps(found))

    write(front)
    here = run("evaluate", tmp_path, "test.csv", "--json", cwd=place).stdout
    assert here == run("evaluate", "iris.tb", "test.csv", "--json", cwd=place).stdout
    run("export", ".", "-o", "firmware", cwd=tmp_path)
    assert (tmp_path / "firmware" / "model.c").is_file()
    write(front | {"chosen": None})
    fails("info", ".", cwd=tmp_path, message="expected a search that has chosen a model")
    front["models"][0]["file"] = "../elsewhere.tb"
    write(front)
    fails("info", ".", cwd=tmp_path, message="expected a file below the directory")
    (tmp_path / "front.json").unlink()
    fails("info", ".", cwd=tmp_path, message="tinybayes explore")


def test_an_interrupt_while_the_command_is_looked_up_is_no_traceback(monkeypatch, capfd):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(tinybayes.cli, "app", stopped)
    with pytest.raises(SystemExit) as ended:
        tinybayes.cli.main()
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "")
