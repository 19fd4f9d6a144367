"""Parses a transcript's CREATE statements without the compiler.

The reference must not parse definitions with the code that it checks, so this is a second, small
parser: streams with their columns, watermark and id; tables with their file; and the text of each
query, or of rules from their ON on; and watches with their ends. It assumes valid statements, which
`define` checks. tests/testing/test_declarations.py checks it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import BadDefinition
from headrace.core.schema import Column, ComputedExpression, Type
from headrace.core.time import HOUR, MINUTE, duration_us, from_iso

_NAME = r"`?(?P<name>\w+)`?"
_TEXT = r"'(?:[^'\\]|\\.|'')*'"
_LITERAL = rf"{_TEXT}|-?[\d.]+|TRUE|FALSE|NULL"
_CLAUSE = rf"(?:NOT\s+NULL|(?:FORMAT|FROM|COMMENT)\s+{_TEXT}|DEFAULT\s+(?:{_LITERAL}))"
_DEFAULT = re.compile(rf"DEFAULT\s+({_LITERAL})", re.I)
_SAID = re.compile(rf"(FORMAT|FROM)\s+({_TEXT})", re.I)
_QUERY = re.compile(rf"CREATE\s+(?P<kind>STREAM|VIEW)\s+{_NAME}\s+AS\s+(?P<query>.+)", re.I | re.S)
_RULES = re.compile(rf"CREATE\s+RULES\s+{_NAME}\s+(?P<rules>ON\b.+)", re.I | re.S)
_WATCH = re.compile(
    rf"CREATE\s+WATCH\s+{_NAME}\s+AS\s+(?P<query>.+?)"
    r"(?P<ends>\s+(?:UNTIL\s+'|AFTER\s+\d|WHEN\s*\(|SEVERITY\s+'|NOTIFY\s).+)",
    re.I | re.S,
)
_UNTIL = re.compile(r"\bUNTIL\s+'([^']*)'", re.I)
_AFTER = re.compile(r"\bAFTER\s+(\d+)\s+MATCH", re.I)
_WHEN = re.compile(r"\bWHEN\s*\(", re.I)
_STREAM = re.compile(rf"CREATE\s+STREAM\s+{_NAME}\s*\(", re.I)
_TABLE = re.compile(rf"CREATE\s+TABLE\s+{_NAME}\s*\(", re.I)
_COLUMN = re.compile(rf"{_NAME}\s+(?P<type>.+?)(?P<clauses>(?:\s+{_CLAUSE})*)", re.I | re.S)
_GENERATED = re.compile(
    rf"{_NAME}\s+(?P<type>.+?)\s+GENERATED\s+ALWAYS\s+AS\s*\((?P<sql>.+)\)"
    rf"(?:\s+COMMENT\s+{_TEXT})?",
    re.I | re.S,
)
_WATERMARK = re.compile(
    rf"WATERMARK\s+{_NAME}\s+DELAY\s+OF\s+INTERVAL\s+(?P<delay>.+)", re.I | re.S
)
_OPTIONS = {
    "ahead": re.compile(r"\bwatermark\.ahead\s*=\s*'([^']*)'", re.I),
    "idle": re.compile(r"\bwatermark\.idle\s*=\s*'([^']*)'", re.I),
    "id": re.compile(r"\bid\s*=\s*'([^']*)'", re.I),
    "key": re.compile(r"\bkey\s*=\s*'([^']*)'", re.I),
    "partitions": re.compile(r"\bpartitions\s*=\s*'?(\d+)", re.I),
}
_LOCATION = re.compile(r"LOCATION\s+'([^']*)'", re.I)
# Quoted text and comments are one piece each, so that nothing inside them separates.
_PIECE = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|--[^\n]*|.", re.S)


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """A stream that takes events in; late is what is more than `delay_us` behind the newest in its
    partition that is not dated more than `ahead_us` after its arrival."""

    name: str
    columns: tuple[Column, ...]
    time_column: str | None = None
    delay_us: int | None = None
    id_field: str | None = None
    ahead_us: int = HOUR
    idle_us: int = MINUTE
    partitions: int = 1
    key_field: str | None = None

    @property
    def computed(self) -> dict[str, str]:
        """SQL of the value of each computed column."""
        said = [(c.name, c.generated, c.type) for c in self.columns]
        return {name: f"CAST({g.sql} AS {type.spark})" for name, g, type in said if g}


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    name: str
    columns: tuple[Column, ...]
    location: str


@dataclass(frozen=True, slots=True)
class QueryDeclaration:
    name: str
    kind: str  # "stream" or "view"
    text: str


@dataclass(frozen=True, slots=True)
class WatchDeclaration:
    """A query with an end: at a timestamp, after some matches, or when a condition over its columns
    comes true.
    """

    name: str
    text: str
    until_us: int | None = None
    matches_max: int | None = None
    when: str | None = None

    @property
    def done(self) -> str:
        """The name of the query for the matches that end it."""
        return f"{self.name} done"

    def queries(self) -> dict[str, str]:
        ends = {self.done: f"SELECT * FROM {self.name} WHERE {self.when}"} if self.when else {}
        return {self.name: self.text} | ends


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that a transcript's definitions declare, in the order in which they do."""

    streams: tuple[StreamDeclaration, ...] = ()
    tables: tuple[TableDeclaration, ...] = ()
    queries: tuple[QueryDeclaration, ...] = ()
    watches: tuple[WatchDeclaration, ...] = ()

    def stream(self, name: str) -> StreamDeclaration:
        found = next((s for s in self.streams if s.name.lower() == name.lower()), None)
        if found is None:
            raise BadDefinition(
                f"the transcript sends events to '{name}', but declares no such stream"
            )
        return found


def read_declarations(sql: str) -> Declarations:
    """Read the CREATE statements of a text.

    >>> found = read_declarations("CREATE STREAM s (a STRING NOT NULL, n INT) WITH (id = 'k');")
    >>> found.streams[0].id_field, found.streams[0].columns[0].nullable
    ('k', False)
    """
    parts = [_statement(text) for text in split(without_comments(sql), ";") if text.strip()]
    return Declarations(
        streams=tuple(part for part in parts if isinstance(part, StreamDeclaration)),
        tables=tuple(part for part in parts if isinstance(part, TableDeclaration)),
        queries=tuple(part for part in parts if isinstance(part, QueryDeclaration)),
        watches=tuple(part for part in parts if isinstance(part, WatchDeclaration)),
    )


def without_comments(sql: str) -> str:
    return "".join(piece for piece in _PIECE.findall(sql) if not piece.startswith("--"))


def split(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that stand outside quotes, parentheses and angle brackets, which
    are brackets in a type and signs in an expression."""
    inside, depth, part = 0, 0, ""
    for piece in _PIECE.findall(text):
        inside += (piece == "(") - (piece == ")") if separator == "," else 0
        depth += (piece == "<") - (piece == ">") if separator == "," and not inside else 0
        if piece == separator and inside == depth == 0:
            yield part
            part = ""
        else:
            part += piece
    yield part


def _statement(
    text: str,
) -> StreamDeclaration | TableDeclaration | QueryDeclaration | WatchDeclaration:
    text = text.strip()
    if match := _QUERY.match(text):
        return QueryDeclaration(match["name"], match["kind"].lower(), match["query"].strip())
    if match := _RULES.match(text):
        return QueryDeclaration(match["name"], "stream", match["rules"].strip())
    if match := _WATCH.match(text):
        return _watch(match["name"], match["query"].strip(), match["ends"])
    if match := _STREAM.match(text):
        return _stream(match["name"], *_body(text, match.end()))
    if match := _TABLE.match(text):
        body, rest = _body(text, match.end())
        location = _LOCATION.search(rest)
        return TableDeclaration(match["name"], columns_of(body), location[1] if location else "")
    raise BadDefinition(f"a transcript does not support this statement: {text[:60]}")


def _body(text: str, start: int) -> tuple[str, str]:
    """What is inside the parentheses that opened before `start`, and what comes after them."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return text[start:place], text[place + 1 :]
    raise BadDefinition(f"a parenthesis is not closed: {text[:60]}")


def _stream(name: str, body: str, options: str) -> StreamDeclaration:
    watermark = next(
        filter(None, (_WATERMARK.fullmatch(p.strip()) for p in split(body, ","))), None
    )
    delay = duration_us(watermark["delay"].replace("'", "")) if watermark else None
    columns = columns_of(body)
    first = next((c.name for c in columns if c.type == Type("TIMESTAMP")), None)
    said = {
        name: found[1] if (found := option.search(options)) else None
        for name, option in _OPTIONS.items()
    }
    return StreamDeclaration(
        name,
        columns,
        watermark["name"] if watermark else first,
        delay,
        said["id"],
        duration_us(said["ahead"] or "1 hour"),
        duration_us(said["idle"] or "1 minute"),
        int(said["partitions"] or 1),
        said["key"],
    )


def _watch(name: str, text: str, ends: str) -> WatchDeclaration:
    until, after, when = (pattern.search(ends) for pattern in (_UNTIL, _AFTER, _WHEN))
    return WatchDeclaration(
        name,
        text,
        from_iso(until[1]) if until else None,
        int(after[1]) if after else None,
        _body(ends, when.end())[0] if when else None,
    )


def columns_of(body: str) -> tuple[Column, ...]:
    """The columns that are declared between parentheses, without the watermark."""
    parts = [part.strip() for part in split(body, ",")]
    columns = (_column(part) for part in parts if not _WATERMARK.fullmatch(part))
    return tuple(column for column in columns if column)


def _column(text: str) -> Column | None:
    if computed := _GENERATED.fullmatch(text):
        kind, said = Type.parse(computed["type"]), ComputedExpression(computed["sql"])
        return Column(computed["name"], kind, generated=said)
    match = _COLUMN.fullmatch(text)
    return _in_event(match) if match else None


def _in_event(match: re.Match[str]) -> Column:
    clauses = match["clauses"]
    said = {word.upper(): _unquoted(text) for word, text in _SAID.findall(clauses)}
    required = re.search(r"NOT\s+NULL", re.sub(_TEXT, "", clauses), re.I)
    kind, default = Type.parse(match["type"]), _DEFAULT.search(clauses)
    return Column(
        match["name"],
        kind,
        not required,
        said.get("FORMAT"),
        said.get("FROM"),
        _json(default[1]) if default else None,
    )


def _json(literal: str) -> str | None:
    if literal.startswith("'"):
        return json.dumps(_unquoted(literal))
    return None if literal.upper() == "NULL" else literal.lower()


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'").replace("\\'", "'")
