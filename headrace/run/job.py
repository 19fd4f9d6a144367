"""The process of a job: `python -m headrace.run.job run ORDER`, or `check ORDER`.

`run` is `headrace run` with one JSON line a report, of which progress is left out because the lines
are kept for ever; the last line of a start that failed says why. `check` compiles the project,
compares it with what is deployed and prints one document: the names in it, or what is wrong. Both
run the project's own Python, so neither is done in the server.
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
from headrace.run.order import StartOrder

UNEXPECTED = "Unexpected"


class Names(msgspec.Struct, frozen=True):
    """What a version of a project defines."""

    streams: list[str] = []
    views: list[str] = []
    rules: list[str] = []


class Checked(msgspec.Struct, frozen=True):
    """What came of a check: names, or the five fields of an error."""

    names: Names | None = None
    error: dict[str, str | None] | None = None


def run(order: StartOrder) -> int:
    from headrace.run import loop

    try:
        loop.run(order.project(), report=_report, turn=order.turn, server_key=order.key())
    except Exception as error:
        _report("failed", _fields(error))
        return getattr(error, "exit_code", 1)
    return 0


def _report(kind: str, fields: dict[str, Any]) -> None:
    if kind != "progress":
        _say({"at": iso(now_us()), "kind": kind, **fields})


def _say(document: Any) -> None:
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def _fields(error: Exception) -> dict[str, str | None]:
    if isinstance(error, HeadraceError):
        return error.as_dict()
    traceback.print_exception(error)
    fields = dict.fromkeys(("detail", "hint", "origin"))
    return {"condition": UNEXPECTED, "message": sentence_of(error), **fields}


def check(order: StartOrder) -> int:
    from headrace.run.compiling import compile_in_spark, deployed_plan
    from headrace.run.rules import whole_project
    from headrace.serving.catalog import check_histories

    try:
        project = order.project()
        plan = compile_in_spark(whole_project(project))
        check_histories(deployed_plan(project), plan)
    except Exception as error:
        _say(Checked(error=_fields(error)))
        return 1
    _say(Checked(names=names_of(plan)))
    return 0


def names_of(plan: Plan) -> Names:
    derived = [stream.name for stream in plan.shown_derived]
    return Names(
        [*(stream.name for stream in plan.streams), *derived],
        [view.name for view in plan.shown_views],
        [rule.name for rule in plan.rules],
    )


def main(arguments: Sequence[str]) -> int:
    verb, order = arguments[0], StartOrder.read(arguments[1])
    hide_paths(Path(order.folder), Path(order.state))
    return {"run": run, "check": check}[verb](order)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
