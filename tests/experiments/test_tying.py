"""The experiments on parameter tying, in small, and the page from made-up results."""

import json

import numpy as np
import pytest

import oracle
import zoo
from experiments import page
from experiments.parameter_tying import learning
from made_up import MADE


def test_rows_are_drawn_from_the_network():
    net = zoo.sprinkler()
    X = learning.forward(net, 20_000, 1)
    rows, logs = oracle.joint(net)
    shares = [(row == X).all(axis=1).mean() for row in rows]
    assert shares == pytest.approx(np.exp(logs), abs=0.015)
    assert min(np.exp(logs[np.array(shares) > 0])) > 0


def test_a_set_has_the_likelihoods_of_enumeration():
    net = zoo.sprinkler()
    plan = {"train": 300, "valid": 100, "test": 100, "smoothing": [1.0, 0.1]}
    for zeros in ("known", "smoothed"):
        circuit = learning.circuit_of(learning.learned(net, np.zeros(14), zeros))
        found = learning.one_set(net, zeros, 3, [3, 4], plan, circuit)
        X = learning.forward(net, 500, 3)
        rows, logs = oracle.joint(net)
        true = np.array([logs[oracle.agreeing(rows, row)][0] for row in X[400:]])
        assert found["true"]["test"] == pytest.approx(true.mean(), abs=1e-5)
        assert found["true"]["error"] == 0
        for tied in found["ties"]:
            assert tied["relearned"]["train"] >= tied["quantised"]["train"] - 1e-6
            assert tied["relearned rows"]["train"] >= tied["quantised rows"]["train"] - 1e-6
            assert found["mle"]["train"] - tied["quantised"]["train"] <= tied["table_bound"] + 1e-6
    tuned = learning.one_set(net, "tuned", 3, [], plan, None)
    assert tuned["mle"]["valid"] >= found["mle"]["valid"]
    report = learning.summary([found], "relearned")
    assert [point["levels"] for point in report["path"]] == [3, 4]


def made_up():
    """Results that look like results."""
    figures = {"train": -1.0, "valid": -1.1, "test": -1.2, "error": 0.1}
    path = [
        {"levels": k, **figures, "test": -1.2 - 1 / k, "gain": -1 / k, "spread": 0.01, "sets": 20, "better": 3}
        for k in (4, 8, 64)
    ]
    method = {"chosen levels": 8.0, "chosen": {**figures, "gain": 0.25}, "max error": 0.2, "path": path}
    results = []
    for network in ("bn2o", "students", "grid", "friends"):
        for zeros in ("known", "smoothed", "tuned"):
            names = [] if zeros == "tuned" else ["quantised rows", "relearned rows"]
            names += ["quantised", "relearned"] if zeros == "known" and network != "bn2o" else []
            results.append(
                {
                    "network": network,
                    "zeros": zeros,
                    "sets": 20,
                    "rows": 1308,
                    "true levels": 13,
                    "true": figures,
                    "mle": {**figures, "max error": 0.3},
                    "methods": dict.fromkeys(names, method),
                }
            )
    ways = ("rounded", "codebook", "levels", "fixed point, trained", "codebook, trained")
    errors = [
        {
            "data": "letter",
            "structure": "naive",
            "float": 0.1,
            "bits an entry": b,
            "ways": {w: {"error": 0.1 + 0.3 / (b + i)} for i, w in enumerate(ways)},
        }
        for b in range(1, 9)
    ]
    circuit = {"data": "nltcs", "float": -6.0, "parameters": 900, "edges": 8000, "bits an entry": 1}
    errors.append({**circuit, "ways": {"rounded": {"test": -9.0}, "codebook": {"test": -7.0}}})
    sampled = [
        {
            "network": "grid",
            "levels": 8,
            "model": model,
            "method": name,
            "exact": False,
            "hellinger": 0.01 * (i + 1),
            "spread": 0.001,
            "log_acceptance": -276.0,
        }
        for model in ("quantised", "relearned, exact")
        for i, name in enumerate(("tied", "tied, drawn", "mcsat", "gibbs"))
    ]
    return results, errors, sampled


def test_runs_keep_their_machine_when_others_add_sets():
    def record(commit, seconds, day):
        return {"commit": commit, "seconds": seconds, "date": f"2020-01-0{day}"}

    earlier = {"provenance": [{**MADE, "commit": "a", "machine": "b", "cores": 99}]}
    done = [{"seconds": 5.0}, record("a", 1.0, 3), record("a", 2.5, 4), record("c", 4.0, 5)]
    first, second = learning._made(earlier, done)
    assert (first["machine"], first["cores"], first["seconds"], first["date"]) == ("b", 99, 3.5, "2020-01-04")
    assert (second["commit"], second["seconds"], second["date"]) == ("c", 4.0, "2020-01-05")
    assert "command" not in second
    assert learning._made({"provenance": [first, second]}, done) == [first, second]


def test_a_page_from_made_up_results_and_from_none(tmp_path):
    folder, docs = tmp_path / "experiments" / "parameter_tying" / "results", tmp_path / "docs"
    folder.mkdir(parents=True)
    page.write(tmp_path / "experiments", docs)
    assert (docs / "results_tying.md").read_text().count("Not run yet") == 2
    levels, errors, sampled = made_up()
    settings = {"seconds": 1.0, "runs": 10}
    for name, report in {
        "learning": {"results": levels},
        "classifiers": {"results": errors, "epochs": 5, "again": 2},
        "figure2": {"results": sampled, "settings": settings},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps({"provenance": MADE, **report}))
    page.write(tmp_path / "experiments", docs)
    text = (docs / "results_tying.md").read_text()
    assert "Not run yet" not in text
    for picture in sorted((docs / "figures").iterdir()):
        assert f"figures/{picture.name}" in text
    assert "| students | known | 1,308 | 13 | 0.3 | 8 | 0.2 | 8 | 0.2 | 8 | 0.2 | 8 | 0.2 |" in text
    assert "students, zeros known: 0.2 against 0.3" in text
    assert "students, zeros smoothed, by rows: 0.2 against 0.3" in text
    assert "| students | -1.200 | -1.200 | -1.200 |  | -0.950 | -1.200 | -0.950 | -0.950 |" in text
    assert "errs less than fixed point of as many bits an entry on 4 of 4 cases at 1 to 4 bits" in text
    assert "| letter | naive Bayes | fixed point, rounded | 40.00 | 25.00 |" in text
    assert "| nltcs | 900 | codebook | -7.000 |" in text
    assert "Relearned, the tied sampler beats MC-SAT and Gibbs sampling. | **holds** | grid, " in text
    before = (docs / "figures" / "tying_figure1.svg").read_bytes()
    page.write(tmp_path / "experiments", docs)
    assert (docs / "figures" / "tying_figure1.svg").read_bytes() == before
