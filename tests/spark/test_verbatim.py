"""A definition means what Spark means by it: every example of Spark's own pages gives the same
through a derived stream and through a view as in Spark alone. Some are drawn; `make prove` takes
all. Where the compiler has replaced a part of an expression, sqlglot writes the rest again, so the
examples are compared in that form too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chance import PROVE, drawn
from engines import Parts, compile_sql
from sqlglot import exp

from headrace.compile.calls import has_aggregate
from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, parse_read, sql_of
from headrace.spark.determinism import nondeterministic_part
from tests.laws.test_one_meaning import shown

SOME, TOGETHER = 80, 40
# Lists, objects and bytes have another form in an answer: tests/transcripts/nested_keys.yaml.
SCALAR = re.compile(
    r"string|boolean|tinyint|smallint|int|bigint|float|double|decimal.*|timestamp|date"
)
AT = Origin("page", 1)
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


Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def known(spark: Any, examples: list[str]) -> dict[str, Any]:
    """What Spark alone makes of each example that gives the same each time."""
    found = {}
    for example in examples:
        try:
            frame = spark.sql(example)
        except Exception:  # it needs a setting that is not ours
            continue
        if not nondeterministic_part(frame, example):
            found[example] = frame
    assert len(found) > len(examples) * 0.8
    return found


def test_spark_reads_what_sqlglot_writes(
    spark: Any, known: dict[str, Any], record_property: Record
) -> None:
    record_property("examples", len(known))
    again = {example: sql_of(parse_read(example, AT)) for example in known}
    found = [(e, again[e], _difference(spark, frame, again[e])) for e, frame in known.items()]
    assert [difference for difference in found if difference[2]] == []


def test_a_stream_and_a_view_give_what_spark_gives(
    spark: Any, known: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    good = [example for example, frame in known.items() if _rows(frame).startswith("[")]
    items = [item for example in good for item in _of_one_row(example)]
    # Spark takes >> for the end of two types if a < precedes it anywhere in the statement.
    items.sort(key=lambda item: ">>" not in item)
    compared, wrong = 0, []
    for first in range(0, len(items), TOGETHER):
        some = items[first : first + TOGETHER]
        folder = tmp_path / str(first)
        folder.mkdir()
        alone = spark.sql("SELECT " + ", ".join(f"{e} AS e{n}" for n, e in enumerate(some)))
        held = {f.name for f in alone.schema.fields if SCALAR.fullmatch(f.dataType.simpleString())}
        sql = _definitions(some, held)
        stream, view = _given(spark, folder, sql)
        [row] = alone.collect()
        said = row.asDict()
        for n, item in enumerate(some):
            name = f"e{n}"
            compared += 1
            if repr(stream[name]) != repr(said[name]):
                wrong.append((item, "stream", stream[name], said[name]))
            if name in held and repr(shown(view[name])) != repr(shown(said[name])):
                wrong.append((item, "view", view[name], said[name]))
    record_property("examples", compared)
    assert wrong == [], "\n".join(map(str, wrong))


def _of_one_row(example: str) -> list[str]:
    """The expression of an example, if a stream can have it: of one row and no other relation."""
    query = parse_query(example, AT)
    selects = list(query.find_all(exp.Select, exp.SetOperation))
    if len(selects) > 1 or query.args.get("from_") or len(query.selects) > 1:
        return []
    return [sql_of(item.unalias()) for item in query.selects if _is_scalar(item)]


def _is_scalar(item: exp.Expr) -> bool:
    makes_rows = {"explode", "posexplode", "inline", "stack", "json_tuple", "variant_explode"}
    names = {node.name.lower() for node in item.find_all(exp.Anonymous)}
    names |= {node.key for node in item.find_all(exp.Func)}
    return not has_aggregate(item) and not makes_rows & {n.removesuffix("_outer") for n in names}


def _definitions(items: list[str], held: set[str]) -> str:
    selected = [f"{item} AS e{n}" for n, item in enumerate(items)]
    keys = [item for n, item in enumerate(selected) if f"e{n}" in held]
    return (
        "CREATE STREAM events (k STRING);"
        f"CREATE STREAM made AS SELECT {', '.join(selected)} FROM events;"
        f"CREATE VIEW kept AS SELECT {', '.join(keys)}, count(*) AS n FROM events GROUP BY ALL;"
    )


def _given(spark: Any, folder: Path, sql: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The only row of the stream, and of the view."""
    compiled = compile_sql(spark, folder, sql)
    parts = Parts(compiled, folder / "state")
    try:
        parts.intake("events").accept([b'{"k": "a"}'])
        parts.catch_up()
        [view] = parts.reader.view("kept").rows
        with_event = compiled.batch
        with_event.sql("SELECT 'a' AS k").createOrReplaceTempView("events")
        [stream] = with_event.sql(compiled.plan.derived[0].sql).collect()
        return stream.asDict(), view
    finally:
        parts.close()


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
