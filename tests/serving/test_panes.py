"""The engine of panes, rule by rule: plain rows, a watermark and a clock in, panes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.core.subscription import ViewShape
from headrace.core.time import SECOND, from_iso, iso
from headrace.define.view_subscription import read_subscription
from headrace.serving.emit_state import EmitState, Pane, ViewAnswer
from headrace.serving.panes import next_panes, same

ZERO = from_iso("2026-01-01T00:00:00Z")
SHAPE = ViewShape("hits", ("page", "w", "n"), ("page", "w"), "w", "n", ("clicks",))
SESSIONS = ViewShape(
    "visits", ("page", "w", "n"), ("page", "w"), "w", "n", ("clicks",), sessions=True
)
TOTALS = ViewShape("totals", ("page", "n"), ("page",), None, "n", ("clicks",))


def row(page: str, n: int, start: int = 0, end: int | None = None) -> dict[str, Any]:
    end = start + 10 if end is None else end
    window = {"start": iso(ZERO + start * SECOND), "end": iso(ZERO + end * SECOND)}
    return {"page": page, "w": window, "n": n}


@dataclass
class PaneSubscriber:
    """Hears a subscription; each `look` gives (operation, page, n, pane, timing, last)."""

    text: str
    shape: ViewShape = SHAPE
    state: EmitState = field(default_factory=EmitState)

    def panes(
        self, *rows: dict[str, Any], watermark: int | None = None, now: int = 0
    ) -> list[Pane]:
        mark = None if watermark is None else ZERO + watermark * SECOND
        subscription = read_subscription(f"SUBSCRIBE TO hits {self.text}")
        found = next_panes(
            subscription, self.shape, self.state, ViewAnswer(rows, mark, now * SECOND)
        )
        self.state.apply(found)
        return found.panes

    def look(self, *rows: dict[str, Any], **said: Any) -> list[str]:
        return [
            f"{p.op} {p.row['page']} {p.row['n']} {p.pane} {p.timing}{' last' * p.last}"
            for p in self.panes(*rows, **said)
        ]


def due(one: PaneSubscriber, now: int) -> int | None:
    return one.state.due_us(read_subscription(f"SUBSCRIBE TO hits {one.text}"), now * SECOND)


def test_without_emit_every_change_is_told_once() -> None:
    one = PaneSubscriber("")
    assert one.look(row("a", 1), row("b", 1)) == ["insert a 1 0 early", "insert b 1 0 early"]
    assert one.look(row("b", 1), row("a", 2)) == ["insert a 2 1 early"]
    assert one.look(row("b", 1), row("a", 2)) == []
    assert one.look(row("a", 3), row("b", 1), watermark=20) == ["insert a 3 2 on_time"]
    assert one.look(row("a", 4), row("b", 1), watermark=20) == ["insert a 4 3 late"]


def test_sequence_numbers_follow_each_other_and_go_on_from_the_state() -> None:
    one = PaneSubscriber("", state=EmitState(sequence=7))
    assert [p.sequence for p in one.panes(row("a", 1), row("b", 1))] == [8, 9]
    assert [p.sequence for p in one.panes(row("a", 2), row("b", 1))] == [10]


def test_row_that_goes_is_withdrawn_and_begins_anew_when_it_comes_back() -> None:
    one = PaneSubscriber("")
    assert one.look(row("a", 1)) == ["insert a 1 0 early"]
    assert one.look() == ["delete a 1 1 early"]
    assert one.state.rows == {}
    assert one.look(row("a", 5)) == ["insert a 5 0 early"]


def test_early_every_n_events_waits_for_n_events_of_that_row() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 3 EVENTS")
    assert one.look(row("a", 2), row("b", 3)) == ["insert b 3 0 early"]
    assert one.look(row("a", 3), row("b", 5)) == ["insert a 3 0 early"]
    assert one.look(row("a", 3), row("b", 6)) == ["insert b 6 1 early"]


def test_early_every_interval_tells_a_change_when_the_interval_has_gone_by() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY INTERVAL 5 SECONDS")
    assert one.look(row("a", 1), now=0) == []
    assert due(one, 0) == 5 * SECOND
    assert one.look(row("a", 2), now=4) == []
    assert one.look(row("a", 2), now=5) == ["insert a 2 0 early"]
    assert one.look(row("a", 2), now=60) == []
    assert one.look(row("a", 3), now=61) == []
    assert one.look(row("a", 2), now=62) == [], "it is again what was told"
    assert one.look(row("a", 4), now=66) == []
    assert one.look(row("a", 4), now=71) == ["insert a 4 1 early"]


def test_what_waits_longer_than_one_interval_is_due_after_the_other() -> None:
    one = PaneSubscriber(
        "EMIT EARLY EVERY INTERVAL 9 SECONDS, ON TIME, LATE EVERY INTERVAL 2 SECONDS"
    )
    assert one.look(row("a", 1), now=0) == []
    late, early = 2 * SECOND, 9 * SECOND
    assert [due(one, now) for now in (0, 1, 2, 8, 9)] == [late, late, early, early, None]


def test_on_time_is_told_when_the_watermark_passes_the_end_and_is_the_last() -> None:
    one = PaneSubscriber("EMIT ON TIME")
    assert one.look(row("a", 1), row("b", 1, start=10), watermark=9) == []
    found = one.look(row("a", 2), row("b", 1, start=10), watermark=10)
    assert found == ["insert a 2 0 on_time last"]
    assert one.look(row("a", 3), row("b", 1, start=10), watermark=11) == []
    assert one.state.dropped == 1


def test_on_time_pane_comes_also_if_nothing_changed_since_an_early_one() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 1 EVENTS, ON TIME, LATE EVERY 1 EVENTS")
    assert one.look(row("a", 1)) == ["insert a 1 0 early"]
    assert one.look(row("a", 1), watermark=10) == ["insert a 1 1 on_time"]
    assert one.look(row("a", 1), watermark=30) == []
    assert one.look(row("a", 2), watermark=30) == ["insert a 2 2 late"]


def test_after_the_allowed_lateness_comes_one_last_pane_and_changes_are_counted() -> None:
    one = PaneSubscriber("EMIT ON TIME, LATE EVERY 2 EVENTS, ALLOWED LATENESS INTERVAL 20 SECONDS")
    assert one.look(row("a", 1), watermark=12) == ["insert a 1 0 on_time"]
    assert one.look(row("a", 2), watermark=13) == []
    assert one.look(row("a", 3), watermark=14) == ["insert a 3 1 late"]
    assert one.look(row("a", 4), watermark=30) == ["insert a 4 2 late last"]
    assert one.look(row("a", 5), watermark=31) == []
    assert one.look(row("a", 5), watermark=32) == []
    assert one.look(row("a", 6), row("new", 1), watermark=32) == []
    assert one.state.dropped == 3
    assert one.look(row("a", 6), row("new", 1), watermark=40) == []


def test_window_that_is_born_late_is_late_and_not_on_time() -> None:
    one = PaneSubscriber("EMIT ON TIME, LATE EVERY 1 EVENTS")
    assert one.look(watermark=50) == []
    assert one.look(row("a", 1), watermark=50) == ["insert a 1 0 late"]


def test_subscription_that_begins_later_first_tells_what_is_so() -> None:
    one = PaneSubscriber("EMIT ON TIME")
    assert one.look(row("a", 1), row("b", 4, start=40), watermark=45) == [
        "insert a 1 0 on_time last"
    ]


def test_watermark_of_a_subscription_never_goes_back() -> None:
    one = PaneSubscriber("EMIT ON TIME, LATE EVERY 1 EVENTS")
    assert one.look(row("a", 1), watermark=10) == ["insert a 1 0 on_time"]
    assert one.look(row("a", 2), watermark=3) == ["insert a 2 1 late"]
    assert one.look(row("a", 2), watermark=10) == []


def test_discarding_tells_the_difference_and_takes_back_what_goes() -> None:
    one = PaneSubscriber("DISCARDING")
    assert one.look(row("a", 4)) == ["insert a 4 0 early"]
    assert one.look(row("a", 7)) == ["insert a 3 1 early"]
    assert one.look() == ["insert a -7 2 early"]


def test_discarding_takes_null_for_nothing() -> None:
    one = PaneSubscriber("DISCARDING", TOTALS)
    assert one.panes({"page": "a", "n": None})[0].row == {"page": "a", "n": None}
    assert one.panes({"page": "a", "n": 3})[0].row == {"page": "a", "n": 3}


def test_retracting_withdraws_the_old_value_then_gives_the_new() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 1 EVENTS, ON TIME RETRACTING")
    assert one.look(row("a", 1)) == ["insert a 1 0 early"]
    assert one.look(row("a", 2)) == ["delete a 1 1 early", "insert a 2 1 early"]
    assert one.look(row("a", 2), watermark=10) == [
        "delete a 2 2 on_time",
        "insert a 2 2 on_time last",
    ]


def test_inserts_and_deletes_are_two_sides_of_the_same_changes() -> None:
    inserts, deletes = PaneSubscriber("EMIT INSERTS"), PaneSubscriber("EMIT DELETES")
    for rows, new, old in (
        ([row("a", 1)], ["insert a 1 0 early"], []),
        ([row("a", 2)], ["insert a 2 1 early"], ["delete a 1 0 early"]),
        ([], [], ["delete a 2 1 early"]),
    ):
        assert (inserts.look(*rows), deletes.look(*rows)) == (new, old)


def test_relation_tells_the_whole_answer_when_anything_changed() -> None:
    one = PaneSubscriber("EMIT RELATION")
    assert [p.row for p in one.panes()] == [{"rows": []}]
    (pane,) = one.panes(row("b", 1), row("a", 1))
    assert (pane.row, pane.pane) == ({"rows": [row("a", 1), row("b", 1)]}, 1)
    assert one.panes(row("a", 1), row("b", 1)) == []


def test_rows_without_keys_are_known_by_their_values_and_their_number() -> None:
    one = PaneSubscriber("", ViewShape("v", ("page", "n"), None, None, None, ("clicks",)))
    twin = {"page": "a", "n": 1}
    assert one.look(twin, twin) == ["insert a 1 0 early", "insert a 1 0 early"]
    assert one.look(twin) == ["delete a 1 1 early"]


def test_view_without_windows_is_always_early() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 2 EVENTS", TOTALS)
    assert one.look({"page": "a", "n": 2}, watermark=500) == ["insert a 2 0 early"]


def test_window_without_an_end_is_never_on_time() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 1 EVENTS, ON TIME")
    landmark = {"page": "a", "w": {"start": iso(ZERO), "end": None}, "n": 1}
    assert one.look(landmark, watermark=10**6) == ["insert a 1 0 early"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (0.1 + 0.2, 0.3, True), (1.0, 1.0001, False), (float("nan"), float("nan"), True),
        (1, 1.0, False), ([1, 2], [1, 2], True), ({"a": [0.3]}, {"a": [0.1 + 0.2]}, True),
    ],
)  # fmt: skip
def test_values_are_the_same_up_to_rounding(one: Any, other: Any, alike: bool) -> None:
    assert same(one, other) is alike


def test_panes_come_by_window_then_by_key() -> None:
    one = PaneSubscriber("")
    rows = [row("b", 1, start=10), row("c", 1), row("a", 1, start=10), row("a", 2)]
    assert [line.split()[1:3] for line in one.look(*rows)] == [
        ["a", "2"], ["c", "1"], ["a", "1"], ["b", "1"],
    ]  # fmt: skip


# Sessions


@pytest.mark.parametrize(
    ("mode", "taken_back"),
    [("", "delete a 1"), ("RETRACTING", "delete a 1"), ("DISCARDING", "insert a -1")],
)
def test_closed_session_is_taken_back_when_the_longer_one_is_sent(
    mode: str, taken_back: str
) -> None:
    one = PaneSubscriber(f"EMIT ON TIME {mode}", SESSIONS)
    assert one.look(row("a", 1), watermark=10) == ["insert a 1 0 on_time last"]
    assert one.look(row("a", 2, end=20), watermark=10) == []
    panes = one.look(row("a", 2, end=20), watermark=20)
    assert panes == [f"{taken_back} 1 on_time", "insert a 2 1 on_time last"]
    assert one.state.dropped == 0
    assert [told.row for told in one.state.rows.values()] == [row("a", 2, end=20)]


def test_record_that_takes_a_session_back_has_the_window_that_was_sent() -> None:
    one = PaneSubscriber("", SESSIONS)
    one.panes(row("a", 1))
    old, new = one.panes(row("a", 2, end=18))
    assert (old.op, old.window) == ("delete", row("a", 1)["w"])
    assert (new.op, new.window) == ("insert", row("a", 2, end=18)["w"])


def test_session_of_another_key_is_not_taken_back() -> None:
    one = PaneSubscriber("EMIT ON TIME", SESSIONS)
    both = ["insert a 1 0 on_time last", "insert b 1 0 on_time last"]
    assert one.look(row("a", 1), row("b", 1), watermark=10) == both
    panes = one.look(row("a", 2, end=20), row("b", 1), watermark=20)
    assert panes == ["delete a 1 1 on_time", "insert a 2 1 on_time last"]


def test_every_n_events_counts_from_all_that_was_sent_of_the_merged_sessions() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 2 EVENTS", SESSIONS)
    assert one.look(row("a", 1)) == []
    assert one.look(row("a", 2, end=12)) == ["insert a 2 0 early"]
    assert one.look(row("a", 3, end=14)) == []
    assert one.look(row("a", 3, end=14), row("a", 2, start=16, end=27)) == ["insert a 2 0 early"]
    assert one.look(row("a", 5, end=27)) == []
    assert one.look(row("a", 6, end=27)) == [
        "delete a 2 1 early", "delete a 2 1 early", "insert a 6 1 early",
    ]  # fmt: skip


def test_interval_counts_from_the_first_change_however_often_the_session_grew() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY INTERVAL 5 SECONDS", SESSIONS)
    assert one.look(row("a", 1), now=0) == []
    assert one.look(row("a", 2, end=13), now=3) == []
    assert due(one, 3) == 5 * SECOND
    assert len(one.state.rows) == 1
    assert one.look(row("a", 3, end=15), now=5) == ["insert a 3 0 early"]


def test_closed_sessions_that_become_one_are_one_dropped_change() -> None:
    one = PaneSubscriber("EMIT ON TIME", SESSIONS)
    one.look(row("a", 1), row("a", 1, start=12, end=22), watermark=30)
    for _ in range(2):
        assert one.look(row("a", 3, end=22), watermark=30) == []
        assert one.state.dropped == 1
    assert one.look(row("a", 4, end=40), watermark=40) == [
        "delete a 1 1 on_time", "delete a 1 1 on_time", "insert a 4 1 on_time last",
    ]  # fmt: skip
    assert len(one.state.rows) == 1


def test_closed_session_that_left_the_answer_is_taken_back_when_a_longer_one_is_sent() -> None:
    one = PaneSubscriber("EMIT ON TIME", SESSIONS)
    assert one.look(row("a", 1), watermark=10) == ["insert a 1 0 on_time last"]
    assert one.look(watermark=10) == []
    assert one.look(watermark=11) == []
    assert one.state.dropped == 1
    panes = one.look(row("a", 3, end=20), watermark=20)
    assert panes == ["delete a 1 1 on_time", "insert a 3 1 on_time last"]


def test_session_that_was_deleted_is_not_continued() -> None:
    one = PaneSubscriber("EMIT EARLY EVERY 1 EVENTS, ON TIME", SESSIONS)
    assert one.look(row("a", 1)) == ["insert a 1 0 early"]
    assert one.look(watermark=10) == ["delete a 1 1 on_time last"]
    assert one.state.rows == {}
    assert one.look(row("a", 2, end=20), watermark=20) == ["insert a 2 0 on_time last"]


def test_inserts_and_deletes_are_two_sides_of_a_merge() -> None:
    inserts, deletes = (
        PaneSubscriber("EMIT INSERTS", SESSIONS),
        PaneSubscriber("EMIT DELETES", SESSIONS),
    )
    for rows, new, old in (
        ([row("a", 1)], ["insert a 1 0 early"], []),
        ([row("a", 2, end=12)], ["insert a 2 1 early"], ["delete a 1 0 early"]),
    ):
        assert (inserts.look(*rows), deletes.look(*rows)) == (new, old)


def test_whole_relation_of_sessions_is_told_as_it_is() -> None:
    one = PaneSubscriber("EMIT RELATION", SESSIONS)
    one.panes(row("a", 1))
    (pane,) = one.panes(row("a", 2, end=12))
    assert (pane.op, pane.row) == ("insert", {"rows": [row("a", 2, end=12)]})
