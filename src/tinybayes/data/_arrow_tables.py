"""How Arrow tables become frames."""

from collections.abc import Collection

import pandas as pd
import pyarrow as pa

from tinybayes.data._table import Table, check_names, from_frame
from tinybayes.errors import error

_NULLABLE = {pa.bool_(): pd.BooleanDtype()} | {
    pa.from_numpy_dtype(name.lower()): pd.api.types.pandas_dtype(name)
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}


def from_arrow(table: pa.Table, name: str) -> Table:
    table = simple(table, name)
    return from_frame(to_frame(table, {n for n in table.column_names if table[n].null_count}), name)


def simple(table: pa.Table, where: str) -> pa.Table:
    """Check the table and cast it to the types that have a counterpart in our frames."""
    check_names(table.column_names, where)
    table.validate(full=True)
    try:
        return table.cast(simple_schema(table.schema, where))
    except pa.ArrowNotImplementedError:  # PyArrow 16 casts no views of texts, which frames of polars have
        copy = pa.table([_without_views(column) for column in table.columns], names=table.column_names)
        return copy.cast(simple_schema(copy.schema, where))


def _without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Copy texts, also those of categories."""
    if str(column.type) == "string_view":
        return pa.chunked_array([pa.array(chunk.to_pylist(), pa.string()) for chunk in column.chunks], pa.string())
    if not pa.types.is_dictionary(column.type) or str(column.type.value_type) != "string_view":
        return column
    kind = pa.dictionary(pa.int32(), pa.string(), column.type.ordered)  # signed, for pandas
    parts = [
        (chunk.indices.cast(pa.int32()), pa.array(chunk.dictionary.to_pylist(), pa.string())) for chunk in column.chunks
    ]
    copies = [pa.DictionaryArray.from_arrays(*part, ordered=kind.ordered) for part in parts]
    return pa.chunked_array(copies, kind)


def simple_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """Return the schema that `simple` casts to."""
    return pa.schema([(column.name, _simple_type(column, where)) for column in schema])


def _simple_type(column: pa.Field, where: str) -> pa.DataType:
    kind, types = column.type, pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(value) or types.is_floating(value) or types.is_boolean(value):
        return kind
    if types.is_string(value) or types.is_large_string(value):
        return kind
    if types.is_decimal(kind) or types.is_null(kind):
        return pa.float64()
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or str(kind) == "string_view":
        return pa.string()
    if types.is_dictionary(kind) and str(value) == "string_view":  # the categories of polars
        return pa.dictionary(kind.index_type, pa.string(), kind.ordered)
    raise error("numbers, booleans, text, dates or categories", kind, where=f"{where}, column {column.name!r}")


def to_frame(table: pa.Table, missing: Collection[str]) -> pd.DataFrame:
    """Convert; integers and booleans of the columns in `missing` get pandas' nullable types."""
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    for column in table.schema:
        if column.name in missing and column.type in _NULLABLE:
            frame[column.name] = table[column.name].to_pandas(types_mapper=_NULLABLE.get)
    return frame
