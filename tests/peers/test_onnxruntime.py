"""onnxruntime: on every row the exported ONNX says what the compiled C says, bit by bit where both are integers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from c_host import labels_and_codes, labels_and_scores
from networks import STRUCTURES, classifier, every_state
from tinybayes import BayesNetClassifier, Codebook, Fixed, Float, class_scores, export, quantize
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.infer import integer_log_joint

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
FORMATS = {
    "fixed": Fixed(3, 3),
    "wide": Fixed(6, 6),
    "codebook": Codebook((-4.0, -2.0, -1.0, -0.25)),
    "float": Float(32),
}


def run(files, name, **inputs):
    session = onnxruntime.InferenceSession(files[f"{name}.onnx"])
    return session.run(["label", "scores"], inputs)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_compiled_c_and_onnx_agree(tmp_path, structure, form):
    whole = form != "float"
    net = classifier(structure, FORMATS[form], seed=3, features=6, classes=4)
    X = every_state(net, rows=300)
    kind = "int32_t" if whole else "float"
    labels, scores = labels_and_scores(tmp_path, to_c(net, name="net"), "net", net, X, score=kind)
    label, found = run(export(net, "onnx", name="net"), "net", x=X.astype(np.int64))
    if whole:
        np.testing.assert_array_equal(found, scores)
        np.testing.assert_array_equal(label, labels)
        np.testing.assert_array_equal(found, integer_log_joint(net, X, gaps=make_plan(net, gaps=True).features.gaps)[0])
    else:
        np.testing.assert_allclose(found, scores, atol=1e-4)
        np.testing.assert_allclose(found, class_scores(net, X), atol=1e-4)
        clear = np.diff(np.sort(found, axis=1)[:, -2:]).ravel() > 1e-3
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(label[clear], labels[clear])


@pytest.mark.parametrize("structure", ["naive", "chow-liu"])
@pytest.mark.parametrize(("load", "kind"), [(load_iris, "float"), (load_digits, "int")])
def test_from_measurements(tmp_path, load, kind, structure):
    """The discretiser is part of both."""
    X, y = load(return_X_y=True)
    net = quantize(BayesNetClassifier(structure).fit(X, y).model_, Fixed(4, 4))
    labels, _ = labels_and_codes(
        tmp_path, to_c(net, name="net", raw=kind), "net", net, X, kind if kind == "float" else "int32_t"
    )
    files = export(net, "onnx", name="net", raw=kind)
    value = X.astype(np.float32 if kind == "float" else np.int32)
    label, _ = run(files, "net_raw", value=value)
    np.testing.assert_array_equal(label, labels)
    assert np.mean(label == y) > 0.85
