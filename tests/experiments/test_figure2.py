"""The experiment of Figure 2 of the paper on tying, on a small network."""

import tomllib
from pathlib import Path

import zoo
from experiments.parameter_tying import figure2
from tinybayes import marginals


def test_every_method_of_the_plan_is_measured():
    plan = {**tomllib.loads((Path(figure2.__file__).with_suffix(".toml")).read_text()), "seconds": 0.1}
    net = zoo.sprinkler()
    exact = marginals(net).probabilities
    for method in plan["methods"]:
        found = figure2.measure(net, method, plan, exact, 2)
        assert found["method"] == method
        assert found["exact"] == (method == "tied")
        assert found["runs"] == (1 if method == "tied" else 2)
        assert (found["hellinger"] == 0) == (method == "tied")
        assert found["hellinger"] < 0.1


def test_models_are_tied_and_relearned():
    net = zoo.sprinkler()
    plan = {"train": 500, "seed": 0}
    found = figure2.models(net, plan, [3, 4])
    assert [(k, kind) for k, kind, _ in found] == [
        (3, "quantised"),
        (3, "relearned, exact"),
        (4, "quantised"),
        (4, "relearned, exact"),
    ]
    likelihood = [marginals(model).log_z for _, _, model in found]
    assert all(abs(value) < 1 for value in likelihood)
