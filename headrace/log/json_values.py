"""One JSON value -> a value of its declared type, or the sentence that says why not.

Reads the types that msgspec cannot check exactly: numbers digit by digit, objects with declared
fields, times in a format, and whatever stands at a path. A value is read by itself, so its
neighbours do not matter. Times and dates in ISO 8601 stay text: a whole column of them is read at
once, in columns.py. tests/log/test_types.py has the table of cases.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

import msgspec

from headrace.core.errors import BadDefinition
from headrace.core.schema import Column, Type
from headrace.core.time_format import TimeFormat
from headrace.log.columns import parsed_from_text, unconvertible
from headrace.log.decode_errors import EXPECTED, BadValueError, quoted

Read = Callable[[Any], Any]
# A number with a fraction or an exponent stays as it was written.
decode_json = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_EXACT = Context(prec=100)
# What Spark's parse_json takes: longer ones would fail the job that reads the event.
NUMBER_CHARS_MAX, KEY_CHARS_MAX = 1_000, 50_000
SINGLE_MAX = 2.0**128 - 2.0**103  # from here on a number rounds to the infinite FLOAT
_INFINITE = (float("inf"), float("-inf"))
_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    list: "an array",
    dict: "an object",
}


def reader_of(column: Column) -> Read:
    """The function that reads the values of a column that are not null."""
    return _format_reader(column.format) if column.format else reader(column.type)


def default_of(column: Column) -> Any:
    """The value that stands for what is missing or null; None if there is none."""
    if column.default is None:
        return None
    try:
        value = reader_of(column)(decode_json(column.default))
    except BadValueError as error:
        raise BadDefinition(f"the default of column '{column.name}' {error.says}") from error
    if parsed_from_text(column.type) and not column.format and unconvertible(column.type, [value]):
        said = f"should be {EXPECTED[column.type.name]}, not {quoted(repr(value))}"
        raise BadDefinition(f"the default of column '{column.name}' {said}")
    return value


def reader(type_: Type) -> Read:
    """The function that reads JSON values of a type that are not null."""
    match type_.name:
        case "ARRAY":
            return _array(reader(type_.element))
        case "MAP":
            return _map(reader(type_.element))
        case "STRUCT":
            return _struct({field.name: reader(field.type) for field in type_.fields})
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _whole(type_.name)
        case "FLOAT" | "DOUBLE":
            return _number(type_.name)
        case "DECIMAL":
            return _decimal(type_)
    return _SCALARS[type_.name]


def quoted_json(value: Any) -> str:
    """A JSON value as a reason quotes it."""
    if isinstance(value, msgspec.Raw):
        return quoted(bytes(value).decode())
    return quoted(repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode())


def kind_of_value(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a decimal number")


def _wrong_type(expected: str, value: Any) -> BadValueError:
    return BadValueError(f"should be {expected}, not {kind_of_value(value)}")


def _wrong_value(expected: str, value: Any, why: str = "") -> BadValueError:
    return BadValueError(f"should be {expected}, not {quoted_json(value)}{why}")


def _out_of_range(type_: str, value: Any) -> BadValueError:
    return BadValueError(f"is out of range for {type_}: {quoted_json(value)}")


def _exactly(kind: type, expected: str) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _wrong_type(expected, value)
        return value

    return read


def _whole(name: str) -> Read:
    bound = 1 << (_BITS[name] - 1)

    def read(value: Any) -> int:
        if type(value) is not int:
            raise _wrong_type("an integer", value)
        if not -bound <= value < bound:
            raise _out_of_range(name, value)
        return value

    return read


def _number(name: str) -> Read:
    bound = SINGLE_MAX if name == "FLOAT" else float("inf")

    def read(value: Any) -> float:
        if type(value) not in (int, msgspec.Raw):
            raise _wrong_type("a number", value)
        try:
            number = float(value if type(value) is int else bytes(value))
        except OverflowError:
            raise _out_of_range(name, value) from None
        if not abs(number) < bound:
            raise _out_of_range(name, value)
        return number

    return read


def _decimal(type_: Type) -> Read:
    """Exact, or refused: nothing is rounded."""
    assert type_.size is not None
    (precision, scale), name = type_.size, type_.spark
    unit = Decimal(1).scaleb(-scale)

    def read(value: Any) -> Decimal:
        number = _exact(value, f"a {name}")
        if number.is_zero():
            return Decimal(0)
        if number.adjusted() >= precision - scale:
            raise _out_of_range(name, value)
        _, digits, exponent = number.as_tuple()
        zeros = len(digits) - len(bytes(digits).rstrip(b"\0"))
        if int(exponent) + zeros < -scale:
            raise _wrong_value(
                f"a {name}", value, f", which has more than {scale} digits after the decimal point"
            )
        return number.quantize(unit, context=_EXACT)

    return read


def _exact(value: Any, expected: str) -> Decimal:
    if type(value) is int:
        return Decimal(value)
    if type(value) not in (str, msgspec.Raw):
        raise _wrong_type(expected, value)
    text = value if type(value) is str else bytes(value).decode()
    if not _DECIMAL.fullmatch(text):
        raise _wrong_value(expected, value)
    return Decimal(text)


def _binary(value: Any) -> bytes:
    if type(value) is not str:
        raise _wrong_type("base64 text", value)
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _wrong_value("base64 text", value) from None


def _variant(value: Any) -> str:
    """Any JSON, as one text that Spark's parse_json takes. Of a key that comes twice the last one
    has counted already.
    """
    _check_variant(value)
    return msgspec.json.encode(value).decode()


def _check_variant(value: Any) -> None:
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():
            if len(key) > KEY_CHARS_MAX:
                raise BadValueError(f"has a key of more than {KEY_CHARS_MAX} characters")
            _check_variant(inner)
    elif kind is list:
        for inner in value:
            _check_variant(inner)
    elif kind is msgspec.Raw or kind is int:
        _check_number(value)


def _check_number(value: Any) -> None:
    text = str(value) if type(value) is int else bytes(value).decode()
    if len(text) > NUMBER_CHARS_MAX or float(text) in _INFINITE:
        raise _out_of_range("a number in a VARIANT", value)


def _array(read: Read) -> Read:
    def read_all(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _wrong_type("an array", value)
        found: list[Any] = []
        try:
            for item in value:
                found.append(None if item is None else read(item))
        except BadValueError as error:
            error.place = f"[{len(found)}]{error.place}"
            raise
        return found

    return read_all


def _map(read: Read) -> Read:
    def read_all(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise _wrong_type("an object", value)
        found: list[tuple[str, Any]] = []
        key = ""
        try:
            for key, item in value.items():
                found.append((key, None if item is None else read(item)))
        except BadValueError as error:
            error.place = f".{key}{error.place}"
            raise
        return found

    return read_all


def _struct(reads: Mapping[str, Read]) -> Read:
    """An object with these fields; others are ignored, as in the event itself."""

    def read_all(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong_type("an object", value)
        found: dict[str, Any] = {}
        name = ""
        try:
            for name, read in reads.items():
                item = value.get(name)
                found[name] = None if item is None else read(item)
        except BadValueError as error:
            error.place = f".{name}{error.place}"
            raise
        return found

    return read_all


def _format_reader(text: str) -> Read:
    format = TimeFormat.parse(text)
    kinds = (int, str, msgspec.Raw) if format.numbers else (str,)

    def read(value: Any) -> int:
        if type(value) not in kinds:
            raise _wrong_type(format.expected, value)
        try:
            return format.read(bytes(value).decode() if type(value) is msgspec.Raw else value)
        except ValueError:
            raise _wrong_value(format.expected, value) from None
        except OverflowError:
            raise _out_of_range("TIMESTAMP (years 1 to 9999)", value) from None

    return read


_SCALARS: dict[str, Read] = {
    "STRING": _exactly(str, EXPECTED["STRING"]),
    "BOOLEAN": _exactly(bool, EXPECTED["BOOLEAN"]),
    "TIMESTAMP": _exactly(str, EXPECTED["TIMESTAMP"]),
    "TIMESTAMP_NTZ": _exactly(str, EXPECTED["TIMESTAMP_NTZ"]),
    "DATE": _exactly(str, EXPECTED["DATE"]),
    "BINARY": _binary,
    "VARIANT": _variant,
}
