"""The object of an operation: a stream, a table, a view, a rule, a whole job, or everything.

A watch is a rule with an end, so it is `rule:name` too. Names are case-insensitive, as in SQL.
tests/access/test_caller.py checks which object covers which.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.errors import BadRequest

KINDS = ("stream", "table", "view", "rule", "job")
NAME_MAX = 200


@dataclass(frozen=True, slots=True)
class Object:
    """`kind:name`, or `*`. `object_of` makes one, with the name in lower case."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.kind else "*"

    def covers(self, other: Object, job: str) -> bool:
        """Whether a grant on this object includes the other object, which is in that job."""
        if not self.kind or self == other:
            return True
        # A job covers everything in it, but not the users, who belong to the whole server.
        return self.kind == "job" and self.name == job and other.kind not in ("", "job")


EVERYTHING = Object("", "")


def object_of(kind: str, name: str) -> Object:
    return Object(kind, name.lower())


def read_object(text: str) -> Object:
    """The object that a text names.

    >>> str(read_object("stream:Clicks")), str(read_object("*"))
    ('stream:clicks', '*')
    """
    if text == "*":
        return EVERYTHING
    kind, _, name = text.partition(":")
    if kind not in KINDS or not name or len(name) > NAME_MAX or not name.isprintable():
        raise BadRequest(
            f"'{text[:40]}' is not an object that a grant can name",
            hint=f"write * or one of {', '.join(f'{kind}:NAME' for kind in KINDS)}.",
        )
    return object_of(kind, name)
