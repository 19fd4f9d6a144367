"""`headrace rule …`: the commands and their options; what they do is in cli/rules.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, ProjectOption
from headrace.define.folder import found_folder

rule_app = typer.Typer(no_args_is_help=True, help="See and change rules, also while it runs.")
Rule = Annotated[str, typer.Argument(metavar="RULE", help="the rule's name")]


@rule_app.command("list")
def list_(project: ProjectOption = None, json: Json = False) -> int:
    """Show all rules and their numbers."""
    from headrace.cli import rules as body

    return body.listed(found_folder(project)).say(json)


@rule_app.command()
def show(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show one rule, with its text."""
    from headrace.cli import rules as body

    return body.shown(found_folder(project), rule).say(json)


@rule_app.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="a file of CREATE RULE …")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Add the rules of a file, or change rules that were added before."""
    from headrace.cli import rules as body

    return body.add(found_folder(project), file).say(json)


@rule_app.command()
def disable(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Raise no more alerts of a rule."""
    from headrace.cli import rules as body

    return body.switch(found_folder(project), rule, "disabled").say(json)


@rule_app.command()
def enable(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Raise alerts of a rule again."""
    from headrace.cli import rules as body

    return body.switch(found_folder(project), rule, "enabled").say(json)


@rule_app.command()
def remove(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Remove a rule that was added; its alerts stay."""
    from headrace.cli import rules as body

    return body.remove(found_folder(project), rule).say(json)


@rule_app.command()
def history(rule: Rule, project: ProjectOption = None, json: Json = False) -> int:
    """Show all versions of a rule, and who made each."""
    from headrace.cli import rules as body

    return body.history(found_folder(project), rule).say(json)
