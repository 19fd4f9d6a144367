"""The key that a job shares with its server: a file in the job's state, for its owner alone.

The server makes it before it starts the job, and keeps it for the starts after that, so that a
server that comes back still has the key of a job that went on. tests/run/test_server_key.py checks
the file's mode.
"""

from __future__ import annotations

import os
import secrets

from headrace.access.delegation import KEY_BYTES
from headrace.define.layout import Layout


def made_key(layout: Layout) -> bytes:
    """The key of a job; made if there is none yet."""
    layout.make_state()
    fresh = layout.server_key.with_suffix(".new")
    if not layout.server_key.is_file():
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        fresh.replace(layout.server_key)
    return read_key(layout)


def read_key(layout: Layout) -> bytes:
    return layout.server_key.read_bytes()
