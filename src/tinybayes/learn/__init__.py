"""Data to model: counts, closed-form parameters, structures, training by gradient, circuits, relearning.

Names are loaded when they are used: who learns in closed form needs none of circuits and tied parameters.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinybayes.learn.circuits.latent_tree import LatentTree, learn_latent_tree
    from tinybayes.learn.circuits.learn_ac import learn_circuit, learn_tree_cpds
    from tinybayes.learn.classifier import learn_classifier
    from tinybayes.learn.closed_form.chow_liu import chow_liu, conditional_mutual_information
    from tinybayes.learn.closed_form.counts import count_tables
    from tinybayes.learn.closed_form.maximum_likelihood import maximum_likelihood
    from tinybayes.learn.closed_form.structures import naive_bayes, random_tan
    from tinybayes.learn.hybrid import HybridOptions
    from tinybayes.learn.ties.relearn import Relearned, RelearnOptions, RelearnProgress, relearn

__all__ = [
    "HybridOptions",
    "LatentTree",
    "RelearnOptions",
    "RelearnProgress",
    "Relearned",
    "chow_liu",
    "conditional_mutual_information",
    "count_tables",
    "learn_circuit",
    "learn_classifier",
    "learn_latent_tree",
    "learn_tree_cpds",
    "maximum_likelihood",
    "naive_bayes",
    "random_tan",
    "relearn",
]

_HOMES = {
    "circuits.latent_tree": "LatentTree learn_latent_tree",
    "circuits.learn_ac": "learn_circuit learn_tree_cpds",
    "classifier": "learn_classifier",
    "closed_form.chow_liu": "chow_liu conditional_mutual_information",
    "closed_form.counts": "count_tables",
    "closed_form.maximum_likelihood": "maximum_likelihood",
    "closed_form.structures": "naive_bayes random_tan",
    "hybrid": "HybridOptions",
    "ties.relearn": "Relearned RelearnOptions RelearnProgress relearn",
}
_HOME_OF = {name: f"tinybayes.learn.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes.learn' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
