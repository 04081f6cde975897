"""Neural networks in the native model file: every bit comes back, and nothing in a file is trusted."""

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load as load_tensors
from test_native_hostile import wrong

from mutate import ModelFiles, opened, sealed
from neural_nets import kinds, neural_net, rows_of
from tinybayes.deploy import load, read_classifier, read_distribution, read_joint, read_network, save
from tinybayes.deploy.files.native import load_metadata
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import NeuralNet


def same(a, b):
    assert (a.variables, a.target, a.scale, a.image_shape) == (b.variables, b.target, b.scale, b.image_shape)
    for name in ("feature", "state", "multiplier", "center"):
        np.testing.assert_array_equal(getattr(a.inputs, name), getattr(b.inputs, name))
    assert len(a.layers) == len(b.layers)
    for one, other in zip(a.layers, b.layers, strict=True):
        assert (one.bits, one.activation, one.before, one.after) == (
            other.bits,
            other.activation,
            other.before,
            other.after,
        )
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.bias, other.bias)
        np.testing.assert_array_equal(one.multiplier, other.multiplier)


@pytest.mark.parametrize("key", kinds())
def test_a_saved_network_comes_back_bit_by_bit(key, tmp_path):
    net = kinds()[key]
    save(net, tmp_path / "n.tb", metadata={"by": "chance"})
    back = load(tmp_path / "n.tb")
    same(net, back)
    assert load_metadata(tmp_path / "n.tb") == {"by": "chance"}
    save(back, tmp_path / "again.tb", metadata={"by": "chance"})
    assert (tmp_path / "n.tb").read_bytes() == (tmp_path / "again.tb").read_bytes()


def test_weights_take_their_bits(tmp_path):
    save(neural_net((16,), bits=3, states=[4] * 16, classes=8), tmp_path / "n.tb")
    tensors = load_tensors((tmp_path / "n.tb").read_bytes())
    assert tensors["weights.bits3"].nbytes == (16 * 16 + 16 * 8) * 3 // 8


def test_other_formats_and_other_questions_refuse_a_network(tmp_path):
    net = neural_net((4,))
    save(net, tmp_path / "n.tb")
    same(read_classifier(tmp_path / "n.tb"), net)
    with pytest.raises(TinybayesError, match=r"metadata: expected a \.tb file"):
        save(net, tmp_path / "n.bif", metadata={"by": "chance"})
    for suffix in ("bif", "xmlbif", "uai", "ac", "bif.gz"):
        with pytest.raises(TinybayesError, match="expected a network or a circuit, got a neural net; write it as"):
            save(net, tmp_path / f"n.{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == ["n.tb"]
    for read in (read_joint, read_distribution, read_network):
        with pytest.raises(TinybayesError, match="a distribution over its variables, got a neural net"):
            read(tmp_path / "n.tb")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small file with all there is: a convolution, two bits, multipliers, centres."""
    net = neural_net(((3,), 4), bits=3, image=(4, 4), states=[3] * 16, scaled=True)
    path = tmp_path_factory.mktemp("sound") / "n.tb"
    save(net, path)
    return path.read_bytes()


FIELDS = [
    ("target", None, r"model\.target"),
    ("inputs", 0, r"model\.inputs: expected an integer from 1"),
    ("inputs", 17, r"tensor 'inputs\.feature': expected 17 more entries"),
    ("inputs", 10**18, r"tensor 'inputs\.feature'"),
    ("layers", [], r"model: .*at least one layer"),
    ("layers", {}, r"model\.layers: expected a value of type list"),
    ("layers.0", 3, r"model\.layers\[0\]"),
    ("layers.0.shape", [3, 3, 3], r"layers\[0\]\.shape: expected two or four numbers"),
    ("layers.0.shape", [3, 3, 0, 3], r"layers\[0\]\.shape"),
    ("layers.0.shape", [3, -3, 1, -3], r"layers\[0\]\.shape"),
    ("layers.0.shape", [1, 9, 1, 3], r"layers\[0\]: .*\(inputs, units\) or \(3, 3, channels, units\)"),
    ("layers.0.shape", [10**9, 10**9], r"tensor 'weights\.bits3'"),
    ("layers.0.shape", [27, 1], r"layers\[1\]|tensor|model:"),
    ("layers.0.bits", 0, r"layers\[0\]\.bits"),
    ("layers.0.bits", 9, r"layers\[0\]\.bits"),
    ("layers.0.bits", 4, r"tensor 'weights\.bits4'"),
    ("layers.0.activation", "tanh", r"layers\[0\]: .*relu or sign or none"),
    ("layers.0.activation", "none", r"tensor 'layers\.multiplier'|an activation in every layer"),
    ("layers.0.activation", "sign", r"tensor 'layers\.multiplier'"),
    ("layers.0.shifts", [1], r"layers\[0\]\.shifts: expected two numbers from 0 to 31"),
    ("layers.0.shifts", [0, 32], r"layers\[0\]\.shifts"),
    ("layers.2.activation", "relu", r"layers\[2\]\.shifts"),
    ("scale", 0.0, r"model: .*a finite scale above zero"),
    ("scale", 1, r"model\.scale: expected a value of type float"),
    ("image", None, r"model: .*an image of 16 pixels"),
    ("image", [2, 4], r"model: .*an image of 16 pixels"),
    ("image", [10**12, 4], r"model\.image"),
    ("image", [-4, -4], r"model\.image"),
    ("image", [1, 16], r"model: .*weights for inputs"),
    ("variables", [], r"model: .*features|model: "),
]


@pytest.mark.parametrize(("place", "value", "match"), FIELDS)
def test_every_wrong_field_is_named(place, value, match, sound, tmp_path):
    document, tensors = opened(sound)
    *keys, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder = document["model"]
    for key in keys:
        holder = holder[key]
    holder[last] = value
    wrong(sealed(document, tensors), tmp_path / "n.tb", match)


def test_wrong_tensors_are_named(sound, tmp_path):
    document, tensors = opened(sound)
    for name in tensors:
        less = {**tensors, name: tensors[name][:-1]}
        wrong(sealed(document, less), tmp_path / "n.tb", f"tensor '{name}'")
        more = {**tensors, name: np.r_[tensors[name], tensors[name][:1]]}
        wrong(sealed(document, more), tmp_path / "n.tb", f"tensor '{name}'")
        missing = {other: tensors[other] for other in tensors if other != name}
        wrong(sealed(document, missing), tmp_path / "n.tb", f"tensor '{name}'")
        twisted = {**tensors, name: tensors[name].astype(np.float32)}
        wrong(sealed(document, twisted), tmp_path / "n.tb", f"tensor '{name}'.*F32")
    wrong(sealed(document, {**tensors, "more": np.ones(2)}), tmp_path / "n.tb", "tensor 'more': expected no such")
    for name, value, match in [
        ("inputs.feature", 100, "features from 0 to 15"),
        ("inputs.feature", -1, "features from 0 to 15"),
        ("inputs.state", 3, "states of the features"),
        ("inputs.state", -2, "states of the features"),
        ("layers.multiplier", -1, "magnitudes up to 65535"),
    ]:
        other = {**tensors, name: np.full_like(tensors[name], value)}
        wrong(sealed(document, other), tmp_path / "n.tb", match)
    other = {**tensors, "inputs.multiplier": np.full(16, 2**31 - 1, np.int32)}
    wrong(sealed(document, other), tmp_path / "n.tb", "sums below 2\\*\\*31")


def harmless(data, path):
    """Load anything: a `FileError`, or a network that can be used."""
    path.write_bytes(data)
    try:
        net = load(path)
    except FileError:
        return
    assert isinstance(net, NeuralNet)
    assert np.abs(net_scores(net, rows_of(net, rows=3)[:3])).max() < 2**31


@given(seed=st.integers(0, 2**48))
def test_mutated_files(seed, sound, tmp_path_factory):
    harmless(ModelFiles([sound]).mutant(Random(seed)), tmp_path_factory.getbasetemp() / "mutated-net.tb")


@pytest.mark.parametrize(
    "change",
    [{"inputs": 10**15}, {"image": [2**31 - 1, 2**31 - 1]}, {"layers": [{"shape": [10**9, 10**9], "bits": 1}]}],
)
def test_claims_cost_no_memory(change, sound, tmp_path):
    document, tensors = opened(sound)
    document["model"] |= change
    (tmp_path / "n.tb").write_bytes(sealed(document, tensors))
    tracemalloc.start()
    with pytest.raises(FileError):
        load(tmp_path / "n.tb")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(sound) + 200_000
