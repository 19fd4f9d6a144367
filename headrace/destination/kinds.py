"""All kinds of destinations, and their parser.

A new kind is a module of its own and an entry here; no other code compares kinds.
tests/define/test_create_rule.py and tests/compile/test_sinks.py read the errors.
"""

from __future__ import annotations

from typing import get_args

from headrace.define.tokens import TokenCursor
from headrace.destination.call import CallDestination
from headrace.destination.email import EmailDestination
from headrace.destination.file import FileDestination
from headrace.destination.stream import StreamDestination
from headrace.destination.webhook import WebhookDestination

Destination = (
    WebhookDestination | StreamDestination | FileDestination | EmailDestination | CallDestination
)
KINDS: tuple[type[Destination], ...] = get_args(Destination)
_SINKS = [kind for kind in KINDS if kind.accepts_panes]


def parse_notify(tokens: TokenCursor) -> Destination:
    """Parse one of the destinations after NOTIFY."""
    origin = tokens.origin
    kind = next((kind for kind in KINDS if kind.accept(tokens)), None)
    if kind is None:
        *others, last = (kind.usage for kind in KINDS)
        raise tokens.error(f"NOTIFY requires {', '.join(others)} or {last}", origin)
    return kind.read(tokens)


def parse_into(tokens: TokenCursor) -> Destination:
    """Parse the destination of a sink after INTO."""
    origin = tokens.origin
    kind = next((kind for kind in _SINKS if kind.accept(tokens)), None)
    if kind is None:
        known = " or ".join(sorted(f"INTO {kind.word}" for kind in _SINKS))
        raise tokens.error(f"a sink must write {known}, not {tokens.word().lower()}", origin)
    return kind.read(tokens)
