"""A project's functions as functions of Spark SQL.

They are pickled by value for Spark's workers, so that no worker needs the project's file.
tests/spark/test_query_worker.py calls one of each kind.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.functions import ArrowUDFType, PandasUDFType, arrow_udf, pandas_udf

from headrace.core.errors import BadDefinition
from headrace.define.functions import MODULE, FunctionDefinition


def register_functions(spark: SparkSession, definitions: Iterable[FunctionDefinition]) -> None:
    """Make each definition callable by its name in the session's SQL."""
    for definition in definitions:
        if _built_in(spark, definition.name):
            raise BadDefinition(
                f"the function '{definition.name}' has the name of a function of Spark SQL, which "
                "would be called in its place",
                hint="give it another name: @function(name=…).",
                origin=definition.origin,
            )
        pickle_by_value(definition.body.__module__)
        spark.udf.register(definition.name, _column_function(definition))


def _built_in(spark: SparkSession, name: str) -> bool:
    jvm: Any = spark._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    known = catalyst.analysis.FunctionRegistry.builtin()
    return bool(known.functionExists(catalyst.FunctionIdentifier(name.lower())))


def pickle_by_value(name: str) -> None:
    """Pickle a project's module by value, because workers cannot import it."""
    if name.startswith(MODULE) and name in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules[name])


def _column_function(definition: FunctionDefinition) -> Any:
    body, returns = _unmarked(definition.body), definition.returns.spark
    with warnings.catch_warnings():
        # PySpark prefers type hints, which a user need not write, and warns without them.
        warnings.simplefilter("ignore")
        if definition.kind == "arrow":
            return arrow_udf(body, returns, ArrowUDFType.SCALAR)
        return pandas_udf(body, returns, PandasUDFType.SCALAR)


def _unmarked(body: Callable[..., Any]) -> Callable[..., Any]:
    """A copy without our marker attribute, for which a worker would have to import headrace."""
    if not isinstance(body, types.FunctionType):
        return body
    parts = (body.__code__, body.__globals__, body.__name__, body.__defaults__, body.__closure__)
    copy = types.FunctionType(*parts)
    copy.__kwdefaults__ = body.__kwdefaults__
    copy.__module__ = body.__module__
    return copy
