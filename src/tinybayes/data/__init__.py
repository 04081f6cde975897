"""Tables in: readers, discretisation, variables, codes, named data sets.

Names are loaded when they are used: workers of a search get codes and need none of pandas, pyarrow and scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tinybayes.extras import require

if TYPE_CHECKING:
    from tinybayes.data.mdlp_discretizer import MDLPDiscretizer
    from tinybayes.data.readers import Table, as_table, read_frame
    from tinybayes.data.tables import EncodedTable, open_dataset, read_dataset
    from tinybayes.data.variables import Discretization

__all__ = [
    "Discretization",
    "EncodedTable",
    "MDLPDiscretizer",
    "Table",
    "as_table",
    "open_dataset",
    "read_dataset",
    "read_frame",
]

_HOMES = {
    "mdlp_discretizer": "MDLPDiscretizer",
    "readers": "Table as_table read_frame",
    "tables": "EncodedTable open_dataset read_dataset",
    "variables": "Discretization",
}
_HOME_OF = {name: f"tinybayes.data.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes.data' has no attribute {name!r}")
    if name == "MDLPDiscretizer":
        require("sklearn")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
