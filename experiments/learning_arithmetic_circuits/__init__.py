"""Experiments of *Learning Arithmetic Circuits* (Lowd and Domingos)."""
