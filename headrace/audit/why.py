"""Explains a row: the events behind it, and every other record with the reason why it is left out.

accepted up to the position = behind + shed + filtered + in other rows + in no row + duplicates +
dead letters, exact to the record. tests/audit/test_why.py adds it up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from headrace.audit.row_trace import PASSED, ROW, RowTrace
from headrace.audit.trace import SkippedRecords, TracedRecord, Why
from headrace.core.event import (
    ARRIVED_AT,
    LATE,
    OFFSET,
    PARTITION,
    RAW,
    REASON,
    STATUS,
    EventStatus,
)

SHED = "shed: speed has skipped it, and no generation has absorbed it"
FILTERED = "filtered by WHERE"
JOINED = "filtered by a join"
OTHER = "counts in other rows"
NOWHERE = "counts in no row: filtered, or without a window"
DUPLICATE = "duplicate of an event behind this row"
DUPLICATES = "duplicate of other events"
DEAD_LETTER = "dead letter that mentions this key"
DEAD_LETTERS = "dead letter"
WAITING = "not yet processed by speed"


def explain_row(traced: RowTrace, waiting: int, limit: int) -> Why:
    """The events behind a row and those left out, at most `limit` of each kind."""
    _sort_out(traced)
    view_row = traced.snapshot.view_row
    ((events,),) = traced.fetch(f"SELECT count(*) FROM {ROW} WHERE NOT {PASSED}")
    listed = _listed(traced, f"SELECT * FROM {ROW} WHERE NOT {PASSED}", limit)
    left_out = [*_events_left_out(traced, limit), *_others_left_out(traced, limit)]
    left_out += [SkippedRecords(WAITING, waiting, [])] if waiting else []
    agrees, sentence = traced.agreement(events)
    return Why(
        view_row.view.name,
        view_row.shown_key,
        view_row.shown,
        events,
        listed,
        left_out,
        agrees,
        sentence,
        traced.snapshot.as_of,
    )


def _sort_out(traced: RowTrace) -> None:
    """Give each event that is not behind the row its reason."""
    traced.mark_positions_relaxed("_without_where", "where")
    traced.mark_positions_relaxed("_without_joins", "joins")
    same = f"USING ({PARTITION}, {OFFSET})"
    traced.run(
        f"CREATE TEMP TABLE _sorted AS SELECT e.{PARTITION}, e.{OFFSET}, CASE "
        f"WHEN p.here AND m.{OFFSET} IS NOT NULL THEN '{SHED}' WHEN p.here THEN '' "
        f"WHEN w.here THEN '{FILTERED}' WHEN j.here THEN '{JOINED}' "
        f"WHEN p.here IS NOT NULL THEN '{OTHER}' ELSE '{NOWHERE}' END AS reason "
        f"FROM {traced.records} e LEFT JOIN _placed p {same} "
        f"LEFT JOIN _without_where w {same} LEFT JOIN _without_joins j {same} "
        f"LEFT JOIN _missing m ON m.{PARTITION} = e.{PARTITION} AND m.{OFFSET} = e.{OFFSET} "
        f"WHERE e.{STATUS} = {int(EventStatus.EVENT)}"
    )


def _events_left_out(traced: RowTrace, limit: int) -> Iterator[SkippedRecords]:
    counts = dict(traced.fetch("SELECT reason, count(*) FROM _sorted GROUP BY reason"))
    for reason in (SHED, FILTERED, JOINED):
        if reason in counts:
            places = f"SELECT {PARTITION}, {OFFSET} FROM _sorted WHERE reason = '{reason}'"
            records = (
                f"SELECT * FROM {traced.records} JOIN ({places}) USING ({PARTITION}, {OFFSET})"
            )
            yield SkippedRecords(reason, counts[reason], _listed(traced, records, limit))
    for reason in (OTHER, NOWHERE):
        if reason in counts:
            yield SkippedRecords(reason, counts[reason], [])


def _others_left_out(traced: RowTrace, limit: int) -> Iterator[SkippedRecords]:
    # A duplicate has the bytes of its original; a dead letter cannot be read, but searched.
    same = f"{RAW} IN (SELECT {RAW} FROM {ROW})"
    yield from _split(traced, EventStatus.DUPLICATE, same, (DUPLICATE, DUPLICATES), limit)
    mentions = " AND ".join(_mention(value) for value in _words(traced)) or "true"
    yield from _split(traced, EventStatus.DEAD_LETTER, mentions, (DEAD_LETTER, DEAD_LETTERS), limit)


def _split(
    traced: RowTrace, status: EventStatus, mine: str, reasons: tuple[str, str], limit: int
) -> Iterator[SkippedRecords]:
    """The records of a status: those that are of this row, which are listed, and the others."""
    records = f"FROM {traced.records} WHERE {STATUS} = {int(status)}"
    ((own, all),) = traced.fetch(f"SELECT count(*) FILTER (WHERE {mine}), count(*) {records}")
    if own:
        listed = _listed(traced, f"SELECT * {records} AND ({mine})", limit)
        yield SkippedRecords(reasons[0], own, listed)
    if all > own:
        yield SkippedRecords(reasons[1], all - own, [])


def _words(traced: RowTrace) -> list[str]:
    """The key's values as a record would write them; a window is not written in one."""
    view_row = traced.snapshot.view_row
    pairs = zip(view_row.keys, view_row.stored, strict=True)
    kinds = {"STRING", "INT", "BIGINT"}
    return [str(value) for key, value in pairs if value is not None and key.type in kinds]


def _mention(value: str) -> str:
    """SQL: the bytes have this value, and not as a part of a longer word."""
    return f"regexp_matches(CAST({RAW} AS VARCHAR), '{mention_of(value)}')"


def mention_of(value: str) -> str:
    r"""A pattern for a value in bytes as DuckDB shows them: what is not plain ASCII is \xNN.

    >>> [bool(re.search(mention_of("a"), text)) for text in ("banana", "what a day", r"\x22a\x22")]
    [False, True, True]
    """
    shown = [_plain(byte) or rf"\\x{byte:02X}" for byte in value.encode()]
    before = r"(^|[^A-Za-z0-9_]|\\x[0-7].)" if _is_letter(value[:1]) else ""
    after = r"($|[^A-Za-z0-9_\\]|\\x[0-7])" if _is_letter(value[-1:]) else ""
    return f"{before}{''.join(shown)}{after}"


def _plain(byte: int) -> str | None:
    shown = 32 <= byte <= 126 and byte not in b"\\'\""
    return re.escape(chr(byte)) if shown else None


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _listed(traced: RowTrace, records: str, limit: int) -> list[TracedRecord]:
    mark = traced.stream.watermark
    time = f'"{mark[0]}"' if mark else "NULL"
    rows = traced.fetch(
        f"SELECT {PARTITION}, {OFFSET}, {time}, {ARRIVED_AT}, {LATE}, {REASON}, {RAW} "
        f"FROM ({records}) ORDER BY {ARRIVED_AT}, {PARTITION}, {OFFSET} LIMIT {limit}"
    )
    return [_seen(traced.stream.name, *row) for row in rows]


def _seen(
    stream: str,
    partition: int,
    offset: int,
    time: Any,
    arrived: Any,
    late: bool,
    reason: str | None,
    raw: bytes,
) -> TracedRecord:
    text = bytes(raw).decode("utf-8", "backslashreplace")
    return TracedRecord(
        stream, partition, offset, _iso(time), _iso(arrived) or "", text, bool(late), reason
    )


def _iso(moment: Any) -> str | None:
    """A timestamp of DuckDB, which has no zone and is in UTC."""
    if moment is None:
        return None
    return str(moment.replace(tzinfo=UTC).isoformat()).replace("+00:00", "Z")
