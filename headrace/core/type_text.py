"""A type as SQL writes it -> its tree.

Spellings are Spark's, in any case; names of fields keep theirs. An unknown type is refused with the
list of known ones. A field of an event is read from JSON, so its type has maps of texts only, and
VARIANT for whole columns; what an expression gives may be of more types. tests/core/test_schema.py
reads each type under each of its names.
"""

from __future__ import annotations

import re
from functools import lru_cache

from headrace.core.errors import BadDefinition
from headrace.core.schema import Type

DEPTH_MAX = 32  # every reader of a type may recurse
PRECISION_MAX = 38
SYNONYMS = {
    "STRING": "STRING", "VARCHAR": "STRING", "CHAR": "STRING", "TEXT": "STRING",
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT", "SHORT": "SMALLINT",
    "INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT", "LONG": "BIGINT",
    "FLOAT": "FLOAT", "REAL": "FLOAT", "DOUBLE": "DOUBLE",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
    "DATE": "DATE", "BINARY": "BINARY", "VARIANT": "VARIANT",
}  # fmt: skip
SUPPORTED = (
    "STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), TIMESTAMP, "
    "TIMESTAMP_NTZ, DATE, BINARY, VARIANT, ARRAY<…>, MAP<STRING, …> and STRUCT<…>"
)
_DECIMALS = {"DECIMAL", "DEC", "NUMERIC"}
_LENGTHS = {"VARCHAR", "CHAR"}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|\w+|\S)")


def parse_type(text: str) -> Type:
    """The type of an event's field that a text says.

    >>> parse_type("map<string, decimal(10, 2)>").spark
    'MAP<STRING, DECIMAL(10,2)>'
    """
    return _read(text, from_json=True)


@lru_cache(maxsize=1_000)  # each read of an answer asks for the types of its columns
def computed_type(text: str) -> Type:
    """The type of an expression that a text says.

    >>> computed_type("map<int,struct<v:variant>>").spark
    'MAP<INT, STRUCT<v: VARIANT>>'
    """
    return _read(text, from_json=False)


def _read(text: str, *, from_json: bool) -> Type:
    reader = _Reader(text.strip(), _TOKEN.findall(text), from_json)
    found = reader.type(1)
    if reader.tokens:
        raise reader.unsupported()
    return found


class _Reader:
    """Takes the tokens of a type from the front."""

    def __init__(self, text: str, tokens: list[str], from_json: bool) -> None:
        self.text, self.tokens, self.from_json = text, tokens, from_json

    def type(self, depth: int) -> Type:
        if depth > DEPTH_MAX:
            raise BadDefinition(f"the type is nested more than {DEPTH_MAX} levels deep")
        word = self.take().upper()
        if word in _DECIMALS:
            return self.decimal()
        if word == "ARRAY":
            self.expect("<")
            return self.closed(Type.array_of(self.inner(depth)))
        if word == "MAP":
            return self.map(depth)
        if word == "STRUCT":
            return self.struct(depth)
        if word not in SYNONYMS:
            raise self.unsupported()
        if word in _LENGTHS and self.accept("("):
            self.number()
            self.expect(")")
        return Type(SYNONYMS[word])

    def inner(self, depth: int) -> Type:
        """A part of another type. Spark makes a VARIANT of a whole column only."""
        found = self.type(depth + 1)
        if found.name == "VARIANT" and self.from_json:
            raise BadDefinition(
                f"the type {self.text} must not contain VARIANT",
                hint="declare the whole column as VARIANT: it accepts any JSON.",
            )
        return found

    def map(self, depth: int) -> Type:
        self.expect("<")
        key = self.type(depth + 1)
        if key != Type("STRING") and self.from_json:
            raise BadDefinition(
                f"the type {self.text} has map keys of type {key.spark}, not STRING",
                hint="the keys of a JSON object are strings: write MAP<STRING, …>.",
            )
        self.expect(",")
        return self.closed(Type.map_of(self.inner(depth), key))

    def struct(self, depth: int) -> Type:
        self.expect("<")
        fields = [self.field(depth)]
        while self.accept(","):
            fields.append(self.field(depth))
        names = [name.lower() for name, _ in fields]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise BadDefinition(f"the type {self.text} has two fields named '{twice}'")
        return self.closed(Type.struct_of(*fields))

    def field(self, depth: int) -> tuple[str, Type]:
        word = self.take()
        name = word[1:-1].replace("``", "`") if word.startswith("`") else word
        if not (word.startswith("`") or word.isidentifier()) or not name:
            raise self.unsupported()
        self.accept(":")
        return name, self.inner(depth)

    def decimal(self) -> Type:
        """As in Spark, a DECIMAL without size has ten digits and none after the point."""
        precision, scale = 10, 0
        if self.accept("("):
            precision = self.number()
            scale = self.number() if self.accept(",") else 0
            self.expect(")")
        if not (1 <= precision <= PRECISION_MAX and scale <= precision):
            raise BadDefinition(
                f"DECIMAL({precision},{scale}) is not a valid type",
                hint=f"the precision must be from 1 to {PRECISION_MAX}, and the scale not larger.",
            )
        return Type.decimal_of(precision, scale)

    def number(self) -> int:
        word = self.take()
        if not (word.isdecimal() and len(word) < 10):
            raise self.unsupported()
        return int(word)

    def closed(self, type: Type) -> Type:
        self.expect(">")
        return type

    def accept(self, sign: str) -> bool:
        found = self.tokens[:1] == [sign]
        if found:
            del self.tokens[0]
        return found

    def take(self) -> str:
        if not self.tokens:
            raise self.unsupported()
        return self.tokens.pop(0)

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.unsupported()

    def unsupported(self) -> BadDefinition:
        return BadDefinition(
            f"the type {self.text} is not supported", hint=f"supported types: {SUPPORTED}."
        )
