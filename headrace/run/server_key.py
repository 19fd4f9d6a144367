"""The key that a job shares with its server: a file in the job's state, readable by its owner only.

The server creates it before the first launch of the job and never replaces it, so that a restarted
server still has the key of a running job. tests/run/test_server_key.py checks the file's mode.
"""

from __future__ import annotations

import os
import secrets

from headrace.access.delegation import KEY_BYTES
from headrace.define.layout import Layout


def ensure_key(layout: Layout) -> bytes:
    """The key of a job; created if there is none."""
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
