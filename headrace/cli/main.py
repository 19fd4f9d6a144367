"""The commands and their options; the implementation of a command is in the module it imports.

`headrace --help` needs neither Spark, Arrow nor a parser, because modules are imported when they
are needed. Every command takes `--json` and then prints one JSON document to stdout, errors
included. Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 5 unavailable, 130 interrupted.
tests/cli/test_main.py checks the modules, the time and the codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headrace.cli import job_commands
from headrace.cli.failure import run_command
from headrace.cli.options import Folder, Json, OfHome, OfServer, ProjectOption
from headrace.cli.rule_commands import alerts_app, rule_app, sigma, watch_app
from headrace.cli.user_commands import grant_app, token_app, user_app
from headrace.core.version import __version__
from headrace.define.folder import find_project_folder


class Commands(TyperGroup):
    """The group of all commands: the errors of all of them are shown in one form."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        extra["standalone_mode"] = False
        run = super().main
        sys.exit(run_command(lambda: run(arguments, *rest, **extra), json="--json" in arguments))


app = typer.Typer(
    cls=Commands,
    help="Define a view once, in SQL; it is kept exact over history and fresh to the second.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # Rich's help pages alone would take longer than the help may take
)


def print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def everywhere(
    token: Annotated[
        str | None,
        typer.Option(help="token of the caller; else HEADRACE_TOKEN, else the run's own"),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="use this job of a server; else HEADRACE_JOB, else a project")
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    # The rest of this process reads them from the environment.
    if token:
        os.environ["HEADRACE_TOKEN"] = token
    if job:
        os.environ["HEADRACE_JOB"] = job


class DecisionOption(StrEnum):
    """The decision of an entry of the audit log."""

    ALLOWED = "allowed"
    REFUSED = "refused"


class ApiKind(StrEnum):
    """The HTTP API of a project, or of a server of jobs."""

    PROJECT = "project"
    SERVER = "server"


class FileFormat(StrEnum):
    NDJSON = "ndjson"
    CSV = "csv"


View = Annotated[str, typer.Argument(metavar="VIEW", help="the view's name")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="a key of the row; may be repeated"),
]
Window = Annotated[
    str | None, typer.Option("--window", metavar="START", help="start of the row's window")
]
Stream = Annotated[str, typer.Argument(metavar="STREAM", help="the stream's name")]


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to create it in")],
    json: Json = False,
) -> int:
    """Create a small working project."""
    from headrace.cli import new as body

    return body.new(folder).print(json)


@app.command()
def check(folder: Folder = None, json: Json = False) -> int:
    """Check the project, and show each error and where it is."""
    from headrace.cli import planning as body

    return body.check(find_project_folder(folder)).print(json)


@app.command()
def plan(folder: Folder = None, json: Json = False) -> int:
    """Show what a run would change, without changing it."""
    from headrace.cli import planning as body

    return body.plan(find_project_folder(folder)).print(json)


@app.command()
def explain(
    view: Annotated[str, typer.Argument(metavar="NAME", help="a view or a derived stream")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show how a view or a derived stream is computed."""
    from headrace.cli import planning as body

    return body.explain(find_project_folder(project), view).print(json)


@app.command()
def run(
    folder: Folder = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="HTTP port; 0 selects a free one")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--for", metavar="60s", help="stop this time after it is ready")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="stop when all events are in the answers")
    ] = False,
    json: Json = False,
) -> int:
    """Run the project until Ctrl-C: log, Spark, serving and HTTP."""
    from headrace.cli import running as body

    seconds = body.seconds_of(time) if time is not None else None
    return body.run(
        find_project_folder(folder), port=port, seconds=seconds, until_idle=until_idle, json=json
    )


@app.command()
def send(
    stream: Stream,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="a file, or - for stdin")],
    project: ProjectOption = None,
    format: Annotated[
        FileFormat | None,
        typer.Option(help="format of the file; else by its extension or the stream"),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="send a file that was sent to a stream without an id")
    ] = False,
    json: Json = False,
) -> int:
    """Send a file's events to a stream, also of a stopped project."""
    from headrace.cli import send as body

    folder, kind = find_project_folder(project), format.value if format else None
    return body.send(folder, stream, file, kind, again=again, quiet=json).print(json)


@app.command("import")
def import_files(
    stream: Stream,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="files, also .gz")],
    project: ProjectOption = None,
    format: Annotated[
        FileFormat | None,
        typer.Option(help="format of the files; else by their extension or the stream"),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="import files that were imported or sent before")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="processes that read; else one for each core")
    ] = None,
    json: Json = False,
) -> int:
    """Import the events of files on all cores, each once."""
    from headrace.cli import import_files as body

    folder, kind = find_project_folder(project), format.value if format else None
    options = body.ImportOptions(kind=kind, again=again, processes=processes, quiet=json)
    return body.import_files(folder, stream, files, options).print(json)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SELECT…", help="SQL over views, streams, tables")],
    limit: Annotated[int | None, typer.Option(min=0, help="maximum number of rows")] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Run a SELECT, and show how fresh and exact its result is."""
    from headrace.cli import query as body

    return body.query(find_project_folder(project), sql, limit).print(json)


@app.command()
def export(
    view: View,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=".parquet, .csv, .sqlite or .duckdb")
    ],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Write all rows of a view to a file for other tools."""
    from headrace.cli import maintenance as body

    return body.export(find_project_folder(project), view, file).print(json)


@app.command()
def late(
    view: View,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="only windows of this key")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="windows that start at this time or after")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="windows that start before this time")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="maximum number of windows, the newest first")
    ] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show how late the events of a view's windows were."""
    from headrace.cli import late as body

    keys = body.keys_of(where or [])
    return body.late(find_project_folder(project), view, keys, since, until, limit).print(json)


@app.command()
def tail(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="a view, a stream, or a whole SUBSCRIBE TO …")
    ],
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="only these rows, as in WHERE")
    ] = None,
    emit: Annotated[
        str | None, typer.Option(metavar="WHEN", help="when and how, as after EMIT")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="resume after this event or position")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="stop after this number of panes or rows")
    ] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show changes of a view or rows of a stream as they arrive."""
    from headrace.cli import tail as body
    from headrace.core.subscription import subscription

    text = subscription(name, where, emit)
    return body.tail(find_project_folder(project), text, after=after, limit=limit, json=json)


@app.command()
def status(project: ProjectOption = None, json: Json = False) -> int:
    """Show the status of the project's streams and views."""
    from headrace.cli import status as body

    return body.status(find_project_folder(project)).print(json)


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="print one frame and stop")] = False,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Watch a project live: streams, views, rules, problems."""
    from headrace.cli import top as body

    folder = find_project_folder(project)
    return body.once(folder).print(json) if once or json else body.top(folder)


@app.command()
def rebuild(view: View, project: ProjectOption = None, json: Json = False) -> int:
    """Recompute a view from its whole history and swap it in."""
    from headrace.cli import maintenance as body

    return body.rebuild(find_project_folder(project), view, quiet=json).print(json)


@app.command()
def audit(
    view: Annotated[str | None, typer.Argument(metavar="[VIEW]", help="one view; else all")] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Compare answers with a second engine; exit 1 if they differ."""
    from headrace.cli import maintenance as body

    return body.audit(find_project_folder(project), view).print(json)


@app.command()
def verify(
    repair: Annotated[
        bool, typer.Option("--repair", help="rewrite damaged files from the log; while stopped")
    ] = False,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Read and check all stored files; exit 1 if one is damaged."""
    from headrace.cli import maintenance as body

    return body.verify(find_project_folder(project), repair).print(json)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="a folder that is new or empty")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Copy the state into a folder, while it is running or stopped."""
    from headrace.cli import maintenance as body

    return body.backup(find_project_folder(project), target).print(json)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a backup")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Make a backup the state of a project that has none."""
    from headrace.cli import maintenance as body

    return body.restore(find_project_folder(project), source).print(json)


@app.command()
def why(
    view: View,
    where: Where = None,
    window: Window = None,
    limit: Annotated[int, typer.Option(min=1, help="maximum number of events of each kind")] = 50,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """List the events of a row of a view, and those left out."""
    from headrace.cli import tracing as body

    return body.why(find_project_folder(project), view, where or [], window, limit).print(json)


@app.command()
def replay(
    view: View,
    where: Where = None,
    window: Window = None,
    limit: Annotated[
        int, typer.Option(min=1, help="maximum number of steps, the newest first")
    ] = 50,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show the history of a row of a view, step by step."""
    from headrace.cli import tracing as body

    return body.replay(find_project_folder(project), view, where or [], window, limit).print(json)


@app.command("dead-letters")
def dead_letters(
    stream: Stream,
    limit: Annotated[int, typer.Option(min=1, help="maximum number, the newest first")] = 100,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show the events of a stream that could not be read, and why."""
    from headrace.cli import maintenance as body

    return body.dead_letters(find_project_folder(project), stream, limit).print(json)


rules = typer.Typer(help="Test decision rules.", no_args_is_help=True)
app.add_typer(rules, name="rules")


@rules.command("test")
def rules_test(
    name: Annotated[str, typer.Argument(metavar="RULES", help="the name in CREATE RULES")],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="only events dated at this time or after")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="events shown as samples")] = 10,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show what rules would decide on past events."""
    from headrace.cli import rehearsing as body

    return body.test(find_project_folder(project), name, since, limit).print(json)


@app.command()
def doctor(project: ProjectOption = None, json: Json = False) -> int:
    """Check this machine, and show what to do if it cannot run."""
    from headrace.cli import doctor as body

    return body.doctor(find_project_folder(project)).print(json)


@app.command("audit-log")
def audit_log(
    user: Annotated[str, typer.Option(help="only of this user")] = "",
    decision: Annotated[DecisionOption | None, typer.Option(help="only entries so decided")] = None,
    what: Annotated[str, typer.Option(help="only those of this action, such as add_grant")] = "",
    find: Annotated[str, typer.Option(help="only those with each of these words")] = "",
    before: Annotated[int, typer.Option(min=0, help="only those older than this number")] = 0,
    after: Annotated[int | None, typer.Option(min=0, help="only newer ones, in order")] = None,
    follow: Annotated[bool, typer.Option(help="follow, one JSON line per entry")] = False,
    verify: Annotated[bool, typer.Option(help="check that all entries are unchanged")] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="maximum number, the newest first")
    ] = 100,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Show changes and refused requests."""
    from headrace.access.audit_log import AuditLogFilter
    from headrace.cli import users as body

    target = body.access_target(project, server, home)
    if verify:
        return body.verify_audit_log(target).print(json)
    after = 0 if follow and after is None else after
    chosen = {"user": user, "decision": decision or "", "what": what, "find": find}
    filter = AuditLogFilter(limit=limit, before=before, after=after, **chosen)
    if follow:
        return body.follow_audit_log(target, filter)
    return body.audit_log(target, filter).print(json)


@app.command()
def openapi(
    of: Annotated[
        ApiKind, typer.Argument(metavar="OF", help="of a project or of a server of jobs")
    ] = (ApiKind.PROJECT),
    json: Json = False,
) -> int:
    """Print the OpenAPI document of the HTTP API."""
    from headrace.cli import openapi as body

    return body.openapi(of).print(json)


for command in (
    job_commands.serve,
    job_commands.submit,
    job_commands.jobs,
    job_commands.apply,
    job_commands.rollback,
):
    app.command()(command)
app.add_typer(job_commands.job_app, name="job")
app.add_typer(rule_app, name="rule")
app.add_typer(watch_app, name="watch")
app.add_typer(alerts_app, name="alerts")
app.command()(sigma)
app.add_typer(user_app, name="user")
app.add_typer(token_app, name="token")
app.add_typer(grant_app, name="grant")
