"""The operating system's user, for the record of changes. It is a name, not an authentication."""

from __future__ import annotations

import getpass


def os_user() -> str:
    """The machine's user; `unknown` where it has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
