"""Why an event could not be decoded, in a sentence that names the field.

msgspec's messages speak of Python's types and of paths; these speak of the declared columns. The
reason is stored with the dead letter, so it is a function of the bytes and the schema alone.
tests/log/test_decode.py reads each of these sentences.
"""

from __future__ import annotations

import re

import msgspec

from headrace.core.schema import Column, Schema

EXPECTED = {
    "STRING": "a string",
    "BOOLEAN": "true or false",
    "INT": "an integer",
    "BIGINT": "an integer",
    "DOUBLE": "a number",
    "TIMESTAMP": "a time such as '2026-01-31T12:00:00Z'",
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
    (" should hold ", "wrong_type"),
    ("not JSON", "not_json"),
    ("not CSV", "not_csv"),
    ("fields and", "not_csv"),
    (" is missing", "missing"),
    (" must not be null", "null"),
    (" is out of range", "out_of_range"),
    ("nested too deep", "too_deep"),
    ("with this id", "conflict"),
)


class BadEventError(Exception):
    """An event that becomes a dead letter; its text is the reason."""


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
        return "nested too deep"
    if isinstance(error, msgspec.ValidationError):
        return _invalid(str(error), schema)
    return _malformed(str(error), line)


def unreadable(column: Column, value: object) -> str:
    """The sentence for a text that is not a time or a date."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
    each = "hold " if column.type.array else "be "
    return f"field '{column.name}' should {each}{EXPECTED[column.type.name]}, not {shown}"


def _first_bad_byte(line: bytes) -> int:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _malformed(message: str, line: bytes) -> str:
    if "truncated" in message:
        lone = _SURROGATE.search(line)
        return f"not JSON: {'a lone surrogate' if lone else 'it ends too early'}"
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
    subject = f"item {item} of field '{place[1]}'" if item else f"field '{place[1]}'"
    if wrong and wrong[1] == "null":
        return f"{subject} must not be null"
    if wrong:
        expected = _expected(column, item is not None)
        return f"{subject} should be {expected}, not {_GOT.get(wrong[1], wrong[1])}"
    return f"{subject} is out of range for {column.type.name if column else 'its type'}"


def _expected(column: Column | None, item: bool) -> str:
    if column is None:
        return "of another type"
    return "an array" if column.type.array and not item else EXPECTED[column.type.name]
