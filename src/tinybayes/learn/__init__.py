"""Data to model: counts, closed-form parameters, structures, training by gradient, circuits, relearning."""

from tinybayes.learn.chow_liu import chow_liu, conditional_mutual_information
from tinybayes.learn.classifier import GradientOptions, learn_classifier
from tinybayes.learn.counts import count_tables
from tinybayes.learn.learn_ac import learn_ac, learn_tree_cpds
from tinybayes.learn.maximum_likelihood import maximum_likelihood
from tinybayes.learn.relearn import Relearned, Relearning, relearn
from tinybayes.learn.relearn_rows import relearn_rows
from tinybayes.learn.structures import naive_bayes, random_tan

__all__ = [
    "GradientOptions",
    "Relearned",
    "Relearning",
    "chow_liu",
    "conditional_mutual_information",
    "count_tables",
    "learn_ac",
    "learn_classifier",
    "learn_tree_cpds",
    "maximum_likelihood",
    "naive_bayes",
    "random_tan",
    "relearn",
    "relearn_rows",
]
