"""`headrace new`: a working project, copied from the folder `template`.

Nothing is ever overwritten: a folder that is not empty is refused. Hidden files of git or an editor
are allowed, because no file of the template is hidden.
tests/cli/test_new.py creates one, and sends its events.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from headrace.cli.report import Report, dim, good, unwrapped
from headrace.core.errors import BadProject

TEMPLATE = Path(__file__).parent / "template"
_NAME = 'name = "shop"'


def new(folder: Path) -> Report:
    """Create a project in `folder`."""
    _refuse_if_used(folder)
    try:
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
        _give_name(folder)
    except OSError as error:
        raise BadProject(f"the project cannot be created in {folder}: {error}") from error
    files = sorted(str(p.relative_to(TEMPLATE)) for p in TEMPLATE.rglob("*") if p.is_file())
    commands = next_commands(folder)
    document = {"folder": str(folder.resolve()), "files": files, "next": commands}
    lines = [unwrapped(f"  {command}") for command in commands]
    made = good(f"created {folder}: ").append(", ".join(files), style="default")
    return Report(document, [made, dim("next, the second and third in another terminal:"), *lines])


def next_commands(folder: Path) -> list[str]:
    """The next commands; `cd` is not needed in the folder itself."""
    go = [] if folder.resolve() == Path.cwd() else [f"cd {folder}"]
    query = 'headrace query "SELECT * FROM visitors ORDER BY hits DESC"'
    return [
        " && ".join([*go, step])
        for step in ("headrace run", "headrace send clicks events.ndjson", query)
    ]


def _refuse_if_used(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BadProject(f"{folder} is a file", hint="give a folder that does not exist yet.")
    used = [path.name for path in folder.iterdir()] if folder.exists() else []
    visible = sorted(name for name in used if not name.startswith("."))
    if visible:
        raise BadProject(
            f"the folder {folder} is not empty",
            detail=f"it contains {', '.join(visible[:3])}.",
            hint="give a folder that is empty or does not exist yet.",
        )


def _give_name(folder: Path) -> None:
    path = folder / "headrace.toml"
    # A JSON string is also a valid TOML string.
    name = json.dumps(folder.resolve().name or "shop", ensure_ascii=False)
    path.write_text(path.read_text("utf-8").replace(_NAME, f"name = {name}"), "utf-8")
