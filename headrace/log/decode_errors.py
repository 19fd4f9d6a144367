"""Why an event could not be decoded, in a sentence that names the field.

msgspec's messages name Python's types and paths; these name the declared columns. The reason is
stored with the dead letter, so it is a function of the bytes and the schema alone.
tests/log/test_decode.py reads each of these sentences.
"""

from __future__ import annotations

import re

import msgspec

from headrace.core.schema import Column, Schema, Type

EXPECTED = {
    "STRING": "a string",
    "BOOLEAN": "true or false",
    "TINYINT": "an integer",
    "SMALLINT": "an integer",
    "INT": "an integer",
    "BIGINT": "an integer",
    "FLOAT": "a number",
    "DOUBLE": "a number",
    "TIMESTAMP": "a time such as '2026-01-31T12:00:00Z'",
    "TIMESTAMP_NTZ": "a time without a zone such as '2026-01-31T12:00:00'",
    "DATE": "a date such as '2026-01-31'",
}
_GOT = {
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a decimal number",
    "array": "an array",
    "object": "an object",
}
_MISSING = re.compile(r"Object missing required field `(.*)`")
_PLACE = re.compile(r" - at `\$\.(.*?)(?:\[(\d+)\])?`$", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `[^`]*`, got `([^`]*)`")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN_CHARS = 60
# A value that is quoted comes after "should", so that is looked for first.
_KINDS = (
    (" should be ", "wrong_type"),
    ("not JSON", "not_json"),
    ("not CSV", "not_csv"),
    (" fields, expected ", "not_csv"),
    (" is missing", "missing"),
    (" must not be null", "null"),
    (" is out of range", "out_of_range"),
    ("the event is nested", "too_deep"),
    ("with this id", "conflict"),
    ("the event exceeds", "too_long"),
    ("the file is damaged", "damaged"),
)


_ITEM = re.compile(r"\[(\d+)\]")


class BadEventError(Exception):
    """An event that becomes a dead letter; its text is the reason."""


class BadValueError(Exception):
    """A value that its type does not take. `says` follows the name of the field; `place` is where
    within the field it stands, such as `.items[3].price`.
    """

    def __init__(self, says: str, place: str = "") -> None:
        super().__init__(says)
        self.says, self.place = says, place

    def reason(self, column: Column) -> str:
        return f"{subject(column, self.place)} {self.says}"


def subject(column: Column, place: str = "") -> str:
    """The field that a reason names, and the place within it.

    >>> from headrace.core.schema import Type
    >>> subject(Column("tags", Type("STRING")), "[1]"), subject(Column("a", Type("INT")), ".b[1]")
    ("item 1 of field 'tags'", "field 'a.b[1]'")
    """
    if item := _ITEM.fullmatch(place):
        return f"item {item[1]} of {subject(column)}"
    at = f" at {column.path}" if column.path else ""
    return f"field '{column.name}{place}'{at}"


def quoted(text: str) -> str:
    """A value as a reason quotes it, cut where it is long."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def kind_of(reason: str) -> str:
    """The kind of a reason; there are few, while reasons name fields and values.

    >>> kind_of("field 'ts' is missing"), kind_of("not JSON: the body is empty")
    ('missing', 'not_json')
    """
    return next((kind for words, kind in _KINDS if words in reason), "other")


def reason_of(error: Exception, line: bytes, schema: Schema) -> str:
    """The sentence for an error that the JSON decoder raised on this line."""
    if not line.strip():
        return "not JSON: the body is empty"
    if isinstance(error, UnicodeDecodeError):
        return f"not JSON: not UTF-8 at byte {_first_bad_byte(line)}"
    if isinstance(error, RecursionError):
        return "the event is nested too deeply"
    if isinstance(error, msgspec.ValidationError):
        return _invalid(str(error), schema)
    return _malformed(str(error), line)


def unreadable(column: Column, type_: Type, place: str, value: object) -> str:
    """The sentence for a text that is not a time or a date, at a place within its field."""
    return f"{subject(column, place)} should be {EXPECTED[type_.name]}, not {quoted(repr(value))}"


def _first_bad_byte(line: bytes) -> int:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _malformed(message: str, line: bytes) -> str:
    if "truncated" in message:
        lone = _SURROGATE.search(line)
        return f"not JSON: {'a lone surrogate' if lone else 'unexpected end of input'}"
    return f"not JSON: {message.removeprefix('JSON is malformed: ')}"


def _invalid(message: str, schema: Schema) -> str:
    if missing := _MISSING.match(message):
        return f"field '{missing[1]}' is missing"
    place = _PLACE.search(message)
    wrong = _WRONG_TYPE.match(message)
    if place is None:
        got = _GOT.get(wrong[1], wrong[1]) if wrong else "something else"
        return f"an event should be an object, not {got}"
    column, item = schema.find(place[1]), place[2]
    named = f"item {item} of field '{place[1]}'" if item else f"field '{place[1]}'"
    if wrong and wrong[1] == "null":
        return f"{named} must not be null"
    if wrong:
        expected = _expected(column, item is not None)
        return f"{named} should be {expected}, not {_GOT.get(wrong[1], wrong[1])}"
    return f"{named} is out of range for {_scalar(column.type).name if column else 'its type'}"


def _expected(column: Column | None, item: bool) -> str:
    if column is None:
        return "of another type"
    return "an array" if column.type.nested and not item else EXPECTED[_scalar(column.type).name]


def _scalar(type_: Type) -> Type:
    """The type itself, or that of an array's elements."""
    return type_.element if type_.nested else type_
