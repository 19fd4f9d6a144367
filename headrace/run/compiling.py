"""Compiles a project with Spark's analyser: in a running session, in one of its own, or, as far as
that is enough, with what it said at an earlier start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from headrace.compile.analyser import Analyser
from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.compile.recorded_analyser import RecordedAnalyser
from headrace.define.actions import check_call, load_actions
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.functions import FunctionDefinition, load_functions
from headrace.define.layout import Layout
from headrace.define.processors import ProcessorDefinition, load_processors
from headrace.define.project import Project
from headrace.ingest.connector import check_options
from headrace.run.analysis_record import AnalysisRecord
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
    functions = _checked(lambda: spark, project)
    return compile_project(project, _analyser(spark, functions), processors_of(project))


def compile_recorded(session: Callable[[], Any], project: Project) -> Plan:
    """Compile with the analysis of earlier starts; `session` is called only for what is new."""
    functions = _checked(session, project)
    record = AnalysisRecord.of(project, functions)
    analyser = RecordedAnalyser(
        record.about, record.answers, lambda: _analyser(session(), functions)
    )
    plan = compile_project(project, analyser, processors_of(project))
    record.replace(analyser.answers)
    return plan


def _checked(session: Callable[[], Any], project: Project) -> tuple[FunctionDefinition, ...]:
    """Check a project; returns its functions."""
    check_without_spark(project)
    functions = functions_of(project)
    if project.added:
        from headrace.spark.added_definitions import check_added

        check_added(session(), project, [function.name for function in functions])
    return functions


def _analyser(spark: Any, functions: tuple[FunctionDefinition, ...]) -> Analyser:
    from headrace.spark.analyse import SparkAnalyser
    from headrace.spark.functions import register_functions

    analyser = SparkAnalyser(spark)
    register_functions(analyser.spark, functions)
    return analyser


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
