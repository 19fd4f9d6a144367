"""The options of the generator.

Beside its own options the generator takes, for each declared column, `<column>.values` (a list with
commas, the first the most frequent) or `<column>.cardinality` (how many different values).
tests/ingest/test_connector.py reads each refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headrace.core.schema import Column, Type
from headrace.define.definitions import StreamDefinition
from headrace.ingest.csv_json import value_reader
from headrace.ingest.option_values import duration, fraction, number_above_zero, whole_number
from headrace.ingest.options import bad_value, option, read_options, unknown_option

_CARDINALITY = whole_number(1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorOptions:
    rate: float = option("100", "events per second", number_above_zero)
    seed: int = option("1", "the same seed generates the same events", whole_number(0, 10**18 - 1))
    out_of_order: float = option("0.05", "fraction of events that are late", fraction)
    late_by: int = option("30 minutes", "maximum lateness of an event", duration)
    duplicates: float = option("0.02", "fraction of events that are duplicates", fraction)
    malformed: float = option("0.01", "fraction of events that are malformed", fraction)
    count: int = option(
        "0", "number of events to generate; 0 is unlimited", whole_number(0, 10**15)
    )


def read_generator_options(definition: StreamDefinition) -> GeneratorOptions:
    """The generator's own options; those of the columns are checked with them."""
    column_values(definition)
    plain = {name: text for name, text in definition.options.items() if "." not in name}
    return read_options(definition, GeneratorOptions, plain)


def column_values(definition: StreamDefinition) -> dict[str, list[Any]]:
    """The values that the definition lists or counts, by the column's name."""
    return {
        column.name: _values(definition, column, name, what, text)
        for column, name, what, text in _column_options(definition)
    }


def _column_options(definition: StreamDefinition) -> Iterator[tuple[Column, str, str, str]]:
    for name, text in definition.options.items():
        column_name, dot, what = name.rpartition(".")
        column = definition.schema.stored.find(column_name)
        if dot and (column is None or what.lower() not in ("values", "cardinality")):
            known = [
                f"{c}.{w}"
                for c in definition.schema.stored.names
                for w in ("values", "cardinality")
            ]
            raise unknown_option(definition, name, known)
        if column is not None:
            yield column, name, what.lower(), text


def _values(
    definition: StreamDefinition, column: Column, name: str, what: str, text: str
) -> list[Any]:
    if what == "values":
        values = _listed(column.type, text)
        if not values:
            must_be = f"a comma-separated list of {column.type.spark}, such as 'a,b,c'"
            raise bad_value(definition, name, text, must_be)
        return values
    try:
        many = _CARDINALITY(text)
    except ValueError as error:
        raise bad_value(definition, name, text, str(error)) from error
    return numbered(column, many)


def _listed(kind: Type, text: str) -> list[Any]:
    """The values in a list with commas; none if one of them is not of this type."""
    read = value_reader(kind)
    values = [read(word.strip()) for word in text.split(",") if word.strip()]
    typed = kind.numeric or kind.name == "BOOLEAN"
    return [] if typed and any(isinstance(value, str) for value in values) else values


def numbered(column: Column, many: int) -> list[Any]:
    """So many different values for a column: numbers, or its name with a number."""
    if column.type.numeric:
        return list(range(1, many + 1))
    return [f"{column.name}-{n}" for n in range(1, many + 1)]
