"""Parses the text of rules and watches that are added at run time.

The text comes over the network, so its size is limited before it is parsed, and other kinds of
statements are rejected before they are parsed: CREATE RULES would open the file that it names. The
SQL inside is checked when it is compiled, by spark/added_definitions.py.
tests/run/test_definition_text.py checks each.
"""

from __future__ import annotations

from typing import TypeVar, cast

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.settings import QuerySettings
from headrace.define.statements import read_statements
from headrace.define.tokens import statements
from headrace.spark.sql_limits import SqlLimits, check_size

T = TypeVar("T", RuleDefinition, WatchDefinition)
_KINDS = {RuleDefinition: "RULE", WatchDefinition: "WATCH"}


def parse_added(text: str, kind: type[T], query: QuerySettings) -> tuple[T, ...]:
    """The definitions of a text from the network."""
    path = _KINDS[kind].lower()
    limits = SqlLimits(text_max=query.text_max)
    for tokens in statements(text, path):
        check_size(text[tokens[0].start : tokens[-1].end + 1], limits)
    return parse_kind(text, path, kind)


def parse_kind(text: str, path: str, kind: type[T]) -> tuple[T, ...]:
    """The definitions of a text that has definitions of this kind only."""
    heads = [" ".join(token.text.upper() for token in s[:2]) for s in statements(text, path)]
    if set(heads) != {f"CREATE {_KINDS[kind]}"}:
        raise BadDefinition(
            f"only CREATE {_KINDS[kind]} statements are accepted here",
            hint="use `headrace rule add` or `headrace watch add`; put other definitions into the "
            "project's files and restart the project.",
            origin=Origin(path, 1),
        )
    return cast(tuple[T, ...], tuple(read_statements(text, path)))
