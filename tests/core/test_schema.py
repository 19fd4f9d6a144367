"""Each type under each of its names, and there and back: a value that a store, an answer or an
event holds is the value that went in.
"""

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.aggregate.nouns import BIGINT, DOUBLE
from headrace.core.errors import BadDefinition
from headrace.core.schema import _STORAGE, _SYNONYMS, SUPPORTED, Column, Schema, Type
from headrace.log.columns import arrow_type

SCALARS = ["STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "TIMESTAMP", "DATE"]
TYPES = [Type(name, array) for name in SCALARS for array in (False, True)]

SPELLINGS = {
    "STRING": ["string", "VARCHAR(20)", "char(3)", "Text"],
    "BOOLEAN": ["boolean"],
    "INT": ["int", "integer", "smallint", "tinyint"],
    "BIGINT": ["bigint", "long"],
    "DOUBLE": ["double", "float", "real"],
    "TIMESTAMP": ["timestamp", "timestamp_ltz"],
    "DATE": ["date"],
}
# A value of each type in storage form: microseconds, days, 0 or 1.
STORED = {
    "STRING": "naïve 'x'",
    "BOOLEAN": 1,
    "INT": -(2**31),
    "BIGINT": 2**63 - 1,
    "DOUBLE": 0.1,
    "TIMESTAMP": -1,
    "DATE": 20_000,
}


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.spark)
def test_type_survives_the_way_to_spark_and_back(type: Type) -> None:
    assert Type.parse(type.spark) == type


@pytest.mark.parametrize("name", SCALARS)
def test_each_spelling_is_the_same_type(name: str) -> None:
    for spelling in SPELLINGS[name]:
        assert Type.parse(spelling) == Type(name)
        assert Type.parse(f" array < {spelling} > ") == Type(name, array=True)


def test_tables_of_types_speak_of_the_same_types() -> None:
    assert set(_SYNONYMS.values()) == set(_STORAGE) == set(SCALARS) == set(SPELLINGS)
    assert [name for name in SCALARS if name not in SUPPORTED] == []


@pytest.mark.parametrize("name", SCALARS)
def test_stored_value_survives_the_store(name: str) -> None:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE t (x {Type(name).storage}) STRICT")
    db.execute("INSERT INTO t VALUES (?)", (STORED[name],))
    found = db.execute("SELECT x FROM t").fetchone()[0]
    db.close()
    assert (found, type(found)) == (STORED[name], type(STORED[name]))


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.spark)
def test_type_of_an_events_column_is_the_declared_one(type: Type) -> None:
    found = arrow_type(type)
    inner = found.value_type if type.array else found
    names = {
        "STRING": pa.string(), "BOOLEAN": pa.bool_(), "INT": pa.int32(), "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(), "TIMESTAMP": pa.timestamp("us", "UTC"), "DATE": pa.date32(),
    }  # fmt: skip
    assert pa.types.is_list(found) == type.array
    assert inner == names[type.name]


def test_numbers_are_what_can_be_added_and_no_array_is() -> None:
    assert [type.spark for type in TYPES if type.numeric] == ["INT", "BIGINT", "DOUBLE"]
    assert BIGINT.numeric
    assert DOUBLE.numeric


@pytest.mark.parametrize("text", ["BLOB", "DECIMAL(10, 2)", "MAP<STRING, INT>", "ARRAY<BLOB>", ""])
def test_other_types_are_refused_with_the_ones_that_are_not(text: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        Type.parse(text)
    assert str(caught.value) == (
        f"BadDefinition: the type {text} is not supported\n  hint: supported are {SUPPORTED}."
    )


def test_arrays_of_arrays_are_refused() -> None:
    with pytest.raises(BadDefinition, match="the type ARRAY<ARRAY<INT>> is not supported"):
        Type.parse("ARRAY<ARRAY<INT>>")


def test_columns_are_found_whatever_their_case_and_keep_their_spelling() -> None:
    schema = Schema((Column("userId", Type("STRING")), Column("n", Type("INT", True), False)))
    assert schema.find("USERID") == schema.columns[0]
    assert schema.find("other") is None
    assert schema.names == ("userId", "n")
    assert schema.spark_ddl == "`userId` STRING, `n` ARRAY<INT>"


@given(st.lists(st.sampled_from(["a", "A", "b", "B", "c"]), min_size=1, max_size=4))
def test_name_is_declared_once_whatever_its_case(names: list[str]) -> None:
    columns = tuple(Column(name, Type("INT")) for name in names)
    folded = [name.lower() for name in names]
    if len(set(folded)) == len(folded):
        assert Schema(columns).names == tuple(names)
        return
    again = next(n for i, n in enumerate(names) if n.lower() in folded[:i])
    with pytest.raises(BadDefinition) as caught:
        Schema(columns)
    assert caught.value.message == f"the column '{again}' is declared twice"
