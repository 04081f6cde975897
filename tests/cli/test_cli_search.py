"""The commands around a search: help that is whole, arguments that are checked first, exports of any model."""

import json

import pandas as pd

import zoo
from cli_host import fails, run
from tinybayes import quantize, save
from tinybayes.model import Fixed


def test_help_is_whole_and_flags_have_no_type(tmp_path):
    text = run("explore", "--help", cwd=tmp_path).stdout
    assert "<bool>" not in text
    words = " ".join(text.replace("│", " ").split())
    families = "naive, tan, subset, dense, conv, closed-form, tied, circuit, tree, forest, boosted"
    assert families in words
    assert "--trials" in text
    assert "--all" in text
    assert "<bool>" not in run("--help", cwd=tmp_path).stdout


def test_arguments_are_checked_before_the_search_is_announced(tmp_path):
    pd.DataFrame({"a": [0, 1] * 30, "kind": ["x", "y"] * 30}).to_csv(tmp_path / "t.csv", index=False)
    for more, code, message in [
        (["--target", "other"], 2, "other"),
        (["--target", "kind", "--families", "naiv"], 2, "naiv"),
        (["--target", "kind", "--budget", "1B"], 3, "budget"),
        (["--target", "kind", "--image-shape", "3"], 2, "rows and columns"),
        (["--target", "kind", "--trials", "0"], 2, "trials"),
    ]:
        done = run("explore", "t.csv", *more, "-o", "search", cwd=tmp_path, code=code)
        assert "Searching" not in done.stdout, more
        assert message in done.stderr, more


def test_any_model_of_a_search_is_exported(tmp_path):
    (tmp_path / "search" / "models").mkdir(parents=True)
    nets = {"a": quantize(zoo.naive_bayes(), Fixed(3, 1)), "b": quantize(zoo.tan(), Fixed(3, 1))}
    entries = []
    for key, net in nets.items():
        save(net, tmp_path / "search" / "models" / f"{key}.tb")
        entries.append({"id": key, "bits": 8, "file": f"models/{key}.tb", "validation_error": 0.1})
    entries.append({"id": "gone", "bits": 8, "file": None})
    (tmp_path / "search" / "front.json").write_text(json.dumps({"models": entries, "chosen": "a"}))
    for more, key in ((["--model", "b"], "b"), ([], "a")):
        run("export", "search", *more, "--to", "javascript", "-o", key, cwd=tmp_path)
        run("export", f"search/models/{key}.tb", "--to", "javascript", "-o", f"{key}2", cwd=tmp_path)
        assert (tmp_path / key / "model.js").read_bytes() == (tmp_path / f"{key}2" / "model.js").read_bytes()
    assert (tmp_path / "a" / "model.js").read_bytes() != (tmp_path / "b" / "model.js").read_bytes()
    fails("export", "search", "--model", "gone", "-o", "x", cwd=tmp_path, message="a model that was kept: a, b")
    fails("export", "search/models/a.tb", "--model", "b", "-o", "x", cwd=tmp_path, message="the directory of a search")
