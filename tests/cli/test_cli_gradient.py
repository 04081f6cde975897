"""`tinybayes fit --training hybrid`: its options, and what an interrupt leaves."""

import json
import os
import signal
from dataclasses import fields

import pytest
from sklearn.datasets import load_digits, load_iris

from cli_host import fails, run
from tinybayes import load
from tinybayes.deploy.files.native import load_metadata
from tinybayes.learn import HybridOptions, hybrid, naive_bayes
from tinybayes.learn import classifier as by_name
from tinybayes.learn.training.tables import TableRun

FIT = ("fit", "iris.csv", "--target", "species", "-o", "m.tb")
HYBRID = (*FIT, "--training", "hybrid", "--structure", "naive", "--epochs", "2", "--input-noise", "0", "--gamma", "10")


@pytest.fixture
def place(tmp_path):
    load_iris(as_frame=True).frame.rename(columns={"target": "species"}).to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path


@pytest.fixture
def given(monkeypatch):
    """The options that reach training by gradient, which is left out."""
    seen = []

    def stop(encodings, structure, options, number_format, seed, report):
        seen.append(options)
        return by_name.maximum_likelihood(encodings[0], naive_bayes(encodings[0]))

    monkeypatch.setattr(by_name, "learn_hybrid", stop)
    return seen


def test_every_option_has_the_default_of_the_library(place, given):
    run(*FIT, "--training", "hybrid", cwd=place)
    assert given == [HybridOptions()]


def test_every_option_reaches_the_training(place, given):
    wanted = HybridOptions(
        n_candidates=3,
        bits=(3, -1),
        size_penalty=0.5,
        structure_noise=0.25,
        input_noise=0.25,
        noise_reach=1.5,
        noise_end=0.5,
        sharing=0.5,
        structure_rate=0.125,
        lam=2.0,
        gamma=3.0,
        eta=4.0,
        conditional=0.75,
        epochs=5,
        learning_rate=0.25,
        batch_size=7,
        n_configs=2,
        early_stopping=True,
        validation_fraction=0.25,
        image_shape=(1, 4),
        ordering="A",
        device="cpu",
        deterministic=True,
    )
    assert all(getattr(wanted, f.name) != f.default for f in fields(wanted))
    options = (
        "--n-candidates 3 --bits 3,-1 --size-penalty 0.5 --structure-noise 0.25 --sharing 0.5"
        " --input-noise 0.25 --noise-reach 1.5 --noise-end 0.5"
        " --structure-rate 0.125 --lam 2 --gamma 3 --eta 4 --conditional 0.75 --epochs 5"
    )
    options += " --learning-rate 0.25 --batch-size 7 --n-configs 2 --early-stopping --validation-fraction 0.25"
    options += " --image-shape 1x4 --ordering A --device cpu --deterministic"
    run(*FIT, "--training", "hybrid", *options.split(), cwd=place)
    assert given == [wanted]


@pytest.mark.parametrize(("text", "bits"), [("4", 4), ("3,1", (3, 1)), ("12,0", (12, 0)), ("3,-2", (3, -2))])
def test_bits_are_a_number_or_a_pair(place, given, text, bits):
    run(*HYBRID, "--bits", text, cwd=place)
    assert given[0].bits == bits


@pytest.mark.parametrize("text", ["", "3.1", "3,", ",1", "3,1,1", "four", "-4", "3, 1", "4 ", "٤", "9" * 5000])
def test_other_bits_are_refused(place, text):
    fails(*HYBRID, f"--bits={text}", cwd=place, message="--bits: expected a number of bits such as 4, or those before")


@pytest.mark.parametrize("text", ["", "8", "8x", "x8", "8,8", "0x8", "-8x8", "8x8x8", "8X8", "9" * 5000 + "x1"])
def test_bad_shapes_of_images_are_refused(place, text):
    fails(*HYBRID, f"--image-shape={text}", cwd=place, message="--image-shape: expected rows and columns such as 28x28")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bits", "0"), "bits: expected 1 to 16 bits"),
        (("--bits", "3,40"), "Fixed(3, 40): expected 1 to 32 bits"),
        (("--structure-noise", "1"), "--structure-noise: expected at least 0, below 1"),
        (("--early-stopping", "--validation-fraction", "1"), "--validation-fraction: expected above 0, below 1"),
        (("--batch-size", "0"), "--batch-size: expected at least 1"),
        (("--eta", "0"), "--eta: expected above 0"),
        (("--structure", "heuristic", "--image-shape", "3x3"), "expected an image of 4 pixels, got (3, 3)"),
        (("--structure", "heuristic", "--ordering", "Z"), "--ordering: expected one of A, B, C, got 'Z'"),
    ],
)
def test_bad_values_are_refused(place, options, message):
    fails(*HYBRID, *options, cwd=place, message=message)


def test_smoothing_belongs_to_maximum_likelihood(place):
    message = "--smoothing: expected no smoothing with --training hybrid, got 1.0; it belongs to training ml"
    fails(*HYBRID, "--smoothing", "1", cwd=place, message=message)
    run(*FIT, cwd=place)
    plain = load(place / "m.tb")
    assert load_metadata(place / "m.tb")["trained"]["smoothing"] == 1.0
    run(*FIT, "--smoothing", "1", cwd=place)
    assert load(place / "m.tb") == plain
    run(*FIT, "--smoothing", "5", cwd=place)
    assert load(place / "m.tb") != plain


@pytest.mark.parametrize("option", [("--structure-noise", "0.1"), ("--early-stopping",), ("--image-shape", "1x4")])
def test_options_of_training_by_gradient_need_it(place, option):
    name = option[0][2:].replace("-", "_")
    fails(*FIT, *option, cwd=place, message=f"expected no options of training by gradient, got {name}; use training")


@pytest.mark.exhaustive
def test_images_on_the_command_line(tmp_path):
    frame = load_digits(as_frame=True).frame.iloc[:300]
    frame.drop(columns=[c for c in frame if c.startswith("pixel_7")]).to_csv(tmp_path / "d.csv", index=False)
    shape = (
        "--structure",
        "heuristic",
        "--image-shape",
        "7x8",
        "--ordering",
        "A",
        "--n-candidates",
        "1",
        "--bits",
        "3,1",
    )
    train = ("--training", "hybrid", "--epochs", "3", "--structure-noise", "0.1", "--early-stopping")
    shown = run("fit", "d.csv", "--target", "target", "-o", "m.tb", *train, *shape, cwd=tmp_path).stdout
    assert "Learned heuristic from 300 rows" in shown
    net = load(tmp_path / "m.tb")
    assert str(net.cpds[0].format) == "fixed3.1"
    above = {f"p{i}": net.nodes[c.parents[0]].name for i, c in enumerate(net.cpds[:-1]) if len(c.parents) == 2}
    for child, parent in above.items():  # row by row, the nearest earlier pixel is the one to the left or above
        r, c = divmod(int(child[1:]), 8)
        assert parent == (f"pixel_{r - 1}_0" if c == 0 else f"pixel_{r}_{c - 1}") or parent == f"pixel_{r - 1}_{c}"


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C during the second compiled call of every training."""
    calls = []
    advance = TableRun.advance

    def press(run, epochs):
        calls.append(epochs)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(run, epochs)

    monkeypatch.setattr(TableRun, "advance", press)
    return calls


def test_an_interrupt_saves_what_was_learned_and_says_so(place, interrupted):
    before = signal.getsignal(signal.SIGINT)
    done = run(*HYBRID, "--epochs", "5000", cwd=place, code=130)
    assert len(interrupted) == 2
    assert done.stderr.count("\n") == 1
    assert "Training was cut short by an interrupt after 2 of 15,000 epochs" in done.stderr
    assert "Saved to m.tb" in done.stdout
    assert load_metadata(place / "m.tb")["trained"]["complete"] is False
    assert signal.getsignal(signal.SIGINT) is before
    figures = json.loads(run("evaluate", "m.tb", "iris.csv", "--json", cwd=place).stdout)
    assert figures["rows"] == 150


def test_an_interrupt_in_numbers_for_machines(place, interrupted):
    done = run(*HYBRID, "--epochs", "5000", "--early-stopping", "--json", cwd=place, code=130)
    figures = json.loads(done.stdout)
    assert figures["complete"] is False
    assert figures["output"] == "m.tb"
    assert "cut short" in done.stderr


def test_an_interrupt_between_two_trainings_is_not_a_complete_one(place, monkeypatch):
    """Settings are trained to their end when it comes; the training on all rows is left out."""
    train = hybrid._train

    def interrupted_at_its_end(*arguments):
        results = train(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return results

    monkeypatch.setattr(hybrid, "_train", interrupted_at_its_end)
    done = run(*HYBRID, "--bits", "3", "--json", cwd=place, code=130)
    assert json.loads(done.stdout)["complete"] is False
    assert "after 2 of 6 epochs" in done.stderr


def test_a_training_that_is_not_interrupted_is_complete(place):
    done = run(*HYBRID, "--json", cwd=place)
    figures = json.loads(done.stdout)
    assert figures["complete"] is True
    assert "smoothing" not in figures
    assert done.stderr == ""
    assert load_metadata(place / "m.tb")["trained"]["complete"] is True
    assert "complete" not in json.loads(run(*FIT, "--json", cwd=place).stdout)


def test_an_interrupt_before_the_training_saves_nothing(place, monkeypatch):
    monkeypatch.setattr(hybrid, "naive_bayes", lambda data: os.kill(os.getpid(), signal.SIGINT))
    run(*HYBRID, cwd=place, code=130)
    assert not (place / "m.tb").exists()


def test_the_figures_are_those_of_the_chosen_encoding(place):
    done = run(*FIT, "--training", "hybrid", "--structure", "naive", "--epochs", "20", "--json", cwd=place)
    figures = json.loads(done.stdout)
    again = json.loads(run("evaluate", "m.tb", "iris.csv", "--json", cwd=place).stdout)
    assert figures["discretizer"] == "auto"
    assert figures["training_error"] == again["error"] < 0.2
