"""DuckDB reads `_raw` as Spark does, also where JSON says the same in several ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.audit.raw_json import raw_json
from headrace.testing.decode import raw_of

RECORDS = [
    b'{"a": 1, "a": 2}',
    b'{"a": 12.50}',
    b'{"a": 100.0}',
    b'{"a": -0.0}',
    b'{"a": 1e2}',
    b'{"a": 1e400}',
    b'{"a": -1E999}',
    b'{"a": 12345678901234567890123456789012345678}',
    b'{"a": 123456789012345678901234567890123456789}',
    b'{"a": 0.1234567890123456789012345678901234567}',
    b'{"a": "\\u00e9 \xc3\xa9"}',
    b'{"a": true}',
    b'{"a": null}',
    b'{"b": 1}',
    b'{"a": "\\ud800"}',
    b'{"a": ' + b"9" * 1_001 + b"}",
    b'{"' + b"k" * 50_001 + b'": 1, "a": 2}',
]


@pytest.fixture(scope="module")
def sparks(spark: Any) -> list[str | None]:
    """What Spark takes for the field `a` of each record, as text."""
    rows = [(n, bytearray(record)) for n, record in enumerate(RECORDS)]
    frame = spark.createDataFrame(rows, "n INT, _raw BINARY")
    read = frame.selectExpr("n", "try_parse_json(cast(_raw as string)) AS _raw")
    return [row.a for row in read.selectExpr("n", "_raw:a::string AS a").orderBy("n").collect()]


@pytest.mark.parametrize("n", range(len(RECORDS)))
def test_a_record_is_read_as_spark_reads_it(sparks: list[str | None], n: int) -> None:
    import duckdb

    text = raw_json(RECORDS[n])
    found = duckdb.execute("SELECT ?::JSON ->> '$.a'", [text]).fetchone()
    assert found is not None
    assert _spelled(found[0]) == _spelled(sparks[n])


@pytest.mark.parametrize("n", range(len(RECORDS)))
def test_the_reference_reads_it_so_too(sparks: list[str | None], n: int) -> None:
    from headrace.testing.reference.interpreter import computed

    event = {"_raw": raw_of(RECORDS[n])}
    found = computed({"a": "CAST(_raw:a AS STRING)"}, event)["a"]
    assert _spelled(found) == _spelled(sparks[n])


def _spelled(text: str | None) -> object:
    """A double is the same however many digits are written."""
    try:
        return float(json.loads(text)) if text is not None and "e" in text.lower() else text
    except ValueError:
        return text
