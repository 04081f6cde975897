"""Tree ensembles in the native model file: every number comes back, and nothing in a file is trusted."""

import tracemalloc
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load as load_tensors
from test_native_hostile import wrong

from mutate import ModelFiles, opened, sealed
from networks import every_state
from tinybayes.cost import model_cost
from tinybayes.deploy import load, read_classifier, read_distribution, read_joint, read_network, save
from tinybayes.deploy.files.native import load_metadata, model_id
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Cuts, TreeEnsemble, Variable
from tree_ensembles import kinds, tree_ensemble

NODES = ("feature", "threshold", "child", "missing", "members", "root", "output")


def same(a, b):
    assert (a.variables, a.target, a.scale) == (b.variables, b.target, b.scale)
    for name in NODES:
        np.testing.assert_array_equal(getattr(a.trees, name), getattr(b.trees, name))
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.start, b.start)


def check_round_trip(model, directory):
    first, second = directory / "first.tb", directory / "second.tb"
    save(model, first, metadata={"by": "chance"})
    back = load(first)
    assert isinstance(back, TreeEnsemble)
    same(replace(model, trees=_without_columns(model.trees)), back)
    X = every_state(model, rows=9)
    np.testing.assert_array_equal(tree_scores(model, X), tree_scores(back, X))
    assert load_metadata(first) == {"by": "chance"}
    assert model_id(back) == model_id(model)
    save(back, second, metadata={"by": "chance"})
    assert first.read_bytes() == second.read_bytes()


def _without_columns(trees):
    """A table of sets without any has no columns in a file."""
    return trees if len(trees.members) else replace(trees, members=np.zeros((0, 0), dtype=bool))


@pytest.mark.parametrize("key", kinds())
def test_saved_trees_come_back(key, tmp_path):
    check_round_trip(kinds()[key], tmp_path)


@given(data=st.data())
def test_any_ensemble_comes_back(data, tmp_path_factory):
    model = tree_ensemble(
        data.draw(st.integers(1, 5)),
        leaves=data.draw(st.integers(1, 9)),
        kind=data.draw(st.sampled_from(["class", "all", "votes"])),
        sets=data.draw(st.sampled_from([0, 0.5, 1])),
        states=data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=4)),
        classes=data.draw(st.integers(1, 4)),
        largest=data.draw(st.sampled_from([1, 127, 128, 40_000, 2**28])),
        seed=data.draw(st.integers(0, 999)),
    )
    model = replace(model, scale=data.draw(st.floats(1e-300, 1e300)))
    check_round_trip(model, tmp_path_factory.getbasetemp())


def test_encodings_and_sets_beyond_the_states_come_back(tmp_path):
    model = tree_ensemble(4, sets=1, states=[3, 2])
    wide = replace(model.trees, members=np.pad(model.trees.members, ((0, 0), (0, 5))))
    cut = replace(model, variables=(Variable.from_encoding("height", Cuts([0.5, 2])), model.variables[1]))
    save(replace(cut, trees=wide), tmp_path / "wide.tb")
    save(cut, tmp_path / "m.tb")
    same(load(tmp_path / "m.tb"), cut)
    assert (tmp_path / "m.tb").read_bytes() == (tmp_path / "wide.tb").read_bytes()


def test_sides_and_sets_take_a_bit(tmp_path):
    model = tree_ensemble(20, sets=1, states=[16, 16], seed=1)
    save(model, tmp_path / "m.tb")
    tensors = load_tensors((tmp_path / "m.tb").read_bytes())
    assert tensors["nodes.missing"].nbytes == -(-len(model.trees.feature) // 8)
    assert tensors["nodes.members"].nbytes == len(model.trees.members) * 2


def test_other_formats_and_other_questions_refuse_trees(tmp_path):
    model = tree_ensemble()
    save(model, tmp_path / "m.tb")
    assert isinstance(read_classifier(tmp_path / "m.tb"), TreeEnsemble)
    for suffix in ("bif", "xmlbif", "uai", "ac", "bif.gz"):
        with pytest.raises(TinybayesError, match="expected a network or a circuit, got decision trees; write it as"):
            save(model, tmp_path / f"m.{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == ["m.tb"]
    for read in (read_joint, read_distribution, read_network):
        with pytest.raises(TinybayesError, match="a distribution over its variables, got decision trees"):
            read(tmp_path / "m.tb")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small file with all there is: thresholds, sets, several trees, scores to start with."""
    path = tmp_path_factory.mktemp("sound") / "m.tb"
    save(tree_ensemble(3, leaves=5, sets=0.5, states=[3, 4], classes=2, seed=1), path)
    return path.read_bytes()


FIELDS = [
    ("target", None, r"model\.target"),
    ("variables", {}, r"model\.variables: expected a value of type list"),
    ("variables", [], r"model\.members|model: "),
    ("nodes", 0, r"model\.nodes: expected an integer from 1"),
    ("nodes", 10**18, r"tensor 'nodes\.feature': expected .* more entries"),
    ("nodes", "3", r"model\.nodes: expected a value of type int"),
    ("trees", 0, r"model\.trees: expected an integer from 1"),
    ("trees", 4, r"tensor 'trees\.root': expected 4 more entries"),
    ("trees", None, r"model\.trees"),
    ("members", [1], r"model\.members: expected the shape of a table"),
    ("members", [-1, -4], r"model\.members: expected the shape"),
    ("members", [0, 10**30], r"model\.members: expected the shape"),
    ("members", [10**30, 0], r"model\.members: expected columns"),
    ("members", [10**30, 4], r"tensor 'nodes\.members'"),
    ("members", [2, 5], r"model\.members: expected the shape of a table with up to 4 columns"),
    ("members", [0, 0], r"model: .*sets"),
    ("members", [1.0, 4], r"model\.members\[0\]"),
    ("values", [1, 1], r"model: .*values below 1"),
    ("values", [5, 3], r"model\.values: expected the shape of a table with up to 2 columns"),
    ("values", [10**9, 2], r"tensor 'leaves\.values'"),
    ("values", [0, 0], r"model: .*values"),
    ("values", 4, r"model\.values: expected a value of type list"),
    ("scale", 0.0, r"model: .*a finite scale above zero"),
    ("scale", 1, r"model\.scale: expected a value of type float"),
]


@pytest.mark.parametrize(("key", "value", "match"), FIELDS)
def test_every_wrong_field_is_named(key, value, match, sound, tmp_path):
    document, tensors = opened(sound)
    document["model"][key] = value
    wrong(sealed(document, tensors), tmp_path / "m.tb", match)


def test_every_field_is_needed(sound, tmp_path):
    document, tensors = opened(sound)
    for key in document["model"]:
        less = document | {"model": {k: v for k, v in document["model"].items() if k != key}}
        wrong(sealed(less, tensors), tmp_path / "m.tb", rf"model\.{key}")


def test_wrong_tensors_are_named(sound, tmp_path):
    document, tensors = opened(sound)
    assert len(tensors) == 9
    for name in tensors:
        less = {**tensors, name: tensors[name][:-1]}
        wrong(sealed(document, less), tmp_path / "m.tb", f"tensor '{name}'")
        more = {**tensors, name: np.r_[tensors[name], tensors[name][:1]]}
        wrong(sealed(document, more), tmp_path / "m.tb", f"tensor '{name}'")
        missing = {other: tensors[other] for other in tensors if other != name}
        wrong(sealed(document, missing), tmp_path / "m.tb", f"tensor '{name}'")
        twisted = {**tensors, name: tensors[name].astype(np.float32)}
        wrong(sealed(document, twisted), tmp_path / "m.tb", f"tensor '{name}'.*F32")
    wrong(sealed(document, {**tensors, "more": np.ones(2)}), tmp_path / "m.tb", "tensor 'more': expected no such")
    for name, value, match in [
        ("nodes.feature", 2, "features below 2"),
        ("nodes.threshold", 100, "thresholds|values below"),
        ("nodes.child", 100, "children behind their node"),
        ("nodes.child", 0, "children behind their node"),
        ("trees.root", 0, "trees one after another"),
        ("trees.root", 100, "trees one after another"),
        ("trees.output", 2, "a value a leaf and a class a tree"),
        ("trees.output", -1, "a value a leaf and a class a tree"),
    ]:
        kept = tensors[name] < 0 if name in ("nodes.feature", "nodes.threshold") else False  # leaves and sets
        changed = np.where(kept, tensors[name], value).astype(tensors[name].dtype)
        wrong(sealed(document, {**tensors, name: changed}), tmp_path / "m.tb", match)
    other = {**tensors, "start": np.full(2, 2**31 - 1, np.int32)}
    wrong(sealed(document, other), tmp_path / "m.tb", r"sums below 2\*\*31")


def harmless(data, path):
    """Load anything: a `FileError`, or trees that can be used."""
    path.write_bytes(data)
    try:
        model = load(path)
    except FileError:
        return
    assert isinstance(model, TreeEnsemble)
    assert model_cost(model).bits >= 0
    assert np.abs(tree_scores(model, every_state(model, rows=3)[:3])).max() <= model.reach


@given(seed=st.integers(0, 2**48))
def test_mutated_files(seed, sound, tmp_path_factory):
    harmless(ModelFiles([sound]).mutant(Random(seed)), tmp_path_factory.getbasetemp() / "mutated-trees.tb")


@pytest.mark.parametrize(
    "change", [{"nodes": 10**15}, {"trees": 10**15}, {"members": [10**9, 4]}, {"members": [0, 2**40]}]
)
def test_claims_cost_no_memory(change, sound, tmp_path):
    document, tensors = opened(sound)
    document["model"] |= change
    (tmp_path / "m.tb").write_bytes(sealed(document, tensors))
    tracemalloc.start()
    with pytest.raises(FileError):
        load(tmp_path / "m.tb")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(sound) + 200_000
