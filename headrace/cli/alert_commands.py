"""`headrace alerts …`: the commands and their options; what they do is in cli/alerts.py."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json, ProjectOption
from headrace.define.folder import find_project_folder

alerts_app = typer.Typer(no_args_is_help=True, help="See, acknowledge and mute alerts, and retry.")
Alert = Annotated[str, typer.Argument(metavar="ID", help="the alert's id, or its beginning")]
Rule = Annotated[str, typer.Argument(metavar="RULE", help="the rule's name")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="only alerts with this value"),
]


@alerts_app.command("list")
def list_(
    rule: Annotated[str | None, typer.Option(metavar="RULE", help="only of this rule")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="only those in this state")
    ] = None,
    missed: Annotated[bool, typer.Option("--missed", help="those that only batch found")] = False,
    withdrawn: Annotated[
        bool, typer.Option("--withdrawn", help="those that batch did not find")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="maximum number, the newest first")
    ] = 100,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show the newest alerts."""
    from headrace.cli import alerts as body

    return body.list_alerts(
        find_project_folder(project), rule, state, missed, withdrawn, limit
    ).print(json)


@alerts_app.command()
def show(id: Alert, project: ProjectOption = None, json: Json = False) -> int:
    """Show one alert, with the state of its notifications."""
    from headrace.cli import alerts as body

    return body.show_alert(find_project_folder(project), id).print(json)


@alerts_app.command()
def ack(
    id: Alert,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="a note for others")] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Acknowledge an alert."""
    from headrace.cli import alerts as body

    return body.acknowledge(find_project_folder(project), id, note).print(json)


@alerts_app.command()
def mute(
    rule: Rule,
    time: Annotated[str, typer.Option("--for", metavar="1h", help="for how long")],
    where: Where = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Mute a rule for a time: alerts are recorded, not notified."""
    from headrace.cli import alerts as body

    return body.mute(find_project_folder(project), rule, time, where or []).print(json)


@alerts_app.command()
def unmute(
    rule: Rule, where: Where = None, project: ProjectOption = None, json: Json = False
) -> int:
    """Unmute a rule."""
    from headrace.cli import alerts as body

    return body.unmute(find_project_folder(project), rule, where or []).print(json)


@alerts_app.command()
def retry(
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="only of this alert: its id or its beginning")
    ] = None,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="only of this rule or watch")
    ] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Retry failed notifications."""
    from headrace.cli import alerts as body

    return body.retry(find_project_folder(project), id, rule).print(json)
