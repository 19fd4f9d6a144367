"""Messages for tests: a notification, and panes."""

from __future__ import annotations

import json
from typing import Any

from headrace.destination.protocol import Message

SAID: dict[str, Any] = {
    "key": "abc:withdrawn", "kind": "withdrawn", "rule": "slow", "severity": "high",
    "alerts": [{"id": "abc", "body": {"user": "änn"}}],
}  # fmt: skip
NOTICE = Message(1, "abc:withdrawn", json.dumps(SAID).encode())
