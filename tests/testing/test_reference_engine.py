"""What becomes of a record: an event, late, a duplicate or a dead letter."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.schema import Type
from headrace.testing import ReferenceEngine, loads
from headrace.testing.decode import DecodeError, typed
from headrace.testing.reference import Timestamp

ACCEPTED = [
    ("", "STRING", ""),
    (True, "BOOLEAN", True),
    (-(2**31), "INT", -(2**31)),
    (2**63 - 1, "BIGINT", 2**63 - 1),
    (3, "DOUBLE", 3.0),
    (None, "INT", None),
    ("2026-01-01T00:00:00+01:00", "TIMESTAMP", Timestamp(1_767_222_000_000_000)),
    (["a", None], "ARRAY<STRING>", ["a", None]),
]
REFUSED = [
    (1, "STRING"),
    (1, "BOOLEAN"),
    (True, "INT"),
    (1.0, "BIGINT"),
    ("1", "BIGINT"),
    (2**31, "INT"),
    (2**63, "BIGINT"),
    (True, "DOUBLE"),
    ("1.5", "DOUBLE"),
    (10**400, "DOUBLE"),
    (1_767_222_000, "TIMESTAMP"),
    ("soon", "TIMESTAMP"),
    ("a", "ARRAY<STRING>"),
    ([1], "ARRAY<STRING>"),
    ({}, "STRING"),
]


@pytest.mark.parametrize(("value", "type_", "expected"), ACCEPTED)
def test_a_value_of_the_declared_type_is_taken(value: Any, type_: str, expected: Any) -> None:
    assert typed(value, Type.parse(type_)) == expected


@pytest.mark.parametrize(("value", "type_"), REFUSED)
def test_a_value_of_another_type_is_refused_and_never_converted(value: Any, type_: str) -> None:
    with pytest.raises(DecodeError):
        typed(value, Type.parse(type_))


def counts_of(*records: bytes) -> dict[str, int]:
    engine = ReferenceEngine()
    engine.start(loads(
        """
        name: counts
        definitions: |
          CREATE STREAM s (a INT NOT NULL, t TIMESTAMP, WATERMARK t DELAY OF INTERVAL 10 SECONDS)
            WITH (id = 'k');
          CREATE VIEW n AS SELECT count(*) AS n FROM s;
        steps: []
        """
    ))  # fmt: skip
    engine.send("s", list(records))
    return engine.counts() | {"events": engine.answer("n")[0]["n"]}


def counts(late: int, dead_letters: int, duplicates: int, events: int) -> dict[str, int]:
    names = ("late", "dead_letters", "duplicates", "events")
    return dict(zip(names, (late, dead_letters, duplicates, events), strict=True))


def test_the_same_id_with_the_same_bytes_is_a_duplicate() -> None:
    assert counts_of(b'{"a":1,"k":"x"}', b'{"a":1,"k":"x"}') == counts(0, 0, 1, 1)


def test_the_same_id_with_other_bytes_is_a_dead_letter_even_if_it_means_the_same() -> None:
    assert counts_of(b'{"a":1,"k":"x"}', b'{"a": 1,"k":"x"}') == counts(0, 1, 0, 1)


def test_a_dead_letter_has_an_id_too() -> None:
    assert counts_of(b'{"a":"?","k":1}', b'{"a":"?","k":1}', b'{"a":1,"k":1}') == counts(0, 2, 1, 0)


def test_ids_of_different_types_are_different_and_null_is_none() -> None:
    records = b'{"a":1,"k":1}', b'{"a":1,"k":"1"}', b'{"a":1,"k":null}', b'{"a":1,"k":null}'
    assert counts_of(*records) == counts(0, 0, 0, 4)


def test_bytes_that_are_not_utf8_are_a_dead_letter() -> None:
    assert counts_of(b'{"a":1,"x":"\xff"}') == counts(0, 1, 0, 0)


def test_a_late_event_counts_and_a_dead_letter_moves_no_watermark() -> None:
    records = (
        b'{"t":"2026-01-01T00:01:00Z"}',  # no a, so a dead letter
        b'{"a":1,"t":"2026-01-01T00:00:30Z"}',
        b'{"a":1,"t":"2026-01-01T00:00:20Z"}',
        b'{"a":1,"t":"2026-01-01T00:00:19Z"}',
    )
    assert counts_of(*records) == counts(1, 1, 0, 3)


def test_an_event_dated_too_far_ahead_of_its_arrival_makes_nobody_late() -> None:
    definitions = (
        "CREATE STREAM clicks (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND) "
        "WITH (watermark.ahead = '{}'); CREATE VIEW v AS SELECT count(*) AS n FROM clicks"
    )
    late = {}
    for ahead in ("1 hour", "2 days"):
        engine = ReferenceEngine()
        engine.start(loads(f'{{name: n, definitions: "{definitions.format(ahead)}", steps: []}}'))
        sent = [f'{{"ts": "2026-01-0{day}T00:00:00Z"}}'.encode() for day in (1, 4, 1)]
        engine.send("clicks", sent)
        late[ahead] = engine.counts()["late"]
    assert late == {"1 hour": 0, "2 days": 1}
