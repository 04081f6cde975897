"""Experiments of *On resource-efficient Bayesian network classifiers and deep neural networks* (Roth and others)."""
