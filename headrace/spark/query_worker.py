"""The worker process for ad-hoc queries: it reads one request per line and writes one reply per
line.

Each request has its own relations, which are dropped before the next. The allow-lists are checked
here, in the process that runs the query, and Spark's access to files and settings by SQL is
switched off too. When the pipe from the client closes, the process ends at once, even during a
query. tests/spark/test_query_worker.py checks results, limits and refusals.
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
from headrace.spark.allowed_sql import bad_query, check_sql
from headrace.spark.determinism import require_deterministic
from headrace.spark.functions import register_functions
from headrace.spark.pattern_query import MATCHES, is_pattern_query, pattern_frame
from headrace.spark.query_client import (
    QueryRequest,
    QueryResult,
    Relation,
    ResultColumn,
    WorkerConfig,
    WorkerReply,
)
from headrace.spark.query_values import as_text_columns, json_rows, type_name
from headrace.spark.session import start_session
from headrace.spark.sql_limits import SqlLimits

_NICENESS = 10  # lower priority than the pipeline's processes


class JvmDiedError(Exception):
    """The JVM has ended, so this process must end too."""


def main() -> None:
    """Serve until the client disconnects."""
    answers = _take_stdout()
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, lines), daemon=True).start()
    config = msgspec.json.decode(lines.get(), type=WorkerConfig)
    os.nice(_NICENESS)
    os.environ["SPARK_USER"] = "headrace"  # the value of `user` where it is not a column
    try:
        spark = start_session(
            worker_settings(config.spark, config.query),
            app_name="headrace query",
            work=Path(config.work),
        )
    except HeadraceError as error:
        _write(answers, WorkerReply(error=error.as_dict()))
        return
    _write(answers, WorkerReply())
    executor = QueryExecutor(spark, config.query)
    while True:
        request = msgspec.json.decode(lines.get(), type=QueryRequest)
        try:
            _write(answers, executor.execute(request))
        except JvmDiedError:
            os._exit(1)


def worker_settings(spark: SparkSettings, query: QuerySettings) -> SparkSettings:
    """The pipeline's settings, with the worker's memory and without unsafe features."""
    options = spark.conf.get("spark.driver.extraJavaOptions", "")
    conf = spark.conf | {
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",
        "spark.driver.maxResultSize": str(max(256 << 20, 2 * query.bytes_max)),
        # After an OutOfMemoryError a JVM is unreliable; if it exits, it is replaced.
        "spark.driver.extraJavaOptions": f"{options} -XX:+ExitOnOutOfMemoryError".strip(),
    }
    return replace(spark, memory=query.memory, conf=conf)


class QueryExecutor:
    """Runs requests in one session; the functions of the project's file stay registered."""

    def __init__(self, spark: SparkSession, settings: QuerySettings) -> None:
        self._spark = spark
        self._settings = settings
        self._functions: tuple[FunctionDefinition, ...] = ()
        self._functions_key: tuple[str, int] | None = None

    def execute(self, request: QueryRequest) -> WorkerReply:
        """The result, or the error for the client to raise."""
        views = [relation.name for relation in request.relations]
        try:
            self._load_functions(request.functions_file)
            for relation in request.relations:
                relation_frame(self._spark, relation).createOrReplaceTempView(f"`{relation.name}`")
            shown = [relation.name for relation in request.relations if not relation.hidden]
            frame = self._frame(request.sql, shown)
            if request.deterministic:
                require_deterministic(frame, request.sql)
            return WorkerReply(result=self._explain(frame) if request.explain else self._run(frame))
        except HeadraceError as error:
            return WorkerReply(error=error.as_dict())
        except (PySparkException, Py4JError, OSError, ValueError) as error:
            return WorkerReply(error=_error_of(error, self._settings).as_dict())
        finally:
            self._drop(views)

    def _load_functions(self, path: str | None) -> None:
        key = (path, os.stat(path).st_mtime_ns) if path else None
        if key == self._functions_key:
            return
        self._functions = load_functions(Path(path)) if path else ()
        register_functions(self._spark, self._functions)
        self._functions_key = key

    def _frame(self, sql: str, names: list[str]) -> DataFrame:
        """The frame of the query, after its check."""
        limits = SqlLimits(text_max=self._settings.text_max)
        functions = [definition.name for definition in self._functions]
        known = [*names, MATCHES] if is_pattern_query(sql) else names

        def checked(text: str) -> None:
            check_sql(self._spark, text, relations=known, functions=functions, limits=limits)

        if is_pattern_query(sql):
            return pattern_frame(self._spark, sql, checked)
        checked(sql)
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

    def _drop(self, views: list[str]) -> None:
        try:
            for name in views:
                self._spark.catalog.dropTempView(name)
        except (Py4JError, OSError) as error:
            raise JvmDiedError from error


def relation_frame(spark: SparkSession, relation: Relation) -> DataFrame:
    """The frame of a relation."""
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
        f"the result is larger than {bytes_max:,} bytes",
        detail=detail,
        hint="select fewer rows or columns, or raise the setting query.bytes_max.",
    )


def _error_of(error: Exception, settings: QuerySettings) -> HeadraceError:
    """Spark's error as an error for the caller."""
    text = str(error)
    if "spark.driver.maxResultSize" in text:
        return _too_large(settings.bytes_max, None)
    if isinstance(error, PySparkException):
        # The error of a Python function is the last line of its traceback.
        raised = re.findall(r"^(\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
        if "Traceback" in text and raised:
            return BadQuery(f"a function in the query failed: {raised[-1]}")
        return bad_query(error)
    if isinstance(error, Py4JJavaError):
        return EngineFailed(
            "Spark failed", detail=text.splitlines()[1:2][0][:500] if text else None
        )
    if isinstance(error, Py4JError | ConnectionError):
        raise JvmDiedError from error
    if isinstance(error, OSError):
        return EngineFailed(f"a file that the query needs cannot be read: {error}")
    return BadQuery(f"the result cannot be encoded as JSON: {error}")


def _take_stdout() -> IO[bytes]:
    """Reserve stdout for replies: everything else that is printed goes to the log."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _read(pipe: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    for line in pipe:
        lines.put(line)
    # The client has disconnected. Exiting closes the JVM's pipe, which ends the JVM too.
    os._exit(0)


def _write(answers: IO[bytes], reply: WorkerReply) -> None:
    answers.write(msgspec.json.encode(reply) + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
