"""The Arrow types of the reading engine, which has timestamps without a time zone, all in UTC.

tests/serving/test_arrow_values.py has one of each.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from headrace.core.schema import Type
from headrace.log.columns import arrow_of

_SCALARS = {
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(),
    "INT": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us"), "TIMESTAMP_NTZ": pa.timestamp("us"), "DATE": pa.date32(),
    "BINARY": pa.binary(), "VARIANT": pa.string(), "VOID": pa.int32(),
}  # fmt: skip


@lru_cache(maxsize=1_000)
def engine_type(type: str) -> pa.DataType:
    """The engine's type for a type of an answer."""
    return _SCALARS["VOID"] if type == "VOID" else arrow_of(Type.of(type), _SCALARS)


def shown_type(type: pa.DataType) -> Type:
    """The type of an Arrow column, for showing its values."""
    if pa.types.is_list(type):
        return Type.array_of(shown_type(type.value_type))
    if pa.types.is_map(type):
        return Type.map_of(shown_type(type.item_type), shown_type(type.key_type))
    if pa.types.is_struct(type):
        return Type.struct_of(*((field.name, shown_type(field.type)) for field in type))
    if pa.types.is_decimal(type):
        return Type.decimal_of(type.precision, type.scale)
    if pa.types.is_timestamp(type):
        return Type("TIMESTAMP" if type.tz else "TIMESTAMP_NTZ")
    if pa.types.is_null(type):
        return Type("VOID")
    return Type(next(name for name, known in _SCALARS.items() if known == type))
