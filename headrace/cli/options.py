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
OfServer = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="users of this server of jobs")
]
OfHome = Annotated[
    Path | None, typer.Option("--home", metavar="DIR", help="users of the server in this folder")
]
