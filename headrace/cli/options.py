"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_FOLDER = "the project's folder; else the current one or the nearest above it with headrace.toml"
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, errors included.")]
Folder = Annotated[Path | None, typer.Argument(metavar="[DIR]", help=_FOLDER, show_default=False)]
ProjectOption = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help=_FOLDER, show_default=False)
]
