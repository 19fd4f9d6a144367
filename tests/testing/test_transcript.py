"""The format of transcripts: short forms, defaults, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.core.errors import BadDefinition
from headrace.testing import ReferenceEngine, TranscriptFailed, loads, play
from headrace.testing.short_forms import record
from headrace.testing.transcript import Boundary, Counts, Expect, Lateness, Send

STORY = """
name: a late event updates its closed window
view: >
  SELECT window(ts, '10 seconds') AS w, count(*) AS n
  FROM clicks GROUP BY window(ts, '10 seconds')
watermark: 20 seconds
steps:
  - events: [1s, 3s, 31s]
  - boundary: true
  - expect: {"[0s, 10s)": 2, "[30s, 40s)": 1}
  - {events: [7s], expect: {"[0s, 10s)": 3}, late: 1}
"""


def test_a_story_becomes_steps_in_order() -> None:
    story = loads(STORY)
    kinds = [type(step) for step in story.steps]
    assert kinds == [Send, Boundary, Expect, Send, Expect, Counts]
    assert [len(batch.records) for batch in story.batches()] == [3, 1]
    assert story.boundaries() == [1]
    assert story.views() == ["answer"]


def test_a_map_says_what_changed_and_the_rest_must_stay() -> None:
    last = [step for step in loads(STORY).steps if isinstance(step, Expect)][-1]
    assert [row["n"] for row in last.rows] == [3, 1]


def test_the_default_stream_is_written_out_with_its_watermark() -> None:
    first = loads(STORY).definitions_sql.splitlines()[0]
    assert first == (
        "CREATE STREAM clicks (user STRING, url STRING, ts TIMESTAMP, ms BIGINT, price DOUBLE, "
        "ok BOOLEAN, tags ARRAY<STRING>, WATERMARK ts DELAY OF INTERVAL 20 seconds);"
    )


def test_tables_get_a_definition_and_a_file() -> None:
    story = loads(
        "{name: n, view: SELECT count(*) AS n FROM clicks, steps: [],"
        " tables: {t: [{a: x, b: null}, {a: é, b: 2}]}}"
    )
    created = "CREATE TABLE t (a STRING, b BIGINT) USING json LOCATION 't.json';"
    assert created in story.definitions_sql
    assert story.table_files() == {"t.json": '{"a": "x", "b": null}\n{"a": "é", "b": 2}\n'.encode()}


def test_a_story_may_have_other_files_beside_its_definitions() -> None:
    story = loads(
        "{name: n, definitions: CREATE RULES d ON clicks FROM 'd.csv',"
        ' files: {d.csv: "rule,user,SET f\\na,x,1\\n"},'
        " steps: [{events: [{user: x}], expect: [{f: 1, rule: a}]}],"
        " view: 'SELECT f, rule FROM d'}"
    )
    assert story.files == {"d.csv": "rule,user,SET f\na,x,1\n"}
    play(story, ReferenceEngine())


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("7s", {"ts": "2026-01-01T00:00:07Z"}),
        ({"at": "-1.5s", "user": "a"}, {"ts": "2025-12-31T23:59:58.500000Z", "user": "a"}),
        ({"at": None}, {"ts": None}),
        ({"id": "x", "seen": "@1s"}, {"event_id": "x", "seen": "2026-01-01T00:00:01Z"}),
        ({"at": 0}, {"ts": "2026-01-01T00:00:00Z"}),
    ],
)
def test_an_event_is_sent_as_json(event: Any, expected: dict[str, Any]) -> None:
    assert json.loads(record(event, time_column="ts", id_field="event_id")) == expected


def test_a_raw_event_is_sent_as_it_is() -> None:
    assert record({"raw": "{not json"}, time_column="ts", id_field=None) == b"{not json"


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("{expects: 1}", "'expects' is not a field of a transcript"),
        ("{events: [soon]}", "'soon' is not a timestamp such as 7s"),
        ("{expect: {a | b: 1}}", "has 3 values"),
        ("{stream: other, events: [1s]}", "sends events to 'other', but declares no such stream"),
    ],
)
def test_a_mistake_in_a_transcript_is_said(step: str, sentence: str) -> None:
    with pytest.raises(BadDefinition, match=sentence):
        loads(f"{{name: n, view: 'SELECT user AS u, 1 AS n FROM clicks', steps: [{step}]}}")


def test_a_story_that_does_not_come_true_says_where_and_what() -> None:
    story = loads(STORY.replace('{"[0s, 10s)": 3}, late: 1', '{"[0s, 10s)": 4}, late: 1'))
    with pytest.raises(TranscriptFailed) as caught:
        play(story, ReferenceEngine())
    assert str(caught.value) == (
        "'a late event updates its closed window' fails at step 5:\n"
        "  - row w=[2026-01-01T00:00:00Z, 2026-01-01T00:00:10Z): n should be 4 but is 3"
    )


def test_a_wrong_count_and_a_wrong_order_are_said() -> None:
    view = "SELECT ms FROM clicks ORDER BY ms"
    order = "{events: [{ms: 2}, {ms: 1}], in_order: [{ms: 2}, {ms: 1}]}"
    with pytest.raises(TranscriptFailed, match="not in order, from row 1 on"):
        play(loads(f"{{name: n, view: {view}, steps: [{order}]}}"), ReferenceEngine())
    with pytest.raises(TranscriptFailed, match="late should be 1 but is 0"):
        play(loads(f"{{name: n, view: {view}, steps: [{{late: 1}}]}}"), ReferenceEngine())


def test_a_map_of_late_speaks_of_windows_and_a_number_of_all_events() -> None:
    said = '{"[0s, 10s)": {on_time: 2, late: 1, late_by_max: 4s}}'
    story = loads(STORY.replace("late: 1}", f"late: {said}}}"))
    window = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:10Z"}
    numbers = {"on_time": 2, "late": 1, "late_by_max": 4_000_000}
    assert story.steps[-1] == Lateness("answer", (([window], numbers),))
    play(story, ReferenceEngine())


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('{"[0s, 10s)": {late_by_max: 5s}}', "late_by_max should be 5000000 but is 4000000"),
        ('{"[50s, 60s)": {late: 0}, "[0s, 10s)": {}}', "there is no window"),
        ('{"[30s, 40s)": {on_time: 1}}', "has late events: 1"),
    ],
)
def test_a_lateness_that_is_wrong_is_told(said: str, sentence: str) -> None:
    story = loads(STORY.replace("late: 1}", f"late: {said}}}"))
    with pytest.raises(TranscriptFailed, match=sentence):
        play(story, ReferenceEngine())


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("matches: {w: [{ms: 2}, {ms: 1}]}", "w should have found .*, but has .*"),
        ("matches: {w: [{ms: 1}]}", "w should have found .*, but has .*"),
        ("ended: {}", "ended should be {} but is {'w': 'it had 2 matches'}"),
    ],
)
def test_a_watch_that_found_something_else_is_told(said: str, sentence: str) -> None:
    watch = "CREATE WATCH w AS SELECT ms FROM clicks AFTER 2 MATCHES"
    steps = f"[{{events: [{{at: 1s, ms: 1}}, {{at: 2s, ms: 2}}]}}, {{{said}}}]"
    with pytest.raises(TranscriptFailed, match=sentence):
        play(loads(f"{{name: n, definitions: {watch}, steps: {steps}}}"), ReferenceEngine())
