"""Parses a transcript's YAML and expands every short form.

After this an expectation is a whole list of rows and an event is bytes, so that an engine needs to
know nothing of the short forms. An unknown key is refused, since a misspelt `expect` would check
nothing. tests/testing/test_transcript.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.core.errors import BadDefinition
from headrace.core.time import duration_us
from headrace.testing.declarations import Declarations, read_declarations
from headrace.testing.reference_engine import reference_of
from headrace.testing.short_forms import GONE, expected_value, record
from headrace.testing.transcript import (
    CLICKS,
    Boundary,
    Counts,
    Expect,
    Lateness,
    Matches,
    Panes,
    Send,
    Step,
    Transcript,
    Wait,
)

_TOP = {
    "name", "view", "definitions", "watermark", "tables", "steps", "approximate", "processors",
    "subscribe", "files", "steps_max",
}  # fmt: skip
_STEP = {"events", "stream", "boundary", "expect", "in_order", "view", "wait", "panes"}
_STEP |= {"matches", "ended"}
_PANE = {"op": "insert", "timing": "early", "pane": 0, "last": False}
_COUNTS = ("late", "dead_letters", "duplicates")
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}


def yaml_of(text: str) -> Any:
    """Plain YAML, except that a timestamp stays text."""
    import yaml  # only transcripts need it, so only they must have it installed

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where it was built

    class Loader(base):  # type: ignore[misc, valid-type]
        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return yaml.load(text, Loader)


def transcript_of(story: Mapping[str, Any], where: str) -> Transcript:
    """The transcript of a YAML document."""
    _refuse_unknown(story, _TOP, where)
    tables = {name: rows or [] for name, rows in (story.get("tables") or {}).items()}
    sql = _definitions(story, tables)
    found = read_declarations(sql)
    processors = story.get("processors") or ""
    files = dict(story.get("files") or {})
    reader = _Reader(found, tables, processors, files)
    steps = tuple(part for step in story["steps"] for part in reader.parts(step, where))
    return Transcript(
        story["name"],
        sql,
        found,
        steps,
        tables,
        dict(story.get("approximate") or {}),
        processors,
        story.get("subscribe"),
        files,
        story.get("steps_max"),
    )


def _refuse_unknown(said: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in said:
        if name not in known:
            raise BadDefinition(
                f"'{name}' is not a field of a transcript",
                hint=f"available fields: {', '.join(sorted(known))}.",
                origin=where,
            )


def _definitions(story: Mapping[str, Any], tables: Mapping[str, list[dict[str, Any]]]) -> str:
    """The CREATE statements: the default stream if there is none, tables, then `definitions`."""
    said = (story.get("definitions") or "").strip()
    found = read_declarations(said)
    statements = [] if found.streams else [_clicks(story)]
    created = {table.name for table in found.tables}
    statements += [_table(name, rows) for name, rows in tables.items() if name not in created]
    statements += [said if said.endswith(";") else said + ";"] if said else []
    statements += [f"CREATE VIEW answer AS {story['view'].strip()};"] if "view" in story else []
    return "\n".join(statements) + "\n"


def _clicks(story: Mapping[str, Any]) -> str:
    delay = story.get("watermark")
    watermark = f", WATERMARK ts DELAY OF INTERVAL {delay}" if delay else ""
    events = [event for step in story["steps"] for event in step.get("events") or []]
    with_id = any(isinstance(event, Mapping) and "id" in event for event in events)
    options = " WITH (id = 'event_id')" if with_id else ""
    return f"CREATE STREAM clicks ({CLICKS}{watermark}){options};"


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    """A table with the columns of its rows, each of the type of its first value."""
    columns: dict[str, str] = {}
    for row in rows:
        for column, value in row.items():
            if value is not None:
                columns.setdefault(column, _TYPES[type(value)])
    listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    return f"CREATE TABLE {name} ({listed}) USING json LOCATION '{name}.json';"


@dataclass
class _Reader:
    """Reads the steps in order, remembering what the last map said of each view."""

    declared: Declarations
    tables: Mapping[str, list[dict[str, Any]]]
    processors: str
    files: Mapping[str, str]
    known: dict[str, dict[Any, dict[str, Any]]] = field(default_factory=dict)

    def parts(self, step: Mapping[str, Any], where: str) -> Iterator[Step]:
        _refuse_unknown(step, _STEP | set(_COUNTS), where)
        if "events" in step:
            yield self._send(step)
        if step.get("boundary"):
            yield Boundary()
        if "expect" in step:
            view = step.get("view") or self.declared.queries[-1].name
            yield Expect(view, tuple(self._rows(view, step["expect"])))
        if "in_order" in step:
            view = step.get("view") or self.declared.queries[-1].name
            yield Expect(view, tuple(self._rows(view, step["in_order"])), in_order=True)
        if isinstance(step.get("late"), Mapping):
            view = step.get("view") or self.declared.queries[-1].name
            yield Lateness(view, tuple(map(_window, step["late"].items())))
        if "wait" in step:
            yield Wait(duration_us(step["wait"]))
        if "panes" in step:
            yield Panes(tuple(_pane(said) for said in step["panes"]))
        if "matches" in step or "ended" in step:
            yield _matches(step)
        counts = {n: step[n] for n in _COUNTS if n in step and not isinstance(step[n], Mapping)}
        if counts:
            yield Counts(counts)

    def _send(self, step: Mapping[str, Any]) -> Send:
        stream = self.declared.stream(step.get("stream") or self.declared.streams[0].name)
        names = {"time_column": stream.time_column, "id_field": stream.id_field}
        return Send(stream.name, tuple(record(event, **names) for event in step["events"]))

    def _rows(self, view: str, said: Any) -> list[dict[str, Any]]:
        if isinstance(said, list):
            return [{name: expected_value(value) for name, value in row.items()} for row in said]
        reference = reference_of(self.declared, self.tables, self.processors, self.files)
        columns = reference.columns(view)
        if not isinstance(said, Mapping):
            return [dict(zip(columns, [expected_value(said)], strict=True))]
        rows = self.known.setdefault(view, {})
        for key, value in said.items():
            rows[key] = _row(columns, key, value)
        self.known[view] = {key: row for key, row in rows.items() if said.get(key) != GONE}
        return list(self.known[view].values())


def _matches(step: Mapping[str, Any]) -> Matches:
    rows = {
        watch: [{name: expected_value(value) for name, value in row.items()} for row in found]
        for watch, found in (step.get("matches") or {}).items()
    }
    return Matches(rows, step.get("ended"))


def _pane(said: Mapping[str, Any]) -> dict[str, Any]:
    """A pane with its defaults."""
    rows = [{n: expected_value(v) for n, v in row.items()} for row in said.get("rows", ())]
    whole = {"rows": rows} if "rows" in said else {}
    return _PANE | {name: expected_value(value) for name, value in said.items()} | whole


def _row(columns: tuple[str, ...], key: Any, value: Any) -> dict[str, Any]:
    """`a | 1: [2, 3]` for the columns of a view: keys first, then values."""
    if value == GONE:
        return {}
    keys = _keys(key)
    wanted = len(columns) - len(keys)
    values = value if wanted != 1 and isinstance(value, list) else [value]
    if len(values) != wanted:
        raise BadDefinition(
            f"the expectation {key}: {value} has {len(keys) + len(values)} values",
            detail=f"the view has {len(columns)} columns: {', '.join(columns)}.",
        )
    return dict(zip(columns, map(expected_value, [*keys, *values]), strict=True))


def _keys(key: Any) -> list[Any]:
    parts = key.split(" | ") if isinstance(key, str) else [key]
    return parts if len(parts) == 1 else [_scalar(part) for part in parts]


def _window(said: tuple[Any, Mapping[str, Any]]) -> tuple[list[Any], dict[str, int]]:
    """A window's key values, and what is expected of its lateness; lengths in microseconds."""
    key, numbers = said
    lengths = {n: duration_us(v) if isinstance(v, str) else v for n, v in numbers.items()}
    return [expected_value(value) for value in _keys(key)], lengths


def _scalar(part: str) -> Any:
    """One of several keys, typed as YAML would; a window is text, not a YAML list."""
    return part.strip() if part.strip().startswith("[") else yaml_of(part)
