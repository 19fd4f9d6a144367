"""The types that an event's fields may have, and what each is called in the other systems.

A value is stored as its *storage* type: a timestamp as microseconds, a date as days, a boolean as
0 or 1. Only the edges (decoding an event, printing an answer) know the difference.
tests/core/test_schema.py checks that each type survives the way there and back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.core.errors import BadDefinition

_SYNONYMS = {
    "STRING": "STRING", "VARCHAR": "STRING", "CHAR": "STRING", "TEXT": "STRING",
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "INT", "SMALLINT": "INT", "INT": "INT", "INTEGER": "INT",
    "BIGINT": "BIGINT", "LONG": "BIGINT",
    "FLOAT": "DOUBLE", "REAL": "DOUBLE", "DOUBLE": "DOUBLE",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP",
    "DATE": "DATE",
}  # fmt: skip
_STORAGE = {
    "STRING": "TEXT", "BOOLEAN": "INTEGER", "INT": "INTEGER", "BIGINT": "INTEGER",
    "DOUBLE": "REAL", "TIMESTAMP": "INTEGER", "DATE": "INTEGER",
}  # fmt: skip
SUPPORTED = "STRING, BOOLEAN, INT, BIGINT, DOUBLE, TIMESTAMP, DATE and ARRAY of these"


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type, or an array of one.

    >>> Type.parse("varchar(20)"), Type.parse("array<bigint>").spark
    (Type(name='STRING', array=False), 'ARRAY<BIGINT>')
    """

    name: str
    array: bool = False

    @staticmethod
    def parse(text: str) -> Type:
        """Read a type as SQL writes it, in any spelling that Spark knows for it."""
        word = text.strip().upper()
        inner = re.fullmatch(r"ARRAY\s*<\s*(.+?)\s*>", word)
        base = re.sub(r"\(.*\)", "", inner[1] if inner else word).strip()
        if base not in _SYNONYMS:
            raise BadDefinition(
                f"the type {text.strip()} is not supported", hint=f"supported are {SUPPORTED}."
            )
        return Type(_SYNONYMS[base], inner is not None)

    @property
    def spark(self) -> str:
        return f"ARRAY<{self.name}>" if self.array else self.name

    @property
    def storage(self) -> str:
        """The store's type for a value of this type."""
        return _STORAGE[self.name]

    @property
    def numeric(self) -> bool:
        return not self.array and self.name in {"INT", "BIGINT", "DOUBLE"}


def nested(type: str) -> bool:
    """Whether values of an answer's type are lists or objects, which the store keeps as JSON."""
    return type.startswith(("ARRAY<", "STRUCT<"))


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The declared columns of a stream or table, in order; names are unique whatever their case."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name.lower() in seen:
                raise BadDefinition(f"the column '{column.name}' is declared twice")
            seen.add(column.name.lower())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    @property
    def spark_ddl(self) -> str:
        return ", ".join(f"`{c.name}` {c.type.spark}" for c in self.columns)
