"""What training by gradient refuses, before any work is done, and the settings that it draws."""

from dataclasses import replace

import numpy as np
import pytest

from strategies import easy
from tinybayes.errors import TinybayesError
from tinybayes.learn import HybridOptions, chow_liu, learn_classifier
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training.candidates import fixed
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import Codebook, Fixed

DATA = easy(rows=40)
RUN = TableConfiguration(candidates=fixed(chow_liu(DATA)))


def refused(message, make):
    with pytest.raises(TinybayesError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number_format": Codebook((-1.0, 0.0))}, "configuration 1: expected a Float or Fixed format, got codebook2"),
        ({"lam": -1.0}, "lam: expected at least 0, got -1"),
        ({"size_penalty": np.nan}, "size_penalty: expected at least 0, got nan"),
        ({"sharing": np.inf}, "sharing: expected at least 0, got inf"),
        ({"structure_noise": 1.0}, "structure_noise: expected at least 0, below 1"),
        ({"sharing": 1.0, "per_row": True}, "configuration 1, sharing: expected one structure for a mini-batch"),
        ({"gamma": 0.0}, "gamma: expected above 0"),
        ({"learning_rate": np.inf}, "learning_rate: expected above 0, got inf"),
    ],
)
def test_settings_that_cannot_be_trained(change, message):
    refused(
        message, lambda: train_tables(DATA, [RUN, replace(RUN, **change)], TrainingOptions(epochs=1, batch_size=10))
    )


def test_data_that_cannot_be_trained_on():
    unknown = replace(DATA, y=np.full(len(DATA), -1))
    for data in (replace(DATA, y=None), unknown, replace(DATA, target=None, y=None)):
        refused(
            "data: expected rows with a class, got none",
            lambda data=data: train_tables(data, [RUN], TrainingOptions(epochs=1)),
        )
    refused("configurations: expected at least one", lambda: train_tables(DATA, [], TrainingOptions(epochs=1)))
    refused("epochs: expected 1 to 1000000000, got 0", lambda: train_tables(DATA, [RUN], TrainingOptions(epochs=0)))
    refused(
        "batch_size: expected at least 1, got 0",
        lambda: train_tables(DATA, [RUN], TrainingOptions(epochs=1, batch_size=0)),
    )
    narrow = replace(DATA, variables=DATA.variables[:-1], X=DATA.X[:, :-1])
    wrong = TableConfiguration(candidates=fixed(naive_bayes(narrow)))
    refused(
        f"candidates for {len(DATA.variables)} features, got {len(DATA.variables) - 1}",
        lambda: train_tables(DATA, [wrong], TrainingOptions(epochs=1)),
    )


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        ("chow-liu", {"n_configs": 0}, "n_configs: expected at least 1, got 0"),
        ("chow-liu", {"bits": 0}, "bits: expected 1 to 16 bits, got 0"),
        ("chow-liu", {"bits": 17}, "bits: expected 1 to 16 bits, got 17"),
        ("subset", {"n_candidates": 0}, "n_candidates: expected at least 1, got 0"),
        ("heuristic", {"image_shape": (1, 2)}, "structure 'heuristic': expected an image of"),
        (
            "chow-liu",
            {"early_stopping": True, "validation_fraction": 1.0},
            "validation_fraction: expected above 0, below 1, got 1",
        ),
    ],
)
def test_options_that_are_none(structure, options, message):
    given = {"epochs": 1, "batch_size": 20} | options
    refused(
        message,
        lambda: learn_classifier(DATA, structure=structure, training="hybrid", options=HybridOptions(**given)),
    )


def test_a_format_is_given_once():
    options = HybridOptions(epochs=1, bits=4)
    refused(
        "either number_format or bits, got both",
        lambda: learn_classifier(DATA, training="hybrid", number_format=Fixed(2, 2), options=options),
    )


def test_too_few_rows_to_hold_some_out():
    few = DATA.rows(slice(0, 2))
    refused("enough rows to hold some out, got 2 rows", lambda: hold_out(few, 0.1, 0))
    refused("a share between 0 and 1, got 0", lambda: hold_out(few, 0, 0))
