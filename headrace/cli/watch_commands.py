"""`headrace watch …`: the commands and their options; what they do is in cli/watches.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, ProjectOption
from headrace.define.folder import find_project_folder

watch_app = typer.Typer(no_args_is_help=True, help="Show, add and remove watches.")
Watch = Annotated[str, typer.Argument(metavar="WATCH", help="the watch's name")]


@watch_app.command("list")
def list_(
    state: Annotated[str | None, typer.Option(help="only those: active or ended")] = None,
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Show all watches, and why ended ones ended."""
    from headrace.cli import watches as body

    return body.list_watches(find_project_folder(project), state).print(json)


@watch_app.command()
def show(watch: Watch, project: ProjectOption = None, json: Json = False) -> int:
    """Show one watch, with its text."""
    from headrace.cli import watches as body

    return body.show_watch(find_project_folder(project), watch).print(json)


@watch_app.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="a file of CREATE WATCH …")],
    project: ProjectOption = None,
    json: Json = False,
) -> int:
    """Add the watches of a file, or change watches that were added before."""
    from headrace.cli import watches as body

    return body.add(find_project_folder(project), file).print(json)


@watch_app.command()
def remove(watch: Watch, project: ProjectOption = None, json: Json = False) -> int:
    """Remove a watch that was added; its alerts are kept."""
    from headrace.cli import watches as body

    return body.remove(find_project_folder(project), watch).print(json)
