"""Who runs this process, for what is kept of changes. It is a name and no proof."""

from __future__ import annotations

import getpass


def os_user() -> str:
    """The machine's user; `unknown` where it has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
