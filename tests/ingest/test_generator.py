"""Generated events: their shares of faults, their values, and that a seed says everything."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from headrace.core.schema import Column, Schema, Type
from headrace.core.time import MINUTE, from_iso
from headrace.define.definitions import StreamDefinition
from headrace.ingest.event_factory import EventFactory
from headrace.ingest.fields import csv_row
from headrace.ingest.generator import Generator, GeneratorConnector, sample
from headrace.ingest.malformed import encoder, malformed
from headrace.log.block import Block
from headrace.log.decode import Decoder

from .conftest import Bench, running, stream, wait_for

NOW = 1_700_000_000_000_000
SOUND = {"duplicates": "0", "malformed": "0", "out_of_order": "0"}
_NAMES = ("STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "DATE")
_LIST = Column("list", Type.array_of(Type("INT")))
EVERY_TYPE = Schema((*(Column(name.lower(), Type(name)) for name in _NAMES), _LIST))


def generated(
    n: int, seed: int = 1, said: dict[str, Any] | None = None, **options: str
) -> list[bytes]:
    definition = stream(
        **{"source": "generator", "options": options, "id": "event_id", **(said or {})}
    )
    return Generator(definition, Random(seed), run="0").take(n, NOW)


def parsed(n: int, **options: str) -> list[dict[str, Any]]:
    return [json.loads(record) for record in generated(n, **(SOUND | options))]


def sound(record: bytes) -> bool:
    """Whether a strict reader of the stream 'clicks' takes the record."""
    try:
        event = json.loads(record.decode())
        return isinstance(event["user"], str) and from_iso(event["ts"]) > 0 and event["ms"] > 0
    except (ValueError, KeyError):
        return False


def test_the_same_seed_makes_the_same_events_and_another_one_others() -> None:
    assert generated(1_000) == generated(1_000)
    assert generated(1_000) != generated(1_000, seed=2)


def test_events_made_in_groups_have_ids_that_go_on() -> None:
    generator = Generator(
        stream(source="generator", options=SOUND, id="event_id"), Random(1), run="r"
    )
    events = [json.loads(r) for _ in range(3) for r in generator.take(2, NOW)]
    assert [event["event_id"] for event in events] == [f"clicks-r-{n}" for n in range(6)]


def test_each_share_of_faults_is_met() -> None:
    n = 20_000
    records = generated(n, duplicates="0.1", malformed="0.05", out_of_order="0.2")
    whole = [record for record in records if sound(record)]
    late = [r for r in set(whole) if from_iso(json.loads(r)["ts"]) < NOW - n]
    assert 1 - len(whole) / n == pytest.approx(0.05, abs=0.01)
    assert 1 - len(set(whole)) / len(whole) == pytest.approx(0.1, abs=0.015)
    assert len(late) / len(set(whole)) == pytest.approx(0.2, abs=0.02)


def test_no_event_is_later_than_said_or_in_the_future() -> None:
    moments = [from_iso(e["ts"]) for e in parsed(2_000, out_of_order="1", late_by="5 minutes")]
    assert NOW - 5 * MINUTE - 2_000 <= min(moments) < NOW - 4 * MINUTE
    assert max(moments) <= NOW


def test_without_faults_every_event_is_whole_and_has_its_own_id() -> None:
    records = generated(1_000, **SOUND)
    assert all(map(sound, records))
    assert len({json.loads(record)["event_id"] for record in records}) == 1_000


def test_listed_values_come_in_the_order_of_their_frequency() -> None:
    users = Counter(event["user"] for event in parsed(5_000, **{"user.values": "a, b,c"}))
    assert [user for user, _ in users.most_common()] == ["a", "b", "c"]
    assert users["a"] / users["b"] == pytest.approx(2, rel=0.2)


def test_cardinality_is_the_number_of_different_values() -> None:
    assert len({event["user"] for event in parsed(5_000)}) == 50
    few = {event["user"] for event in parsed(500, **{"USER.cardinality": "3"})}
    assert few == {"user-1", "user-2", "user-3"}
    assert {e["ms"] for e in parsed(500, **{"ms.cardinality": "2"})} == {1, 2}
    assert {e["ms"] for e in parsed(500, **{"ms.values": "10,20"})} == {10, 20}


def test_every_type_has_values_of_its_own_kind() -> None:
    said = {"schema": EVERY_TYPE, "id": None}
    for event in map(json.loads, generated(200, said=said, **SOUND)):
        kinds = {name: type(value) for name, value in event.items()}
        assert kinds == {
            "string": str, "int": int, "bigint": int, "double": float, "boolean": bool,
            "timestamp": str, "date": str, "list": list,
        }  # fmt: skip
        assert event["timestamp"].startswith(event["date"])
        assert event["bigint"] > 0
        assert round(event["double"], 3) == event["double"]
        assert all(isinstance(item, int) for item in event["list"])


MORE_TYPES = Schema(
    (
        *(
            Column(f"c{n}", Type.parse(text))
            for n, text in enumerate(
                ["TINYINT", "SMALLINT", "FLOAT", "DECIMAL(5,2)", "DECIMAL(38,38)", "BINARY",
                 "TIMESTAMP_NTZ", "VARIANT", "STRUCT<a: DATE, b: ARRAY<DECIMAL(2,0)>>",
                 "MAP<STRING, STRUCT<x: BOOLEAN>>", "ARRAY<MAP<STRING, TIMESTAMP>>"]
            )
        ),
        Column("ms", Type("TIMESTAMP"), False, format="epoch_ms"),
        Column("ns", Type("TIMESTAMP"), False, format="epoch_ns"),
        Column("log", Type("TIMESTAMP"), False, format="dd/MMM/yyyy:HH:mm:ss Z"),
        Column("who", Type("STRING"), False, path="$.actor.id"),
        Column("second", Type("INT"), False, path='$.actor["a b"][1]'),
    )
)  # fmt: skip


def test_events_of_any_schema_are_accepted_by_its_decoder() -> None:
    records = generated(300, said={"schema": MORE_TYPES, "id": "who"}, **SOUND)
    block = Block.of(0, NOW, records, bytes(len(records)))
    table = Decoder(MORE_TYPES).decode([block], 0, None, raw=False).table
    assert set(table["_reason"].to_pylist()) == {None}
    assert [name for name in MORE_TYPES.names if table[name].null_count] == []
    assert len(set(table["who"].to_pylist())) == len(records)
    assert table["ms"].to_pylist()[-1] == table["log"].to_pylist()[-1]


@pytest.mark.parametrize(
    "said",
    [
        {"schema": MORE_TYPES, "id": "who"},
        {"schema": MORE_TYPES, "id": "event_id"},
        {"schema": Schema(EVERY_TYPE.columns[:-1]), "id": None, "format": "csv"},
    ],
)
def test_a_sample_is_taken_by_its_stream_and_is_no_duplicate(said: dict[str, Any]) -> None:
    definition = stream(**said)
    records = [sample(definition, NOW + n).encode() for n in range(2)]
    decoder = Decoder(definition.schema, definition.format)
    table = decoder.decode([Block.of(0, NOW, records, bytes(2))], 0, None, raw=False).table
    assert table["_reason"].to_pylist() == [None, None]
    assert len(set(records)) == (1 if definition.id is None else 2)


def test_every_way_of_breaking_an_event_breaks_it_whatever_its_schema() -> None:
    columns = (
        Column("who", Type("STRING"), False, path="$.actor.id"),
        Column("any", Type("VARIANT"), False),
        Column("kind", Type("INT"), False, default="1"),
        Column("at", Type("TIMESTAMP"), format="epoch_s"),
    )
    definition = stream(schema=Schema(columns), id=None, source="generator")
    event = one_event(definition)
    records = [malformed(event, definition, turn) for turn in range(4)]
    block = Block.of(0, NOW, records, bytes(4))
    table = Decoder(definition.schema).decode([block], 0, None, raw=False).table
    assert None not in table["_reason"].to_pylist()


def one_event(definition: StreamDefinition) -> dict[str, Any]:
    generator = Generator(definition, Random(1), run="r")
    return EventFactory(definition, Random(1), "r", generator.options).events(1, NOW)[0]


def test_the_four_ways_to_break_an_event_take_turns() -> None:
    definition = stream()
    event = one_event(definition)
    whole = encoder(definition)(event)
    assert sound(whole)
    cut, wrong, missing, bad = (malformed(event, definition, turn) for turn in range(4))
    assert whole.startswith(cut)
    assert json.loads(wrong)["ts"] == "no timestamp"
    assert "user" not in json.loads(missing)
    with pytest.raises(UnicodeDecodeError):
        bad.decode()
    assert not any(map(sound, (cut, wrong, missing, bad)))
    assert malformed(event, definition, 4) == cut


def test_an_id_that_is_a_declared_number_is_a_number() -> None:
    said = {"id": "ms"}
    numbers = [json.loads(r)["ms"] for r in generated(10, said=said, **SOUND)]
    assert numbers == list(range(10))


def test_a_csv_stream_gets_rows_in_the_declared_order() -> None:
    said = {"format": "csv", "id": "user"}
    rows = [csv_row(record) for record in generated(10, said=said, **SOUND)]
    assert [row[0] for row in rows] == [f"clicks-0-{n}" for n in range(10)]
    assert all(from_iso(row[1]) <= NOW and int(row[2]) > 0 for row in rows)


def test_a_stream_of_another_source_can_be_generated_too() -> None:
    tcp = stream(source="tcp", options={"port": "7000"})
    assert len(Generator(tcp, Random(1), run="0").take(100, NOW)) == 100


def test_the_connector_sends_its_count_and_ends(bench: Bench) -> None:
    intake = bench.intake(key="user", id="event_id")
    options = {"rate": "1000000", "count": "12000", "duplicates": "0.1"}
    said = stream(source="generator", options=options, key="user", id="event_id")

    def clock() -> int:
        bench.clock.now_us += 10_000
        return bench.clock.now_us

    connector = GeneratorConnector(said, intake, rng=Random(1), clock=clock)
    with running(connector):
        wait_for(lambda: intake.counters.accepted == 12_000)
    assert len(bench.records()) == 12_000
    assert intake.counters.duplicates / 12_000 == pytest.approx(0.1, abs=0.02)
    assert intake.counters.conflicts == 0


def test_the_connector_keeps_to_its_rate_and_does_not_make_up_for_a_stall(bench: Bench) -> None:
    intake = bench.intake()
    said = stream(source="generator", options={"rate": "100"})
    connector = GeneratorConnector(said, intake, rng=Random(1), clock=bench.clock)
    with running(connector):
        bench.clock.now_us += 500_000
        wait_for(lambda: intake.counters.accepted == 50)
        bench.clock.now_us += 3_600_000_000
        wait_for(lambda: intake.counters.accepted == 150)
    assert intake.counters.accepted == 150
