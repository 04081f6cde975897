"""Learned circuits with tied parameters."""

import numpy as np

from tinybayes.model import Dataset
from tinybayes.search.families.family import Learned, Listed, Setting, learned
from tinybayes.search.views import Views

MOST_FEATURES = 300


class Circuits(Listed):
    """Circuits under a price of edges."""

    slow = True

    def possible(self, views: Views) -> bool:
        """Wide tables take too long."""
        return len(views.by_name["mdlp"].seen.variables) <= MOST_FEATURES

    def smallest_flash(self, views: Views, core: str) -> int:
        """Return half of that of naive Bayes: a circuit may leave features out."""
        return super().smallest_flash(views, core) // 2

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Grow a circuit from the complete rows, and tie it."""
        from tinybayes.compress import tie
        from tinybayes.learn import learn_circuit

        assert rows.y is not None
        complete = rows.rows(np.flatnonzero((rows.X >= 0).all(axis=1) & (rows.y >= 0)))
        grown = learn_circuit(complete, edge_price=setting["edge_price"], seconds=patience)
        assert grown.circuit is not None
        return learned(setting, tie(grown.circuit, setting["levels"]).model)


CIRCUIT = Circuits(
    "circuit",
    {"view": ("mdlp",), "edge_price": (3.0, 1.0, 0.3), "levels": (16,)},
    "circuit, edge price {edge_price:g}",
)
