"""Prices of models that do not exist."""

from tinybayes.search.price import Price


def made_up_price(**figures):
    """Return a price with these figures, the others small."""
    few = {"bits": 8, "parameters": 3, "operations": 1, "multiplications": 0, "flash": 1, "tables": 1}
    return Price(**few | {"core": "cortex-m0+", "ram": 0, "stack": 16, "instructions": 20.0} | figures)
