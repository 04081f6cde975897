"""Counts, and what follows from them in closed form: structures and maximum likelihood."""
