"""From what log and master hold of an event to what its stream declares, as Spark SQL.

Two steps: stored columns get their types, since a VARIANT is JSON text there and `_raw` the bytes
of the event; then the computed columns are added. Batch and speed take the first step where a
relation is made, and views say the second themselves (computed.py); a query of a user needs both.
`_raw` is NULL where Spark cannot read the bytes, in fields that are not declared, so that no event
which was accepted fails a query. tests/spark/test_feed.py reads both kinds, from log and master.
"""

from __future__ import annotations

from headrace.compile.computed import HIDDEN_DDL, NamedColumns
from headrace.core.event import HIDDEN, RAW
from headrace.core.schema import Schema

_RAW_VARIANT = f"try_parse_json(cast({RAW} as string))"


def stored_ddl(schema: Schema, *, raw: bool) -> str:
    """The columns as log and master have them."""
    return f"{schema.stored_ddl}, {HIDDEN_DDL}" + (f", `{RAW}` BINARY" if raw else "")


def typed_columns(schema: Schema, *, raw: bool) -> dict[str, str]:
    """SQL of each column that is stored as another type, by its name."""
    variants = (c.name for c in schema.stored.columns if c.type.name == "VARIANT")
    typed = {name: f"parse_json(`{name}`)" for name in variants}
    return typed | ({RAW: _RAW_VARIANT} if raw else {})


def reads_raw(schema: Schema, *, named: bool) -> bool:
    """Whether the bytes of events are needed to make all declared columns, and `_raw` if named."""
    return NamedColumns(schema, schema.computed, named).raw


def declared_query(schema: Schema, stored: str, *, raw: bool) -> str:
    """SELECT of all declared columns from a relation with the stored ones, and of `_raw`."""
    bytes_read = reads_raw(schema, named=raw)
    typed = typed_columns(schema, raw=bytes_read)
    names = (*schema.stored.names, *HIDDEN, *([RAW] if bytes_read else []))
    inner = ", ".join(f"{typed.get(name, f'`{name}`')} AS `{name}`" for name in names)
    items = ", ".join(NamedColumns(schema, schema.computed, raw).items)
    return f"SELECT {items} FROM (SELECT {inner} FROM `{stored}`)"
