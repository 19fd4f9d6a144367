"""Spark SQL that converts the stored columns of an event to the declared columns of its stream.

Two steps: stored columns get their types, because a VARIANT is stored as JSON text and `_raw` as
bytes; then the computed columns are added. Batch and speed apply the first step to their relations,
and the SQL of views has the second (computed.py); an ad-hoc query needs both. `_raw` is NULL if
Spark cannot parse an undeclared field of it, so that an accepted event never fails a query.
tests/spark/test_feed.py reads both kinds, from log and master.
"""

from __future__ import annotations

from headrace.compile.computed import HIDDEN_DDL, NamedColumns
from headrace.core.event import HIDDEN, RAW
from headrace.core.schema import Schema

_RAW_VARIANT = f"try_parse_json(cast({RAW} as string))"


def stored_ddl(schema: Schema, *, raw: bool) -> str:
    """The DDL of the columns as they are stored."""
    return f"{schema.stored_ddl}, {HIDDEN_DDL}" + (f", `{RAW}` BINARY" if raw else "")


def typed_columns(schema: Schema, *, raw: bool) -> dict[str, str]:
    """SQL of each column that is stored as another type, by its name."""
    variants = (c.name for c in schema.stored.columns if c.type.name == "VARIANT")
    typed = {name: f"parse_json(`{name}`)" for name in variants}
    return typed | ({RAW: _RAW_VARIANT} if raw else {})


def reads_raw(schema: Schema, *, named: bool) -> bool:
    """Whether the declared columns, or the named `_raw`, need the bytes of events."""
    return NamedColumns(schema, schema.computed, named).raw


def declared_query(schema: Schema, stored: str, *, raw: bool) -> str:
    """The SELECT of all declared columns, and of `_raw`, from a relation of stored columns."""
    bytes_read = reads_raw(schema, named=raw)
    typed = typed_columns(schema, raw=bytes_read)
    names = (*schema.stored.names, *HIDDEN, *([RAW] if bytes_read else []))
    inner = ", ".join(f"{typed.get(name, f'`{name}`')} AS `{name}`" for name in names)
    items = ", ".join(NamedColumns(schema, schema.computed, raw).items)
    return f"SELECT {items} FROM (SELECT {inner} FROM `{stored}`)"
