"""`headrace rule …`: the commands and their options; what they do is in cli/rules.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, ProjectOption
from headrace.define.folder import find_project_folder

rule_app = typer.Typer(
    no_args_is_help=True, help="Show and change rules, also while it is running."
)
Rule = Annotated[str, typer.Argument(metavar="RULE", help="the rule's name")]


@rule_app.command("list")
def list_(project: ProjectOption = None, json: Json = False) -> int:
    """Show all rules and their counters."""
    from headrace.cli import rules as body

    return body.list_rules(find_project_folder(project)).print(json)


@rule_app.command()
def show(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show one rule, with its text."""
    from headrace.cli import rules as body

    return body.show_rule(find_project_folder(project), rule).print(json)


@rule_app.command()
def add(
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


@rule_app.command()
def remove(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Remove a rule that was added; its alerts are kept."""
    from headrace.cli import rules as body

    return body.remove(find_project_folder(project), rule).print(json)


@rule_app.command()
def history(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show all versions of a rule, each with its author."""
    from headrace.cli import rules as body

    return body.history(find_project_folder(project), rule).print(json)
