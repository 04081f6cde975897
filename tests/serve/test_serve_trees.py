"""The local app on decision trees: labels, probabilities and contributions."""

import json

import numpy as np
import pytest

from tinybayes import class_scores, explain, save
from tinybayes.infer import normalize_scores
from tree_ensembles import kinds

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")
from served import Client, serving

MODELS = {"boosted": kinds()["class 7 trees"], "forest": kinds()["votes 7 trees"], "tree": kinds()["all 1 trees"]}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    for key, model in MODELS.items():
        save(model, folder / f"{key}.tb")
    entries = [
        {"id": key, "family": key, "bits": 8, "operations": 5, "validation_error": 0.1, "file": f"{key}.tb"}
        for key in MODELS
    ]
    (folder / "front.json").write_text(json.dumps({"title": "trees", "models": entries}))
    with serving(folder) as address:
        yield Client(address)


@pytest.mark.parametrize("key", MODELS)
def test_answers_are_those_of_the_package(client, key):
    model = MODELS[key]
    told = client.get("/model", id=key)
    assert told["card"]["kind"] == "trees"
    assert told["card"]["graph"]["labels"]
    assert (told["ask"]["explains"], told["ask"]["posteriors"]) == (True, False)
    for known in ({}, {1: 1}, {i: v.cardinality - 1 for i, v in enumerate(model.variables)}):
        row = np.full(len(model.variables), -1)
        for i, code in known.items():
            row[i] = code
        answer = client.get("/ask", id=key, known=",".join(f"{i}.{code}" for i, code in known.items()))
        probabilities = np.exp(normalize_scores(class_scores(model, row[None])))[0]
        np.testing.assert_allclose(answer["classes"], probabilities)
        assert (answer["posteriors"], answer["log_evidence"]) == (None, None)
        explained, wanted = answer["explanation"], explain(model, row)
        assert (explained["label"], explained["against"]) == (wanted.label, wanted.against)
        assert explained["total"] == pytest.approx(wanted.total)
