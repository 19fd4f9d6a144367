"""The process of a job: `python -m headrace.run.job run SPEC`, or `check SPEC`.

`run` is `headrace run` that writes each report as a line of JSON. Progress reports are left out,
because the server stores the lines; the last line of a failed start is the error. `check` compiles
the project, compares it with the deployed plan and prints one document: the names that it defines,
or the error. Both execute the project's own Python, so the server runs them in a process apart.
tests/run/test_job.py runs both.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.compile.plan import Plan
from headrace.core.errors import HeadraceError, sentence_of
from headrace.core.paths import hide_paths
from headrace.core.time import iso, now_us
from headrace.run.launch_spec import LaunchSpec

UNEXPECTED = "Unexpected"


class Names(msgspec.Struct, frozen=True):
    """The names that a version of a project defines."""

    streams: list[str] = []
    views: list[str] = []
    rules: list[str] = []


class CheckResult(msgspec.Struct, frozen=True):
    """The result of a check: names, or the five fields of an error."""

    names: Names | None = None
    error: dict[str, str | None] | None = None


def run(spec: LaunchSpec) -> int:
    from headrace.run import loop

    try:
        loop.run(spec.project(), report=_report, turn=spec.turn, server_key=spec.key())
    except Exception as error:
        _report("failed", _fields(error))
        return getattr(error, "exit_code", 1)
    return 0


def _report(kind: str, fields: dict[str, Any]) -> None:
    if kind != "progress":
        _print({"at": iso(now_us()), "kind": kind, **fields})


def _print(document: Any) -> None:
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def _fields(error: Exception) -> dict[str, str | None]:
    if isinstance(error, HeadraceError):
        return error.as_dict()
    traceback.print_exception(error)
    fields = dict.fromkeys(("detail", "hint", "origin"))
    return {"condition": UNEXPECTED, "message": sentence_of(error), **fields}


def check(spec: LaunchSpec) -> int:
    from headrace.run.added_definitions import effective_project
    from headrace.run.compiling import compile_in_spark, deployed_plan
    from headrace.serving.catalog import check_histories

    try:
        project = spec.project()
        plan = compile_in_spark(effective_project(project))
        check_histories(deployed_plan(project), plan)
    except Exception as error:
        _print(CheckResult(error=_fields(error)))
        return 1
    _print(CheckResult(names=names_of(plan)))
    return 0


def names_of(plan: Plan) -> Names:
    derived = [stream.name for stream in plan.shown_derived]
    return Names(
        [*(stream.name for stream in plan.streams), *derived],
        [view.name for view in plan.shown_views],
        [rule.name for rule in plan.rules],
    )


def main(arguments: Sequence[str]) -> int:
    verb, spec = arguments[0], LaunchSpec.read(arguments[1])
    hide_paths(Path(spec.folder), Path(spec.state))
    return {"run": run, "check": check}[verb](spec)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
