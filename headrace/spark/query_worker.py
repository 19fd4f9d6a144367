"""The process that runs ad-hoc queries: one request a line in, one answer a line out.

Each request brings its own relations, which are gone before the next. The fence is checked here, in
the process that runs the query, and Spark's own doors to files and settings are shut beside it.
When the pipe from the client closes, the process ends at once, in the middle of a query too.
tests/spark/test_query_worker.py checks answers, limits and refusals.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.core.errors import BadQuery, EngineFailed, HeadraceError, LimitReached
from headrace.define.functions import FunctionDefinition, load_functions
from headrace.define.settings import QuerySettings, SparkSettings
from headrace.spark.asked import MATCHES, asks_for_matches, matches
from headrace.spark.certain import refuse_uncertain
from headrace.spark.fence import bad_query, check
from headrace.spark.fence_text import FenceLimits
from headrace.spark.functions import register_functions
from headrace.spark.query_client import (
    Hello,
    QueryRequest,
    QueryResult,
    Relation,
    Reply,
    ResultColumn,
)
from headrace.spark.query_values import as_text_columns, json_rows, type_name
from headrace.spark.session import start_session

_NICENESS = 10  # the pipeline's processes go first


class JvmDiedError(Exception):
    """The JVM is gone, so this process must go too."""


def main() -> None:
    """Serve until the client is gone."""
    answers = _take_stdout()
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, lines), daemon=True).start()
    hello = msgspec.json.decode(lines.get(), type=Hello)
    os.nice(_NICENESS)
    os.environ["SPARK_USER"] = "headrace"  # what the word `user` says where it is no column
    try:
        spark = start_session(
            worker_settings(hello.spark, hello.query),
            app_name="headrace query",
            work=Path(hello.work),
        )
    except HeadraceError as error:
        _write(answers, Reply(error=error.as_dict()))
        return
    _write(answers, Reply())
    queries = Queries(spark, hello.query)
    while True:
        request = msgspec.json.decode(lines.get(), type=QueryRequest)
        try:
            _write(answers, queries.answer(request))
        except JvmDiedError:
            os._exit(1)


def worker_settings(spark: SparkSettings, query: QuerySettings) -> SparkSettings:
    """The pipeline's settings, with its own memory and with what no query may do switched off."""
    options = spark.conf.get("spark.driver.extraJavaOptions", "")
    conf = spark.conf | {
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",
        "spark.driver.maxResultSize": str(max(256 << 20, 2 * query.bytes_max)),
        # Without memory a JVM limps on; ended, it is replaced by a sound one.
        "spark.driver.extraJavaOptions": f"{options} -XX:+ExitOnOutOfMemoryError".strip(),
    }
    return replace(spark, memory=query.memory, conf=conf)


class Queries:
    """Answers requests in one session; the functions of the project's file stay registered."""

    def __init__(self, spark: SparkSession, settings: QuerySettings) -> None:
        self._spark = spark
        self._settings = settings
        self._functions: tuple[FunctionDefinition, ...] = ()
        self._functions_key: tuple[str, int] | None = None

    def answer(self, request: QueryRequest) -> Reply:
        """The result, or the error that the client is to raise."""
        views = [relation.name for relation in request.relations]
        try:
            self._learn(request.functions_file)
            for relation in request.relations:
                relation_frame(self._spark, relation).createOrReplaceTempView(f"`{relation.name}`")
            shown = [relation.name for relation in request.relations if not relation.hidden]
            frame = self._frame(request.sql, shown)
            if request.certain:
                refuse_uncertain(frame, request.sql)
            return Reply(result=self._explain(frame) if request.explain else self._run(frame))
        except HeadraceError as error:
            return Reply(error=error.as_dict())
        except (PySparkException, Py4JError, OSError, ValueError) as error:
            return Reply(error=_explained(error, self._settings).as_dict())
        finally:
            self._forget(views)

    def _learn(self, path: str | None) -> None:
        key = (path, os.stat(path).st_mtime_ns) if path else None
        if key == self._functions_key:
            return
        self._functions = load_functions(Path(path)) if path else ()
        register_functions(self._spark, self._functions)
        self._functions_key = key

    def _frame(self, sql: str, names: list[str]) -> DataFrame:
        """What the query asks for, once the fence has let it through."""
        limits = FenceLimits(text_max=self._settings.text_max)
        functions = [definition.name for definition in self._functions]
        known = [*names, MATCHES] if asks_for_matches(sql) else names

        def fence(text: str) -> None:
            check(self._spark, text, relations=known, functions=functions, limits=limits)

        if asks_for_matches(sql):
            return matches(self._spark, sql, fence)
        fence(sql)
        return self._spark.sql(sql)

    def _run(self, frame: DataFrame) -> QueryResult:
        columns = [
            ResultColumn(f.name, type_name(f.dataType.simpleString())) for f in frame.schema.fields
        ]
        rows_max = self._settings.rows_max
        rows = json_rows(as_text_columns(frame).limit(rows_max + 1).toArrow(), frame.schema)
        result = QueryResult(columns, rows[:rows_max], len(rows) > rows_max)
        return _within(result, self._settings.bytes_max)

    def _explain(self, frame: DataFrame) -> QueryResult:
        """Spark's plan as text, in one row."""
        execution, jvm = frame._jdf.queryExecution(), self._spark._jvm
        text = str(jvm.PythonSQLUtils.explainString(execution, "formatted"))
        return _within(
            QueryResult([ResultColumn("plan", "STRING")], [[text]]), self._settings.bytes_max
        )

    def _forget(self, views: list[str]) -> None:
        try:
            for name in views:
                self._spark.catalog.dropTempView(name)
        except (Py4JError, OSError) as error:
            raise JvmDiedError from error


def relation_frame(spark: SparkSession, relation: Relation) -> DataFrame:
    """What a relation's name stands for."""
    if relation.query is not None:
        frame = spark.sql(relation.query)
    elif not relation.paths:
        frame = spark.createDataFrame([], relation.schema_ddl)
    elif relation.kind == "arrow_file":
        table = pa.concat_tables([_arrow_table(path) for path in relation.paths])
        frame = spark.createDataFrame(table, relation.schema_ddl or None)
    else:
        reader = spark.read.format(relation.kind).options(**relation.options)
        frame = reader.schema(relation.schema_ddl).load(relation.paths)
    return frame.filter(relation.filter) if relation.filter else frame


def _arrow_table(path: str) -> pa.Table:
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


def _within(result: QueryResult, bytes_max: int) -> QueryResult:
    size = len(msgspec.json.encode(result))
    if size > bytes_max:
        raise _too_large(bytes_max, f"it has {size:,} bytes in {len(result.rows):,} rows.")
    return result


def _too_large(bytes_max: int, detail: str | None) -> LimitReached:
    return LimitReached(
        f"the answer is larger than {bytes_max:,} bytes",
        detail=detail,
        hint="ask for fewer rows or columns, or raise the setting query.bytes_max.",
    )


def _explained(error: Exception, settings: QuerySettings) -> HeadraceError:
    """What a failure of Spark means to the one who asked."""
    text = str(error)
    if "spark.driver.maxResultSize" in text:
        return _too_large(settings.bytes_max, None)
    if isinstance(error, PySparkException):
        # The error that a function raised is the last line of its Python traceback.
        raised = re.findall(r"^(\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
        if "Traceback" in text and raised:
            return BadQuery(f"a function of the query failed: {raised[-1]}")
        return bad_query(error)
    if isinstance(error, Py4JJavaError):
        return EngineFailed(
            "Spark failed", detail=text.splitlines()[1:2][0][:500] if text else None
        )
    if isinstance(error, Py4JError | ConnectionError):
        raise JvmDiedError from error
    if isinstance(error, OSError):
        return EngineFailed(f"a file that the query needs cannot be read: {error}")
    return BadQuery(f"the answer cannot be written as JSON: {error}")


def _take_stdout() -> IO[bytes]:
    """Keep stdout for answers alone: whatever else prints, prints to the log."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _read(pipe: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    for line in pipe:
        lines.put(line)
    # The client is gone. The JVM ends when its own pipe closes, which this does.
    os._exit(0)


def _write(answers: IO[bytes], reply: Reply) -> None:
    answers.write(msgspec.json.encode(reply) + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
