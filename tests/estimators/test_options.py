"""Hyper-parameters are defined once: estimators and commands have the names and defaults of the learners."""

import inspect
import re

import pytest

from tinybayes import (
    AnomalyDetector,
    BayesNetClassifier,
    CircuitClassifier,
    CircuitDensity,
    Discretization,
    QuantizedNetClassifier,
    TreeEnsembleClassifier,
)
from tinybayes.cli import COMMANDS
from tinybayes.cli._options import spelled_out
from tinybayes.learn.circuits.options import CircuitOptions, LatentOptions
from tinybayes.learn.hybrid import HybridOptions
from tinybayes.learn.training.options import NetOptions, TrainingOptions
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.options import options_of
from tinybayes.search.families import FAMILIES

LEARNERS = {
    AnomalyDetector: (CircuitOptions, LatentOptions, Discretization),
    BayesNetClassifier: (HybridOptions, Discretization),
    CircuitClassifier: (CircuitOptions, LatentOptions, Discretization),
    CircuitDensity: (CircuitOptions, LatentOptions, Discretization),
    QuantizedNetClassifier: (NetOptions, TrainingOptions, Discretization),
    TreeEnsembleClassifier: (BoostingOptions, ForestOptions, Discretization),
}
OTHER_DEFAULTS = {  # where an estimator chooses its own
    AnomalyDetector: {"max_states", "method", "edge_price"},
    BayesNetClassifier: set(),
    CircuitClassifier: {"max_states", "edge_price"},
    CircuitDensity: {"max_states", "edge_price"},
    QuantizedNetClassifier: {"discretizer", "n_bins", "hidden", "epochs", "batch_size", "learning_rate"},
    TreeEnsembleClassifier: {"discretizer", "n_bins", "trees", "leaves", "leaf_rows", "feature_share", "row_share"},
}
HIDDEN = {"bayesian", "keep_best", "every", "shuffle_seed", "memory", "keep_values", "sample_rows", "seed", "deadline"}
HIDDEN |= {"last_step"}  # for experiments


@pytest.mark.parametrize("estimator", LEARNERS)
def test_estimators_have_the_parameters_of_their_learners(estimator):
    parameters = inspect.signature(estimator).parameters
    text = inspect.getdoc(estimator)
    if estimator in (AnomalyDetector, CircuitClassifier):
        text += inspect.getdoc(CircuitDensity)
    for name, parameter in parameters.items():
        assert re.search(rf"^(\w+, )*{name}\b.*( : .*)?$", text.replace("\\\n", ""), re.MULTILINE), name
        known = [learner for learner in LEARNERS[estimator] if name in options_of(learner)]
        if known and name not in OTHER_DEFAULTS[estimator]:
            assert parameter.default == known[0].__dataclass_fields__[name].default, name
    wanted = {name for learner in LEARNERS[estimator] for name in options_of(learner)}
    if estimator in (AnomalyDetector, CircuitDensity):
        wanted -= {"discriminative"}  # there is no class
    assert wanted - set(parameters) <= HIDDEN


def test_commands_have_the_options_of_their_learners():
    commands = {command.__name__: command for group in COMMANDS.values() for command, _, _ in group}
    wanted = {"fit": HybridOptions, "learn_circuit": CircuitOptions}
    for name, learner in wanted.items():
        parameters = inspect.signature(spelled_out(commands[name])).parameters
        for hyper, known in options_of(learner).items():
            if hyper in HIDDEN:
                continue
            option = parameters[hyper].annotation.__metadata__[0]
            default = learner.__dataclass_fields__[hyper].default
            assert (parameters[hyper].default, option.help) == (default, known.help)


def test_the_help_of_explore_names_all_families():
    (command,) = (command for command, _, _ in COMMANDS["Learn"] if command.__name__ == "explore")
    text = inspect.signature(command).parameters["families"].annotation.__metadata__[0].help
    assert set(text.split(";")[0].removeprefix("Some of ").split(", ")[:-1]) == set(FAMILIES)
