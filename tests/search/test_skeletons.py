"""Settings are cut to the price of a program before they are trained: what is trained then costs as much."""

import pytest
from sklearn.datasets import load_digits, load_iris

from cases import exhaustive
from tinybayes.search.budget import Budget
from tinybayes.search.families import FAMILIES
from tinybayes.search.families.family import Effort
from tinybayes.search.prepare import make_views
from tinybayes.search.trials import carry_out

NET = {"share": 1.0, "learning_rate": 0.02, "label_smoothing": 0.0, "activation": "relu", "seed": 0}
TABLES = {"integer": 3, "lam": 50.0, "gamma": 10.0, "learning_rate": 0.02, "view": "mdlp", "seed": 0}
SETTINGS = {
    "dense": {**NET, "bits": 5, "size": 3, "layers": 1, "inputs": "shared"},
    "naive": {**TABLES, "bits": 8},
    "conv": {**NET, "bits": 4, "size": 3, "layers": 2},
    "tan": {**TABLES, "bits": 8, "sharing": 0.0, "structure_noise": 0.0},
}
MORE = ("dense ram 400", "dense microseconds 250", "conv flash 2500", "tan flash 4000")


@pytest.fixture(scope="module")
def digits():
    return make_views(load_digits(as_frame=True).frame, "target")


def cut_and_trained(views, name, budget):
    """Cut a setting to a budget and train it a little."""
    cut = FAMILIES[name].fitted({"family": name, **SETTINGS[name]}, views, budget)
    return cut, carry_out(views, [cut], Effort(30))[0].price


@pytest.mark.parametrize("case", ["dense flash 2500", "naive flash 2500", *exhaustive(*MORE)])
def test_what_is_trained_keeps_the_limit_and_makes_use_of_it(digits, case):
    name, figure, limit = case.split()
    cut, price = cut_and_trained(digits, name, Budget(**{figure: int(limit)}))
    taken = {"flash": price.flash, "ram": price.stack, "microseconds": price.microseconds()}[figure]
    assert 0.7 * int(limit) < taken < int(limit)
    assert cut.get("hidden") != [128] or cut["bits"] < SETTINGS[name]["bits"]


@pytest.mark.parametrize("name", ["dense", "naive", *exhaustive("conv", "tan")])
def test_a_skeleton_costs_what_the_trained_model_costs(digits, name):
    cut, price = cut_and_trained(digits, name, Budget())
    sized = (cut["hidden"],) if "hidden" in cut else ()
    guess = FAMILIES[name].skeleton(cut, *sized, digits, Budget(microseconds=1e9))
    # How many weights share a word depends on the largest sums, so on the weights.
    assert guess.flash == pytest.approx(price.flash, rel=0.1 if name == "conv" else 0.02)
    assert guess.stack == pytest.approx(price.stack, rel=0.05)
    assert guess.instructions == pytest.approx(price.instructions, rel=0.4 if name == "conv" else 0.15)


def test_what_cannot_fit_is_dropped():
    views = make_views(load_iris(as_frame=True).frame, "target")
    for name in ("dense", "naive", "tan"):
        setting = {"family": name, **SETTINGS[name]}
        assert FAMILIES[name].fitted(setting, views, Budget(flash=200)) is None
        assert FAMILIES[name].fitted(setting, views, Budget(flash=20_000)) is not None
