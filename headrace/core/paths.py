"""Local paths are not shown over the network.

A process that serves others hides its folders once, at its start: from then on no error names them,
whatever raises or shows it. The path below a hidden folder stays visible: `…/log/clicks`. A command
that a user runs on files of their own hides nothing. tests/core/test_paths.py and
tests/run/test_instance.py check that the folders are hidden.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# The folders of Python and of Headrace, which errors of libraries name.
_INSTALLED = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
_hidden = set[str]()
_pattern: re.Pattern[str] | None = None


def hide_paths(*folders: Path) -> None:
    """Hide these folders in all errors of this process."""
    global _pattern
    _hidden.update(str(path) for folder in folders for path in (folder, folder.resolve()))
    _hidden.update(_INSTALLED)
    known = sorted((path for path in _hidden if path.count("/") > 1), key=len, reverse=True)
    roots = "|".join(map(re.escape, known))
    _pattern = re.compile(rf"(?<![\w/.-])(?:file:(?://)?)?(?:{roots})(?![\w.-])")


def without_paths(text: str) -> str:
    """The text, with … in place of each hidden folder."""
    return _pattern.sub("…", text) if _pattern else text
