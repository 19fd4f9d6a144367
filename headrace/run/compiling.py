"""Compiles a project with Spark's analyser, in a running session or in one of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.define.actions import check_call, load_actions
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.functions import FunctionDefinition, load_functions
from headrace.define.layout import Layout
from headrace.define.processors import ProcessorDefinition, load_processors
from headrace.define.project import Project
from headrace.ingest.connector import check_options
from headrace.serving.opening import open_store, store_exists


def functions_of(project: Project) -> tuple[FunctionDefinition, ...]:
    return load_functions(project.functions_file) if project.functions_file else ()


def processors_of(project: Project) -> dict[str, ProcessorDefinition]:
    return load_processors(project.functions_file) if project.functions_file else {}


def check_without_spark(project: Project) -> None:
    """Check all of a project that can be checked without Spark."""
    from headrace.compile.resolve import resolve
    from headrace.compile.watches import errors_name_watches, expanded

    for stream in project.streams.values():
        check_options(stream)
    with errors_name_watches(project):
        resolve(expanded(project))
    functions_of(project)
    processors_of(project)
    check_calls(project, (*project.rules.values(), *project.watches.values()))


def check_calls(project: Project, notifiers: Iterable[RuleDefinition | WatchDefinition]) -> None:
    """Reject a rule or watch that calls a function which functions.py does not define."""
    actions = load_actions(project.functions_file)
    for notifier in notifiers:
        for function in (one.target for one in notifier.destinations if one.calls):
            check_call(notifier, function, actions)


def compile_with(spark: Any, project: Project) -> Plan:
    """Compile in a running session."""
    from headrace.spark.added_definitions import check_added
    from headrace.spark.analyse import SparkAnalyser
    from headrace.spark.functions import register_functions

    check_without_spark(project)
    functions = functions_of(project)
    check_added(spark, project, [function.name for function in functions])
    analyser = SparkAnalyser(spark)
    register_functions(analyser.spark, functions)
    return compile_project(project, analyser, processors_of(project))


def compile_in_spark(project: Project) -> Plan:
    """Compile in a session of its own. Only scratch files are written."""
    check_without_spark(project)
    with session(project, "compile") as spark:
        return compile_with(spark, project)


@contextmanager
def session(project: Project, purpose: str) -> Iterator[Any]:
    """A Spark session that is stopped at the end of the block."""
    from headrace.spark.session import start_session, stop_session

    layout = Layout.of(project)
    layout.make_state()
    spark = start_session(
        project.settings.spark,
        app_name=f"headrace-{project.settings.name}",
        work=layout.work(purpose),
    )
    try:
        yield spark
    finally:
        stop_session(spark)


def deployed_plan(project: Project) -> Plan | None:
    """The plan that was last deployed. Requires no Spark."""
    layout = Layout.of(project)
    if not store_exists(layout.store):
        return None
    with closing(open_store(layout.store)) as store:
        return store.deployed()
