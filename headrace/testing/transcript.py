"""A transcript is a test of a view in YAML: the events that are sent, and the expected answers.

    name: a late event updates its closed window
    view: SELECT window(ts, '10 seconds') AS w, count(*) AS n FROM clicks GROUP BY 1
    watermark: 20 seconds
    steps:
      - events: [1s, 3s, {at: 31s, user: a}]
      - expect: {"[0s, 10s)": 2, "[30s, 40s)": 1}
      - {events: [7s], expect: {"[0s, 10s)": 3}, late: 1}

What is defined: `view` (named `answer`) and `definitions` (CREATE statements, used as they are).
If those create no stream that takes events in, the stream is CLICKS below, with the `watermark`
given and the id `event_id` where an event has one. `tables` maps a table to its rows; a table that
is not created in `definitions` gets columns after its rows. `subscribe` is the text of one
subscription.

A step has any of these, done in this order:
  events        a list of timestamps (7s after 2026-01-01T00:00:00Z), maps ({at: 7s, user: a, id:
  x})
                or {raw: text}; `stream` says where they go, if not to the first stream
  boundary      true: here the log could be cut between batch and speed
  expect        the answer of `view` (if not said, the last one): a list of rows; or a map from key
                to value (`a | [0s, 10s)` for two keys, a list for several values), which says what
                changed since the last map (`gone`: the row is no more); or one value
  in_order      a list of rows, in this order
  late, dead_letters, duplicates    how many there have been so far
  late          also a map from key to numbers, for the windows of `view`, such as
                {"[0s, 10s)": {on_time: 2, late: 1, late_by_max: 5s, late_by_mean: 5s}};
                no other window may have late events
  wait          no events for that long; the clock of intervals advances, and partitions become idle
  matches       a map from each watch of `definitions` to all that it has found so far, in order
  ended         a map from the watches that have ended so far to why
  panes         the panes of the subscription of `subscribe` since the last check, in order; a pane
                is a row with op, timing, pane and last, if not insert, early, 0 and false

A stream has one partition, or as many as its definition says; then it has a key. The watermark of
several moves with each send and wait, so what waits for it is checked before the next one.
`processors` is Python text: the classes under @processor(…) that `definitions` call. `files` maps
the path of any other file beside the definitions, such as a decision table, to its text.
`approximate` maps a column to the relative error that an engine may have in it. `steps_max` is the
setting pattern.steps_max. tests/testing/test_transcript.py checks the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.testing.declarations import Declarations

CLICKS = (
    "user STRING, url STRING, ts TIMESTAMP, ms BIGINT, price DOUBLE, ok BOOLEAN, tags ARRAY<STRING>"
)


@dataclass(frozen=True, slots=True)
class Send:
    """Send these records, in this order, as a producer would."""

    stream: str
    records: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Here the log could be cut between batch and speed."""


@dataclass(frozen=True, slots=True)
class Expect:
    """The whole answer of a view at this point."""

    view: str
    rows: tuple[dict[str, Any], ...]
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """How many events were late, dead letters or duplicates so far; only those that are named."""

    so_far: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the events of a view's windows were: key values, and the numbers that are named."""

    view: str
    windows: tuple[tuple[list[Any], Mapping[str, int]], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """No events for that long."""

    us: int


@dataclass(frozen=True, slots=True)
class Panes:
    """The expected panes of the subscription here."""

    panes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """All that some watches have found, and which have ended, if that is said."""

    rows: Mapping[str, list[dict[str, Any]]]
    ended: Mapping[str, str] | None = None


Step = Send | Boundary | Expect | Counts | Lateness | Wait | Panes | Matches


@dataclass(frozen=True, slots=True)
class Transcript:
    """A parsed transcript.

    `definitions_sql` is everything that must be defined, in Headrace's dialect; the files of
    `table_files` belong beside it, under the names that its LOCATIONs say, and those of `files`.
    """

    name: str
    definitions_sql: str
    declared: Declarations
    steps: tuple[Step, ...]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    approximate: Mapping[str, float] = field(default_factory=dict)
    processors: str = ""
    subscribe: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    steps_max: int | None = None

    @property
    def functions_text(self) -> str:
        """The functions.py that the definitions need, empty if they need none."""
        return f"from headrace import processor\n\n\n{self.processors}" if self.processors else ""

    def table_files(self) -> dict[str, bytes]:
        """The content of each table's file by its name: one JSON object a line."""
        return {
            table.location: "".join(
                json.dumps(row, ensure_ascii=False) + "\n" for row in self.tables[table.name]
            ).encode()
            for table in self.declared.tables
            if table.name in self.tables
        }

    def batches(self) -> list[Send]:
        """Everything that is sent, in order: each may become a micro-batch of its own."""
        return [step for step in self.steps if isinstance(step, Send)]

    def boundaries(self) -> list[int]:
        """How many of `batches` lie before each boundary."""
        found, sent = [], 0
        for step in self.steps:
            sent += isinstance(step, Send)
            found += [sent] if isinstance(step, Boundary) else []
        return found

    def views(self) -> list[str]:
        """The views with expectations, each once."""
        return list(dict.fromkeys(step.view for step in self.steps if isinstance(step, Expect)))


def load(path: str | Path) -> Transcript:
    """Read a transcript from its file."""
    from headrace.testing.transcript_parser import transcript_of, yaml_of  # it imports this module

    return transcript_of(yaml_of(Path(path).read_text()), str(path))


def loads(text: str) -> Transcript:
    """Read a transcript from its text."""
    from headrace.testing.transcript_parser import transcript_of, yaml_of

    return transcript_of(yaml_of(text), "transcript")
