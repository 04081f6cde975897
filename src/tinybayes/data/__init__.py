"""Tables in: readers, discretisation, variables, codes, named data sets."""

from tinybayes.data.mdlp import MDLPDiscretizer
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
