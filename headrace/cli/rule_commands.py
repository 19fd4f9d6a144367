"""`headrace rule …`, `watch …`, `alerts …` and `sigma`: the commands and their options; what
they do is in cli/rules.py, cli/watches.py, cli/alerts.py and cli/sigma.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, ProjectOption
from headrace.define.folder import find_project_folder

rule_app = typer.Typer(
    no_args_is_help=True, help="Show and change rules, also while it is running."
)
watch_app = typer.Typer(no_args_is_help=True, help="Show, add and remove watches.")
alerts_app = typer.Typer(no_args_is_help=True, help="See, acknowledge and mute alerts, and retry.")
Rule = Annotated[str, typer.Argument(metavar="RULE", help="the rule's name")]
Watch = Annotated[str, typer.Argument(metavar="WATCH", help="the watch's name")]
Alert = Annotated[str, typer.Argument(metavar="ID", help="the alert's id, or its beginning")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="only alerts with this value"),
]


@rule_app.command("list")
def list_rules(project: ProjectOption = None, json: Json = False) -> int:
    """Show all rules and their counters."""
    from headrace.cli import rules as body

    return body.list_rules(find_project_folder(project)).print(json)


@rule_app.command("show")
def show_rule(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show one rule, with its text."""
    from headrace.cli import rules as body

    return body.show_rule(find_project_folder(project), rule).print(json)


@rule_app.command("add")
def add_rules(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="a file of CREATE RULE …")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Add the rules of a file, or change rules that were added before."""
    from headrace.cli import rules as body

    return body.add(find_project_folder(project), file).print(json)


@rule_app.command()
def disable(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Disable a rule: it raises no more alerts."""
    from headrace.cli import rules as body

    return body.switch(find_project_folder(project), rule, "disabled").print(json)


@rule_app.command()
def enable(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Enable a rule: it raises alerts again."""
    from headrace.cli import rules as body

    return body.switch(find_project_folder(project), rule, "enabled").print(json)


@rule_app.command("remove")
def remove_rule(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Remove a rule that was added; its alerts are kept."""
    from headrace.cli import rules as body

    return body.remove(find_project_folder(project), rule).print(json)


@rule_app.command()
def history(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show all versions of a rule, each with its author."""
    from headrace.cli import rules as body

    return body.history(find_project_folder(project), rule).print(json)


@watch_app.command("list")
def list_watches(
    state: Annotated[str | None, typer.Option(help="only those: active or ended")] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show all watches, and why ended ones ended."""
    from headrace.cli import watches as body

    return body.list_watches(find_project_folder(project), state).print(json)


@watch_app.command("show")
def show_watch(watch: Watch, project: ProjectOption = None, json: Json = False) -> int:
    """Show one watch, with its text."""
    from headrace.cli import watches as body

    return body.show_watch(find_project_folder(project), watch).print(json)


@watch_app.command("add")
def add_watches(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="a file of CREATE WATCH …")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Add the watches of a file, or change watches that were added before."""
    from headrace.cli import watches as body

    return body.add(find_project_folder(project), file).print(json)


@watch_app.command("remove")
def remove_watch(watch: Watch, project: ProjectOption = None, json: Json = False) -> int:
    """Remove a watch that was added; its alerts are kept."""
    from headrace.cli import watches as body

    return body.remove(find_project_folder(project), watch).print(json)


@alerts_app.command("list")
def list_alerts(
    rule: Annotated[str | None, typer.Option(metavar="RULE", help="only of this rule")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="only those in this state")
    ] = None,
    missed: Annotated[bool, typer.Option("--missed", help="those that only batch found")] = False,
    withdrawn: Annotated[
        bool, typer.Option("--withdrawn", help="those that batch did not find")
    ] = False,
    each: Annotated[
        int, typer.Option(min=1, max=10_000, help="maximum number of each rule, without --rule")
    ] = 20,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="maximum number")] = 100,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show the newest alerts of each rule, the most severe rules first."""
    from headrace.cli import alerts as body

    return body.list_alerts(
        find_project_folder(project), rule, state, missed, withdrawn, each, limit
    ).print(json)


@alerts_app.command("show")
def show_alert(id: Alert, project: ProjectOption = None, json: Json = False) -> int:
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


def sigma(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Sigma rules, in YAML")],
    stream: Annotated[str, typer.Option(metavar="NAME", help="the stream they watch")] = "events",
    time: Annotated[str, typer.Option(metavar="COLUMN", help="the stream's event time")] = "ts",
    keywords: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="where keywords are searched")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="rules.sql", help="write there; else to stdout")
    ] = None,
    json: Json = False,
) -> int:
    """Turn Sigma rules into streams and rules."""
    from headrace.cli import sigma as body

    report = body.sigma(files, stream, time, keywords, output)
    if not json:
        body.show_errors(report)
    return report.print(json)
