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

    def settings(self) -> list[Setting]:
        """Try some prices of an edge."""
        return [{"family": self.name, "view": "mdlp", "edge_price": price, "levels": 16} for price in (3.0, 1.0, 0.3)]

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Grow a circuit from the complete rows, and tie it."""
        from tinybayes.compress import tie
        from tinybayes.learn import learn_circuit

        assert rows.y is not None
        complete = rows.rows(np.flatnonzero((rows.X >= 0).all(axis=1) & (rows.y >= 0)))
        grown = learn_circuit(complete, edge_price=setting["edge_price"], seconds=patience)
        assert grown.circuit is not None
        return learned(setting, tie(grown.circuit, setting["levels"]).model)

    def describe(self, setting: Setting) -> str:
        """Name the price."""
        return f"circuit, edge price {setting['edge_price']:g}"


CIRCUIT = Circuits("circuit", "circuit")
