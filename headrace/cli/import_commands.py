"""`headrace import …`: the commands and their options. What they do is in `importing.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json

import_app = typer.Typer(help="Create definitions from files of other tools.", no_args_is_help=True)


@import_app.command()
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
    from headrace.cli import importing as body

    report = body.sigma(files, stream, time, keywords, output)
    if not json:
        body.show_errors(report)
    return report.print(json)
