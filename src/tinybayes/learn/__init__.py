"""Data to model: counts, closed-form parameters, structures, training by gradient, circuits, relearning."""

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
