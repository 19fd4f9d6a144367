"""Each type under each of its names, and there and back: a value that a store, an answer or an
event holds is the value that went in.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.core.aggregate.model import BIGINT, DOUBLE
from headrace.core.errors import BadDefinition
from headrace.core.schema import Column, Schema, Type
from headrace.core.type_text import DEPTH_MAX, SUPPORTED, SYNONYMS
from headrace.log.columns import arrow_type

SCALARS = [
    "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIMESTAMP",
    "TIMESTAMP_NTZ", "DATE", "BINARY", "VARIANT",
]  # fmt: skip
PARTS = st.sampled_from([Type(name) for name in SCALARS if name != "VARIANT"]) | st.builds(
    lambda scale, more: Type.decimal_of(scale + more, scale), st.integers(0, 19), st.integers(1, 19)
)
NAMES = st.text(min_size=1, max_size=5)
NESTED = st.recursive(
    PARTS,
    lambda inner: (
        st.builds(Type.array_of, inner)
        | st.builds(Type.map_of, inner)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
        .filter(lambda fields: len({name.lower() for name in fields}) == len(fields))
        .map(lambda fields: Type.struct_of(*fields.items()))
    ),
    max_leaves=8,
)
TYPES = [Type(name) for name in SCALARS]

SPELLINGS = {
    "STRING": ["string", "VARCHAR(20)", "char(3)", "Text"],
    "BOOLEAN": ["boolean"],
    "TINYINT": ["tinyint", "byte"],
    "SMALLINT": ["smallint", "short"],
    "INT": ["int", "integer"],
    "BIGINT": ["bigint", "long"],
    "FLOAT": ["float", "real"],
    "DOUBLE": ["double"],
    "TIMESTAMP": ["timestamp", "timestamp_ltz"],
    "TIMESTAMP_NTZ": ["timestamp_ntz"],
    "DATE": ["date"],
    "BINARY": ["binary"],
    "VARIANT": ["variant"],
}


@example(Type.struct_of(("A\U000e0100", Type("STRING"))))
@given(NESTED)
def test_type_survives_the_way_to_spark_and_back(type: Type) -> None:
    assert Type.parse(type.spark) == type
    assert Type.parse(Type.array_of(type).spark) == Type.array_of(type)


@pytest.mark.parametrize("name", SCALARS)
def test_each_spelling_is_the_same_type(name: str) -> None:
    for spelling in SPELLINGS[name]:
        assert Type.parse(spelling) == Type(name)
        if name != "VARIANT":
            assert Type.parse(f" array < {spelling} > ") == Type.array_of(Type(name))


@pytest.mark.parametrize(
    ("text", "precision", "scale"),
    [("DECIMAL", 10, 0), ("dec(5)", 5, 0), ("numeric( 38 , 38 )", 38, 38)],
)
def test_a_decimal_has_the_size_that_spark_gives_it(text: str, precision: int, scale: int) -> None:
    assert Type.parse(text) == Type.decimal_of(precision, scale)


def test_tables_of_types_speak_of_the_same_types() -> None:
    assert set(SYNONYMS.values()) == set(SCALARS) == set(SPELLINGS)
    assert [name for name in SCALARS if name not in SUPPORTED] == []


@pytest.mark.parametrize(
    "text", ["MAP<INT, STRUCT<v: VARIANT>>", "ARRAY<MAP<DATE, STRING>>", "MAP<DECIMAL(4,2), INT>"]
)
def test_an_expression_may_give_more_than_an_event(text: str) -> None:
    assert Type.of(text).spark == text
    with pytest.raises(BadDefinition):
        Type.parse(text)


ARROW = {
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(),
    "INT": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"), "TIMESTAMP_NTZ": pa.timestamp("us"),
    "DATE": pa.date32(), "BINARY": pa.binary(), "VARIANT": pa.string(),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "ARRAY<ARRAY<INT>>": pa.list_(pa.list_(pa.int32())),
    "MAP<STRING, DATE>": pa.map_(pa.string(), pa.date32()),
    "STRUCT<a: INT, `b c`: ARRAY<BINARY>>": pa.struct(
        [("a", pa.int32()), ("b c", pa.list_(pa.binary()))]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "arrow"), ARROW.items())
def test_type_of_an_events_column_is_the_declared_one(text: str, arrow: pa.DataType) -> None:
    assert arrow_type(Type.parse(text)) == arrow


def test_numbers_are_what_can_be_added_and_no_array_is() -> None:
    numeric = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"]
    assert [type.spark for type in TYPES if type.numeric] == numeric
    assert not any(Type.array_of(type).numeric for type in TYPES)
    assert BIGINT.numeric
    assert DOUBLE.numeric


@pytest.mark.parametrize(
    "text",
    ["BLOB", "ARRAY<BLOB>", "", "ARRAY", "ARRAY<INT", "ARRAY<INT>>", "STRUCT<>", "STRUCT<a>",
     "MAP<STRING>", "INT(5)", "VARCHAR(x)", "DECIMAL(a)", "DECIMAL(5,2", "INT INT", "`INT`"],
)  # fmt: skip
def test_other_types_are_refused_with_the_ones_that_are_not(text: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        Type.parse(text)
    assert str(caught.value) == (
        f"BadDefinition: the type {text} is not supported\n  hint: supported types: {SUPPORTED}."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("DECIMAL(39,2)", "DECIMAL(39,2) is not a valid type"),
        ("DECIMAL(0)", "DECIMAL(0,0) is not a valid type"),
        ("DECIMAL(5,6)", "DECIMAL(5,6) is not a valid type"),
        ("MAP<INT, INT>", "the type MAP<INT, INT> has map keys of type INT, not STRING"),
        ("ARRAY<VARIANT>", "the type ARRAY<VARIANT> must not contain VARIANT"),
        ("STRUCT<a: INT, A: INT>", "the type STRUCT<a: INT, A: INT> has two fields named 'a'"),
        ("ARRAY<" * 32 + "INT" + ">" * 32, "the type is nested more than 32 levels deep"),
        ("ARRAY<" * 50_000, "the type is nested more than 32 levels deep"),
    ],
)
def test_a_type_that_is_almost_one_is_refused_with_what_is_wrong(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        Type.parse(text)
    assert caught.value.message == sentence


def test_a_type_may_be_as_deep_as_the_bound() -> None:
    text = "ARRAY<" * (DEPTH_MAX - 1) + "INT" + ">" * (DEPTH_MAX - 1)
    assert Type.parse(text).spark == text


def test_columns_are_found_whatever_their_case_and_keep_their_spelling() -> None:
    schema = Schema(
        (Column("userId", Type("STRING")), Column("n", Type.array_of(Type("INT")), False))
    )
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
