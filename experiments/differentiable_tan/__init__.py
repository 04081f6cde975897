"""Experiments of *Differentiable TAN structure learning for Bayesian network classifiers* (Roth and Pernkopf)."""
