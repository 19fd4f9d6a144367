"""The values of a column as a list of Python's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def python_list(column: pa.Array) -> list[Any]:
    """As `to_pylist`, three times as fast for numbers and booleans without NULL.

    >>> python_list(pa.array([1, 2])), python_list(pa.array([True, None]))
    ([1, 2], [True, None])
    """
    type = column.type
    plain = pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_boolean(type)
    if plain and not column.null_count:
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return values
    found: list[Any] = column.to_pylist()
    return found
