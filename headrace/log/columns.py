"""Values of decoded events -> Arrow columns, a whole column at a time.

What a value means never depends on its neighbours: `unconvertible` finds the rows that a column
cannot take by halving, with the very function that converts the column. A time is read as ISO 8601
with 'T' or a space; `Z` or an offset gives its zone, and one without a zone is in UTC; digits of a
fraction after the sixth are cut off. Years are 1 to 9999, as in Spark. In lists, maps and structs
times are read the same way, at any depth. tests/log/test_columns.py checks that a column converts
as its values do one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.schema import Type

TIME, _ZONELESS = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_ARROW = {
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(),
    "INT": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "TIMESTAMP": TIME, "TIMESTAMP_NTZ": _ZONELESS, "DATE": pa.date32(), "BINARY": pa.binary(),
    "VARIANT": pa.string(),  # its JSON text, which Spark parses
}  # fmt: skip
# These come as text and may still be refused here.
_PARSED = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
_TIME_CHARS_MIN = len("2026-01-01T00")
_TIME_CHARS_SHORT = len("2026-01-01T00:00:00.123456")  # beyond it a fraction may be too fine
_ZONED = r"(Z|[T ].*[+-]\d{2}(:?\d{2})?)$"
_FINE_FRACTION = r"(\.\d{6})\d{1,3}([^\d]|$)"
_DATE = (
    r"^(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)"
    r"|02-(0[1-9]|1\d|2[0-8]))|\d\d([02468][048]|[13579][26])-02-29)"
)
_USUAL_DATE = _DATE + "$"
_USUAL_TIME = (
    _DATE + r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?$"
)
_USUAL = {"TIMESTAMP": _USUAL_TIME, "TIMESTAMP_NTZ": _USUAL_TIME, "DATE": _USUAL_DATE}
_TEXTS = _ARROW | dict.fromkeys(_PARSED, pa.string())
_YEARS_US = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_YEARS_DAYS = (-719_162, 2_932_896)


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of a declared type.

    >>> arrow_type(Type.parse("ARRAY<BIGINT>"))
    ListType(list<item: int64>)
    """
    return arrow_of(type_, _ARROW)


def arrow_of(type_: Type, scalars: Mapping[str, pa.DataType]) -> pa.DataType:
    """The Arrow type, with these types of its scalars."""
    match type_.name:
        case "ARRAY":
            return pa.list_(arrow_of(type_.element, scalars))
        case "MAP":
            return pa.map_(arrow_of(type_.key, scalars), arrow_of(type_.element, scalars))
        case "STRUCT":
            return pa.struct([(f.name, arrow_of(f.type, scalars)) for f in type_.fields])
        case "DECIMAL" if type_.size:
            return pa.decimal128(*type_.size)
    return scalars[type_.name]


def parsed_from_text(type_: Type) -> bool:
    """Whether values of this type, or parts of them, come as text that is read only here."""
    return type_.has(*_PARSED)


def convert(type_: Type, values: Sequence[Any]) -> pa.Array:
    """The Arrow array of these values; raises ArrowInvalid if one of them cannot be taken."""
    if not parsed_from_text(type_):
        return pa.array(values, arrow_type(type_))
    return _read(type_, pa.array(values, arrow_of(type_, _TEXTS)))


def unconvertible(type_: Type, values: Sequence[Any]) -> list[int]:
    """The indexes of the values that `convert` cannot take.

    >>> unconvertible(Type("DATE"), ["2026-02-28", "2026-02-29", None, "soon"])
    [1, 3]
    """
    suspects = _suspects(type_, values)
    rest = list(values)
    for i in suspects:
        rest[i] = None
    bad = [i for i in suspects if _refused_by_halves(type_, values[i : i + 1], i)]
    return sorted(bad + _refused_by_halves(type_, rest, 0))


def _suspects(type_: Type, values: Sequence[Any]) -> list[int]:
    """Values that are probably not valid. Only `convert` decides; this avoids most halving."""
    usual = _USUAL.get(type_.name)
    if usual is None:
        return []
    odd = pc.invert(pc.match_substring_regex(pa.array(values, pa.string()), usual))
    found: list[int] = pc.indices_nonzero(odd.fill_null(False)).to_pylist()
    return found


def _refused_by_halves(type_: Type, values: Sequence[Any], first: int) -> list[int]:
    try:
        convert(type_, values)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [first]
        half = len(values) // 2
        lower = _refused_by_halves(type_, values[:half], first)
        return lower + _refused_by_halves(type_, values[half:], first + half)
    return []


def unreadable_part(type_: Type, value: Any, place: str = "") -> tuple[Type, str, Any] | None:
    """The part of a refused value that is not a time or date: its type, place and text."""
    if value is None or not parsed_from_text(type_):
        return None
    if not type_.nested:
        return (type_, place, value) if _refused_by_halves(type_, [value], 0) else None
    parts = ((t, part, f"{place}{step}") for t, part, step in _parts(type_, value))
    found = (unreadable_part(t, part, where) for t, part, where in parts)
    return next((part for part in found if part), None)


def _parts(type_: Type, value: Any) -> Iterator[tuple[Type, Any, str]]:
    """The parts of a list, map or struct, and the step to each."""
    if type_.name == "ARRAY":
        yield from ((type_.element, item, f"[{n}]") for n, item in enumerate(value))
    elif type_.name == "MAP":
        yield from ((type_.element, item, f".{key}") for key, item in value)
    else:
        yield from ((f.type, value[f.name], f".{f.name}") for f in type_.fields)


def _read(type_: Type, wire: pa.Array) -> pa.Array:
    """The array with the texts in it read as times and dates."""
    if not parsed_from_text(type_):
        return wire
    match type_.name:
        case "TIMESTAMP":
            return _times(wire)
        case "TIMESTAMP_NTZ":
            return _zoneless(wire)
        case "DATE":
            return _dates(wire)
        case "STRUCT":
            # A field of a null struct is an empty text; flattened it is null.
            pairs = zip(type_.fields, wire.flatten(), strict=True)
            fields, kind = [_read(field.type, part) for field, part in pairs], arrow_type(type_)
            return pa.StructArray.from_arrays(fields, fields=list(kind), mask=wire.is_null())
        case "MAP":
            items, mask = _read(type_.element, wire.items), wire.is_null()
            return pa.MapArray.from_arrays(wire.offsets, wire.keys, items, mask=mask)
    items = _read(type_.element, wire.values)
    return pa.ListArray.from_arrays(wire.offsets, items, arrow_type(type_), mask=wire.is_null())


def _dates(texts: pa.Array) -> pa.Array:
    days = texts.cast(pa.date32())
    _check_within(days.view(pa.int32()), _YEARS_DAYS)
    return days


def _zoneless(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring_regex(texts, _FINE_FRACTION, r"\1\2", max_replacements=1)
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    if lengths["min"] is not None and lengths["min"] < _TIME_CHARS_MIN:
        raise pa.ArrowInvalid("a time has a date and an hour at least")
    times = texts.cast(_ZONELESS)
    _check_within(times.view(pa.int64()), _YEARS_US)
    return times


def _times(texts: pa.Array) -> pa.Array:
    """Times from texts. A cast that fails costs thirty times one that works, so none is tried."""
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    if lengths["min"] is not None and lengths["min"] < _TIME_CHARS_MIN:
        raise pa.ArrowInvalid("a time has a date and an hour at least")
    in_utc = _all(pc.ends_with(texts, "Z"))
    if lengths["max"] is not None and lengths["max"] > _TIME_CHARS_SHORT + in_utc:
        texts = pc.replace_substring_regex(texts, _FINE_FRACTION, r"\1\2", max_replacements=1)
    times = texts.cast(TIME) if in_utc else _times_of_any_zone(texts)
    _check_within(times.view(pa.int64()), _YEARS_US)
    return times


def _times_of_any_zone(texts: pa.Array) -> pa.Array:
    zoned = pc.match_substring_regex(texts, _ZONED)
    if _all(zoned):
        return texts.cast(TIME)
    if _all(pc.invert(zoned)):
        return _in_utc(texts.cast(_ZONELESS))
    nothing = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, texts, nothing).cast(TIME)
    without = pc.if_else(zoned, nothing, texts).cast(_ZONELESS)
    return pc.coalesce(with_zone, _in_utc(without))


def _all(flags: pa.Array) -> bool:
    return bool(pc.all(flags, min_count=0).as_py())


def _in_utc(times: pa.Array) -> pa.Array:
    return times.view(pa.int64()).view(TIME)


def _check_within(numbers: pa.Array, bounds: tuple[int, int]) -> None:
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not bounds[0] <= found["min"] <= found["max"] <= bounds[1]:
        raise pa.ArrowInvalid("the year is not within 1 to 9999")
