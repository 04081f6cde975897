"""Model files of LightGBM and XGBoost: the scores of the libraries, and damaged files."""

import json
import re
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes import export, load, model_cost, predict_codes, save
from tinybayes.compress.trees import tie_leaves
from tinybayes.data.encode import encode_frame
from tinybayes.deploy.imports.ensemble import make_ensemble
from tinybayes.deploy.imports.foreign import ForeignTree
from tinybayes.deploy.imports.lightgbm import read_lightgbm
from tinybayes.deploy.imports.xgboost import read_xgboost
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Categories, TreeEnsemble, Variable

MODELS = Path(__file__).parent / "models"
FILES = sorted(path for path in MODELS.iterdir() if path.suffix in (".txt", ".json") and ".rows" not in path.name)


def rows_of(path):
    content = json.loads((MODELS / f"{path.stem}.rows.json").read_text())
    return pd.DataFrame(content["columns"]), np.array(content["scores"])


def raw_scores(model, frame):
    scores = class_scores(model, encode_frame(frame, model.variables))
    return scores, scores[:, 1] - scores[:, 0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scores_are_those_of_the_library(path):
    model, (frame, wanted) = load(path), rows_of(path)
    frame = frame.rename(columns=dict(zip(frame.columns, [v.name for v in model.variables], strict=True)))
    scores, odds = raw_scores(model, frame)
    error = model.scale * (model.trees.count + 1)
    np.testing.assert_allclose(odds if wanted.ndim == 1 else scores, wanted, atol=error)
    assert error < 1e-3
    label = (wanted > 0).astype(int) if wanted.ndim == 1 else wanted.argmax(axis=1)
    assert (predict_codes(model, encode_frame(frame, model.variables)) == label).mean() > 0.97


def test_categories_are_texts_or_numbers():
    for library in ("lightgbm", "xgboost"):
        suffix = ".txt" if library == "lightgbm" else ".json"
        by_name = {v.name: v for v in load(MODELS / f"{library}_text{suffix}").variables}
        assert by_name["colour"].states == ("blue", "green", "grey", "red")
        model = load(MODELS / f"{library}_categories{suffix}")
        numbers = next(v for v in model.variables if v.name == "c")
        assert isinstance(numbers.encoding, Categories)
        assert numbers.states == tuple(range(40))
        assert model.trees.is_set.any()


def test_few_bits_and_few_values():
    path = MODELS / "lightgbm_binary.txt"
    frame, wanted = rows_of(path)
    coarse = read_lightgbm(path, bits=6)
    assert np.abs(coarse.values).max() == 31
    np.testing.assert_allclose(raw_scores(coarse, frame)[1], wanted, atol=0.5 * coarse.scale * (coarse.trees.count + 1))
    assert np.abs(read_xgboost(MODELS / "xgboost_binary.json", bits=8).values).max() == 127
    model = load(path)
    codes = encode_frame(frame, model.variables)
    tied = tie_leaves(model, 4, frame)
    assert len(tied.values) <= 4
    assert (predict_codes(tied, codes) == predict_codes(model, codes)).mean() > 0.9
    assert model_cost(tied).bytes < model_cost(model).bytes
    with pytest.raises(TinybayesError, match="bits"):
        read_lightgbm(path, bits=1)


def test_files_are_read_only_and_saved_as_native_ones(tmp_path):
    model = load(MODELS / "xgboost_multiclass.json")
    assert isinstance(model, TreeEnsemble)
    save(model, tmp_path / "trees.tb")
    codes = encode_frame(rows_of(MODELS / "xgboost_multiclass.json")[0], model.variables)
    np.testing.assert_array_equal(class_scores(load(tmp_path / "trees.tb"), codes), class_scores(model, codes))
    for name in ("trees.json", "trees.txt"):
        with pytest.raises(TinybayesError, match=r"\.tb"):
            save(model, tmp_path / name)
    assert "model.c" in export(model)


def test_trees_without_tests_are_part_of_the_first_scores():
    """Values of nodes that have a test count for nothing, wherever that test is."""
    leaf = ForeignTree(*map(np.array, ([-1], [0.0], [-1], [-1], [False], [[0.5]])), output=0)
    parts = [0, -1, -1], [2.0, 0, 0], [1, -1, -1], [2, -1, -1], [True, False, False], [[9.0], [0.25], [-0.5]]
    tree = ForeignTree(*map(np.array, parts), output=1)
    target = Variable("y", ("a", "b"))
    model = make_ensemble([leaf, tree], [("x", None)], target, np.array([0.0, 0.125]), bits=10)
    assert model.trees.count == 1
    scores = model.scale * tree_scores(model, np.array([[0], [1]]))
    np.testing.assert_allclose(scores, [[0.5, 0.375], [0.5, -0.375]], atol=0.001)


def test_one_tree_without_a_test():
    leaf = ForeignTree(*map(np.array, ([-1], [0.0], [-1], [-1], [False], [[0.5]])), output=1)
    model = make_ensemble([leaf], [("x", None)], Variable("y", ("a", "b")), np.zeros(2))
    assert model.trees.output.tolist() == [1]
    np.testing.assert_allclose(model.scale * tree_scores(model, np.array([[0]])), [[0, 0.5]])


def test_a_feature_of_categories_that_no_tree_tests(tmp_path):
    content = json.loads((MODELS / "xgboost_categories.json").read_text())
    learner = content["learner"]
    learner["learner_model_param"]["num_feature"] = "5"
    learner["feature_names"].append("unused")
    learner["feature_types"].append("c")
    path = tmp_path / "unused.json"
    path.write_text(json.dumps(content))
    assert load(path).variables[-1].states == (0,)


def test_names_of_categories_end_with_their_line(tmp_path):
    text = (MODELS / "lightgbm_text.txt").read_text()
    path = tmp_path / "more.txt"
    path.write_text(f"{text.rstrip()}\nanother line\n")
    assert [v.states for v in load(path).variables] == [v.states for v in load(MODELS / "lightgbm_text.txt").variables]


def test_files_that_name_too_many_categories(tmp_path):
    text = (MODELS / "lightgbm_binary.txt").read_text()
    names = " ".join([*"abcd", *(f"n{i}" for i in range(100))])
    infos = " ".join(["[0:1]"] * 4 + ["65000"] * 100)
    for line in (f"feature_names={names}", f"feature_infos={infos}", "max_feature_idx=103"):
        text = re.sub(rf"{line.split('=')[0]}=[^\n]*", line, text, count=1)
    (tmp_path / "many.txt").write_text(text)
    with pytest.raises(FileError, match="categories in all"):
        load(tmp_path / "many.txt")


def test_listing_the_states_of_categories_is_not_begun_where_they_are_too_many(tmp_path, monkeypatch):
    """Texts of a few columns make lists of all: 100,000 columns in 2 MB would take 52 GB."""
    monkeypatch.setattr("tinybayes.deploy.imports.ensemble.MOST_STATES", 50)
    monkeypatch.setattr("tinybayes.deploy.imports.ensemble._check_sizes", lambda *_: None)  # later, on the lists
    for name in ("lightgbm_categories.txt", "xgboost_categories.json"):
        assert load(MODELS / name)
    monkeypatch.setattr("tinybayes.deploy.imports.ensemble.MOST_STATES", 5)
    for name in ("lightgbm_categories.txt", "xgboost_categories.json"):
        with pytest.raises(FileError, match="categories in all"):
            load(MODELS / name)


def chain(tmp_path, tests, **changed):
    """Write a file of one tree for LightGBM that tests its first feature again and again."""
    tree = {
        "num_leaves": tests + 1,
        "num_cat": 0,
        "split_feature": "0 " * tests,
        "threshold": "1 " * tests,
        "decision_type": "2 " * tests,
        "left_child": " ".join(str(-1 - i) for i in range(tests)),
        "right_child": " ".join(map(str, [*range(1, tests), -1 - tests])),
        "leaf_value": "1 " * (tests + 1),
    }
    head = (MODELS / "lightgbm_binary.txt").read_text().partition("Tree=0")[0]
    lines = [f"{name}={value}" for name, value in (tree | changed).items()]
    path = tmp_path / "chain.txt"
    path.write_text("\n".join([f"{head}Tree=0", *lines, "", "end of trees", ""]))
    return path


def test_numbers_of_a_file_take_no_more_than_their_own_space(tmp_path):
    """One long word made an array of texts where every other word was as long: 20,000 words of 80 kB in 140 kB."""
    path = chain(tmp_path, 20_000, threshold=f"0.{'5' * 80_000} " + "1 " * 19_999)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**31, hard))
    try:
        assert load(path).trees.count == 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_a_set_of_categories_belongs_to_one_test(tmp_path):
    sets = {"decision_type": "1 1", "num_cat": 2, "cat_boundaries": "0 1 2", "cat_threshold": "5 6"}
    assert load(chain(tmp_path, 2, threshold="0 1", **sets)).trees.is_set.sum() == 2
    with pytest.raises(FileError, match="a set for each test"):
        load(chain(tmp_path, 2, threshold="1 1", **sets))


def test_texts_of_categories_do_not_overlap(tmp_path):
    """Offsets that go back and forth would make any number of texts of a few bytes; the states are numbers then."""
    content = json.loads((MODELS / "xgboost_text.json").read_text())
    encodings = content["learner"]["gradient_booster"]["model"]["cats"]["enc"]
    encoding = next(one for one in encodings if one.get("offsets"))
    encoding["offsets"] = [0, len(encoding["values"])] * 3
    (tmp_path / "back.json").write_text(json.dumps(content))
    colour = next(v for v in load(tmp_path / "back.json").variables if v.name == "colour")
    assert all(isinstance(state, int) for state in colour.states)


def edited(tmp_path, name, old, new, count=1):
    text = (MODELS / name).read_text()
    assert re.search(old, text, re.DOTALL)
    path = tmp_path / name
    path.write_text(re.sub(old, new, text, count=count, flags=re.DOTALL))
    return path


LIGHTGBM_DAMAGE = [
    (r"version=v4", "nothing", "text model of LightGBM"),
    (r"end of trees.*", "", "text model of LightGBM"),
    (r"objective=[^\n]*", "objective=regression", "classifier"),
    (r"objective=[^\n]*", "", "objective"),
    (r"objective=[^\n]*", f"objective={'x' * 60}", "multiclassova, got x{40}$"),
    (r"sigmoid:1", "sigmoid:x", "a number"),
    (r"num_tree_per_iteration=1", "num_tree_per_iteration=0", "1 to"),
    (r"num_tree_per_iteration=1", "num_tree_per_iteration=65537", "1 to 65536"),
    (r"max_feature_idx=3", "max_feature_idx=7", "8 names"),
    (r"num_leaves=6", "num_leaves=5", "decision_type"),
    (r"num_leaves=6", "num_leaves=999999999", "num_leaves"),
    (r"left_child=\d+", "left_child=77", "children among"),
    (r"left_child=\d+", "left_child=0", "below"),
    (r"left_child=\S+ [^\n]*", "left_child=0 0 0 0 0", "below"),
    (r"left_child=2 4", "left_child=2 0", "below"),
    (r"left_child=\d+", "left_child=x", "integers"),
    (r"split_feature=\d+", "split_feature=9", "features below"),
    (r"split_feature=\d+", "split_feature=-7", "features from 0"),
    (r"threshold=\S+", "threshold=nan", "numbers"),
    (r"leaf_value=\S+", "leaf_value=inf", "numbers"),
    (r"is_linear=0", "is_linear=1", "linear"),
    (r"decision_type=\S+", "decision_type=4", "zero"),
    (r"cat_threshold=\S+", "cat_threshold=-4", "categories"),
    (r"cat_threshold=\S+", "cat_threshold=99999999999", "categories"),
    (r"cat_boundaries=0 2", "cat_boundaries=0 90000", "categories|90000"),
    (r"cat_boundaries=0 2", "cat_boundaries=0 16777216", "16777216 integers"),
    (r"cat_boundaries=0 2", "cat_boundaries=2 0", "boundaries"),
    (r"num_cat=1", "num_cat=0", "sets"),
    (r"decision_type=(\S+ \S+) 9", r"decision_type=\1 8", "threshold"),
    (r"pandas_categorical:null", "pandas_categorical:[", "JSON"),
]


@pytest.mark.parametrize(("old", "new", "message"), LIGHTGBM_DAMAGE)
def test_damaged_files_of_lightgbm(tmp_path, old, new, message):
    with pytest.raises(FileError, match=message):
        load(edited(tmp_path, "lightgbm_categories.txt", old, new))


XGBOOST_DAMAGE = [
    (r'"learner"', '"other"', "learner"),
    (r'"name":"binary:logistic"', '"name":"reg:squarederror"', "classifier"),
    (r'"num_class":"0"', '"num_class":"3"', "classes"),
    (r'"num_class":"0"', '"num_class":"x"', "integer"),
    (r'"num_feature":"4","num_target"', '"num_feature":"5","num_target"', "5 names"),
    (r'"num_class":"0"', '"num_class":"99999999"', "integer"),
    (r'"base_score":"[^"]*"', '"base_score":"[2]"', "probability"),
    (r'"base_score":"[^"]*"', '"base_score":"[0.5,0.5]"', "1 numbers"),
    (r'"base_score":"[^"]*"', '"base_score":"x"', "numbers"),
    (r'"name":"gbtree"', '"name":"gblinear"', "gbtree"),
    (r'"tree_info":\[0', '"tree_info":[5', "class"),
    (r'"left_children":\[1,', '"left_children":[99,', "children among"),
    (r'"left_children":\[1,', '"left_children":[0,', "below"),
    (r'"left_children":\[1,', '"left_children":[', "as many entries"),
    (r'"left_children":\[1,', '"left_children":[1.5,', "left_children"),
    (r'"right_children":\[\d+,', '"right_children":[-1,', "children among"),
    (r'"split_indices":\[\d+,', '"split_indices":[99,', "features below"),
    (r'"split_indices":\[\d+,', '"split_indices":[-1,', "features from 0"),
    (r'"split_conditions":\[[^,]*,', f'"split_conditions":[1{"0" * 400},', "a double holds"),
    (r'"categories_segments":\[0', '"categories_segments":[-1', "one after another"),
    (r'"categories_sizes":\[\d+', '"categories_sizes":[99', "one after another"),
    (r'"split_conditions":\[[^,]*,', '"split_conditions":[1e999,', "JSON"),
    (r'"size_leaf_vector":"1"', '"size_leaf_vector":"3"', "one value"),
    (r'"categories":\[0', '"categories":[99999999', "categories below"),
    (r'"categories":\[0', '"categories":[65536', "categories below"),
    (r'"categories_nodes":\[\d+', '"categories_nodes":[14', "a set for each"),
    (r'"split_type":\[0,', '"split_type":[1,', "a set for each"),
]


@pytest.mark.parametrize(("old", "new", "message"), XGBOOST_DAMAGE)
def test_damaged_files_of_xgboost(tmp_path, old, new, message):
    with pytest.raises(FileError, match=message):
        load(edited(tmp_path, "xgboost_categories.json", old, new))


@given(st.sampled_from(FILES), st.integers(0, 10**6), st.text("0123456789-.,=[]{}\n aeE", max_size=6))
def test_hostile_files_raise_file_errors(tmp_path_factory, path, at, change):
    text = path.read_text()
    at %= len(text)
    hostile = tmp_path_factory.mktemp("hostile") / path.name
    hostile.write_text(text[:at] + change + text[at + max(1, len(change)) :])
    try:
        model = load(hostile)
    except FileError:
        return
    assert isinstance(model, TreeEnsemble)
