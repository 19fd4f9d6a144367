"""A definition means what Spark means by it: every example of Spark's own pages gives the same
after it was read and written again. Some are drawn; `make prove` takes all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from chance import PROVE, drawn

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, sql_of
from headrace.spark.certain import uncertain

SOME = 80
# What sqlglot cannot read, or reads in another way: no definition can have a VALUES clause, and
# TIME is not a supported type.
UNREAD = re.compile(r">>>|\b[Xx] '|TIME'|VALUES '")


@pytest.fixture(scope="module")
def examples(spark: Any) -> list[str]:
    """The queries on the pages of Spark's functions."""
    found: list[str] = []
    for info in spark._jvm.PythonSQLUtils.listBuiltinFunctionInfos():
        text = info.getExamples().replace("_FUNC_", info.getName())
        found += re.findall(r"^\s*> (SELECT .*?);\s*$", text, re.MULTILINE | re.DOTALL)
    known = sorted({example for example in found if not UNREAD.search(example)})
    return known if PROVE else drawn("examples").sample(known, SOME)


def test_spark_reads_what_was_written(
    spark: Any, examples: list[str], record_property: Callable[[str, object], None]
) -> None:
    compared, wrong = 0, []
    for example in examples:
        try:
            said = spark.sql(example)
        except Exception:  # it needs a setting that is not ours
            continue
        if uncertain(said):
            continue
        compared += 1
        again = sql_of(parse_query(example, Origin("page", 1)))
        if difference := _difference(spark, said, again):
            wrong.append((example, again, difference))
    record_property("examples", compared)
    assert wrong == []
    assert compared > len(examples) * 0.8


def _difference(spark: Any, said: Any, again: str) -> str:
    try:
        written = spark.sql(again)
    except Exception as error:
        return str(error).splitlines()[0]
    plans = [frame._jdf.queryExecution().analyzed() for frame in (said, written)]
    if plans[0].sameResult(plans[1]):
        return ""
    types = [[field.dataType for field in frame.schema.fields] for frame in (said, written)]
    rows = [_rows(frame) for frame in (said, written)]
    return "" if types[0] == types[1] and rows[0] == rows[1] else f"{rows[0]} and {rows[1]}"


def _rows(frame: Any) -> str:
    try:
        return str([tuple(row) for row in frame.collect()])
    except Exception as error:
        return type(error).__name__


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(BadDefinition):
        parse_query("SELECT 4 >>> 1", Origin("page", 1))
