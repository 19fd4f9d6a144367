"""The files of the web console, built from `console/` at the root of the repository.

Assets are looked up by name in a dictionary: no part of a request ever becomes a path. An asset's
name has a hash of its content, so the content of a name never changes. The console uses only the
HTTP API.
tests/console/test_files.py checks it; tests/console/test_screens.py visits each screen.
"""

from __future__ import annotations

from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

STATIC = Path(__file__).parent / "static"
# Python's own table depends on the machine's configuration.
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Headrace</title></head>
<body>
<p>The console is not built: run <code>make console</code> and start the project again.</p>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    """A file of the console and its media type."""

    body: bytes
    media: str


@dataclass(frozen=True, slots=True)
class Console:
    """The page and its assets."""

    page: bytes
    assets: dict[str, ConsoleFile]


def load(folder: Path = STATIC) -> Console:
    """Load all built files into memory; without a build, a page that says so."""
    index = folder / "index.html"
    if not index.exists():
        return Console(NOT_BUILT, {})
    found = sorted((folder / "assets").iterdir())
    return Console(index.read_bytes(), {path.name: _asset(path) for path in found})


def _asset(path: Path) -> ConsoleFile:
    media = _MEDIA.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
    return ConsoleFile(path.read_bytes(), media)
