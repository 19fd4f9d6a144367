"""Every record up to the answer's position is behind the row, or left out for one reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tampered import change_rows

from headrace.api.resources.rows import ReplayRequest, ViewRequest, WhyRequest
from headrace.audit import why as reasons
from headrace.audit.oracle import live_view
from headrace.audit.ordered import NotComparable
from headrace.audit.trace import TracedRecord, Why
from headrace.compile.plan import CarryPlan, JoinPlan, MatchPlan, ProcessorPlan
from headrace.core.errors import BadRequest, LimitReached, NotFound, NotReady, Unsupported
from headrace.core.event import EventStatus
from headrace.core.pattern import Threshold
from headrace.core.shedding import Shedding
from headrace.run.offline import Offline
from headrace.serving.runs import Layer

from .traced import Traced, event

FIRST = "2026-01-01T00:00:00Z"


def places(seen: list[TracedRecord]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in seen]


def left_out(why: Why) -> dict[str, list[tuple[int, int]] | int]:
    """Each reason with the places that are listed, or the number where none is."""
    return {left.reason: places(left.listed) or left.events for left in why.left_out}


def total(why: Why) -> int:
    return why.events + sum(left.events for left in why.left_out if left.reason != reasons.WAITING)


def fill(traced: Traced) -> None:
    """A generation, an archived tail that speed has counted, and one that is only in the log."""
    traced.send(event("/a", 1), event("/a", 2, 3), event("/b", 3), b"no /a json")
    traced.generation()
    traced.send(event("/a", 4, 70), event("/a", 61), partition=1)
    traced.epoch()
    traced.archive.step(100)
    traced.send(event("/a", 1), status=EventStatus.DUPLICATE)
    traced.send(event("/b", 3), status=EventStatus.DUPLICATE)
    traced.send(event("/c", 5), event("/a", 5, 8), b"\xff", event("/a", 200), event("/a", 5, None))
    traced.epoch()


def test_the_events_behind_a_row_come_from_master_and_log(traced: Traced, offline: Offline) -> None:
    fill(traced)
    why = offline.ask(WhyRequest("slow", {"page": "/a"}, window=FIRST))
    minute = {"start": FIRST, "end": "2026-01-01T00:01:00Z"}
    assert why.row == {"page": "/a", "minute": minute, "n": 3, "slowest": 70}
    assert why.key == {"page": "/a", "minute": minute}
    assert (why.view, why.events, places(why.listed)) == ("slow", 3, [(0, 0), (1, 0), (0, 7)])
    assert why.agrees
    assert why.sentence == "recomputed from these 3 events, the row is the same"
    assert why.as_of["clicks"].position == [11, 2]


def test_an_event_is_shown_as_it_came_with_its_times(traced: Traced, offline: Offline) -> None:
    fill(traced)
    first, *_ = offline.ask(WhyRequest("slow", {"page": "/a"}, window=FIRST)).listed
    assert (first.stream, first.raw) == ("clicks", event("/a", 1).decode())
    assert (first.event_time, first.late, first.reason) == ("2026-01-01T00:00:01Z", False, None)
    assert first.arrived_at.startswith("2026-01-01T00:10:")
    # The one without a number is dated three minutes before the event that came before it.
    assert [seen.offset for seen in offline.ask(WhyRequest("total")).listed if seen.late] == [10]


def test_every_other_record_is_left_out_for_a_reason(traced: Traced, offline: Offline) -> None:
    fill(traced)
    why = offline.ask(WhyRequest("slow", {"page": "/a"}, window=FIRST))
    assert left_out(why) == {
        reasons.FILTERED: [(0, 1), (0, 10)],  # 3 ms, and none
        reasons.OTHER: 4,
        reasons.DUPLICATE: [(0, 4)],
        reasons.DUPLICATES: 1,
        reasons.DEAD_LETTER: [(0, 3)],
        reasons.DEAD_LETTERS: 1,
    }
    (letter,) = next(left for left in why.left_out if left.reason == reasons.DEAD_LETTER).listed
    assert (letter.raw, bool(letter.reason)) == ("no /a json", True)
    assert total(why) == 13


@pytest.mark.parametrize("view", ["known", "quick_pages", "often", "total", "slow"])
def test_the_numbers_of_every_row_add_up_to_all_that_was_accepted(
    traced: Traced, offline: Offline, view: str
) -> None:
    fill(traced)
    for row in offline.ask(ViewRequest(view)).rows:
        keys = {"page": row["page"]} if "page" in row else {}
        why = offline.ask(WhyRequest(view, keys, window=row.get("minute", {}).get("start")))
        assert (why.row, why.agrees, why.events) == (row, True, row["n"])
        assert total(why) == 13


def test_a_join_that_leaves_an_event_out_is_told_from_a_condition(
    traced: Traced, offline: Offline
) -> None:
    traced.send(event("/c", 1), event("/c", 2, 0), event("/a", 3), event("/a", 4, -1))
    traced.epoch()
    found = offline.ask(WhyRequest("known", {"page": "/c"}))
    assert (found.row, found.events) == (None, 0)
    assert left_out(found) == {
        reasons.JOINED: [(0, 0), (0, 1)],
        reasons.OTHER: 1,
        reasons.NOWHERE: 1,
    }
    assert left_out(offline.ask(WhyRequest("known", {"page": "/a"}))) == {
        reasons.FILTERED: [(0, 3)],
        reasons.NOWHERE: 2,
    }


@pytest.mark.parametrize(
    ("page", "raw", "mentioned"),
    [
        ("a", "no banana", False),
        ("a", '"page": "a"', True),
        ("a", "a", True),
        ("a", "a_b", False),
        ("a", "\u00e9a", False),
        ("a", "a\u00e9", False),
        ("a", "\\a\\", True),
        ("/a", "http://h/a?x", True),
        ("/a", "/about", False),
        ("it's (1)", '"it\'s (1)"', True),
        ("z\u00fcrich", '"z\u00fcrich', True),
        ("z\u00fcrich", '"z\u00fcri', False),
    ],
)
def test_a_dead_letter_mentions_a_key_as_a_whole_word(
    traced: Traced, offline: Offline, page: str, raw: str, mentioned: bool
) -> None:
    traced.send(raw.encode(), event(page, 1))
    traced.epoch()
    found = left_out(offline.ask(WhyRequest("often", {"page": page})))
    expected = {reasons.DEAD_LETTER: [(0, 0)]} if mentioned else {reasons.DEAD_LETTERS: 1}
    assert found == expected


def test_a_moment_at_which_no_window_starts_is_told_with_those_that_are_near(
    traced: Traced, offline: Offline
) -> None:
    fill(traced)
    with pytest.raises(BadRequest) as caught:
        offline.ask(WhyRequest("slow", {"page": "/a"}, window="2026-01-01T00:00:30Z"))
    assert (caught.value.message, caught.value.hint) == (
        "no window of view 'slow' starts at 2026-01-01T00:00:30Z",
        "nearest window starts: 2026-01-01T00:00:00Z, 2026-01-01T00:01:00Z.",
    )
    assert (
        offline.ask(WhyRequest("slow", {"page": "/a"}, window="2026-01-01T05:00:00Z")).row is None
    )


def test_no_window_starts_at_the_end_of_time(traced: Traced, offline: Offline) -> None:
    fill(traced)
    with pytest.raises(BadRequest, match="no window starts at '9999-12-31T23:59:59"):
        offline.ask(WhyRequest("slow", {"page": "/a"}, window="9999-12-31T23:59:59.999999Z"))


def test_the_condition_of_a_derived_stream_is_one_too(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 1), event("/a", 2, 50))
    traced.epoch()
    why = offline.ask(WhyRequest("quick_pages", {"page": "/a"}))
    assert (places(why.listed), left_out(why)) == ([(0, 0)], {reasons.FILTERED: [(0, 1)]})


def test_a_row_that_having_hides_has_its_events_all_the_same(
    traced: Traced, offline: Offline
) -> None:
    traced.send(event("/a", 1))
    traced.epoch()
    why = offline.ask(WhyRequest("often", {"page": "/a"}))
    assert (why.row, why.events, why.agrees) == (None, 1, True)
    assert why.sentence == "there is no such row, also when recomputed from this event"


def test_events_after_the_position_are_waiting(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 1))
    traced.epoch()
    traced.send(event("/a", 2), event("/b", 2))
    assert left_out(offline.ask(WhyRequest("total"))) == {reasons.WAITING: 2}


@pytest.mark.parametrize("how", ["random", "oldest"])
def test_what_speed_has_passed_over_is_named_until_a_generation_has_it(
    traced: Traced, offline: Offline, how: str
) -> None:
    traced.send(*(event("/a", n) for n in range(20)))
    traced.epoch(Shedding(how, 0.5))
    why = offline.ask(WhyRequest("often", {"page": "/a"}, limit=20))
    (shed,) = why.left_out
    assert shed.reason == reasons.SHED
    assert (why.agrees, why.events + shed.events) == (True, 20)
    assert why.row == {"page": "/a", "n": why.events}
    assert 0 < shed.events < 20
    assert not set(places(why.listed)) & set(places(shed.listed))
    assert why.as_of["clicks"].sampled is not None
    (audit,) = offline.audit("often")
    sampled = f"sampled: without {shed.events} events that speed has shed"
    assert (audit.differences, audit.note) == (0, sampled)
    traced.generation()
    after = offline.ask(WhyRequest("often", {"page": "/a"}))
    assert (after.events, after.left_out, after.agrees) == (20, [], True)
    assert offline.audit("often")[0].note == ""


def test_a_wrong_answer_is_said_to_be_wrong(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 1), event("/a", 2))
    traced.epoch()
    plan = traced.store.deployed()
    often = plan.view("often") if plan else None
    assert often is not None
    change_rows(traced.store, often, Layer.SPEED, "UPDATE rows SET p0 = 5")
    why = offline.ask(WhyRequest("often", {"page": "/a"}))
    assert (why.agrees, why.events) == (False, 2)
    assert why.sentence == (
        "recomputed from these 2 events, the row differs: page=/a: n is 5, but DuckDB computed 2"
    )


def test_a_limit_shortens_the_lists_and_not_the_numbers(traced: Traced, offline: Offline) -> None:
    fill(traced)
    why = offline.ask(WhyRequest("slow", {"page": "/a"}, window=FIRST, limit=1))
    assert (why.events, len(why.listed)) == (3, 1)
    assert (why.left_out[0].events, len(why.left_out[0].listed)) == (2, 1)
    assert total(why) == 13


def test_a_row_must_be_named_by_all_of_its_keys(traced: Traced, offline: Offline) -> None:
    fill(traced)
    with pytest.raises(BadRequest) as several:
        offline.ask(WhyRequest("slow", {"page": "/a"}))
    assert str(several.value) == (
        "BadRequest: more than one row of view 'slow' has these keys\n"
        "  hint: give all of its keys: --where page=… --window START."
    )
    with pytest.raises(NotFound, match="view 'slow' has no row with these keys"):
        offline.ask(WhyRequest("slow", {"page": "/nowhere"}))
    with pytest.raises(BadRequest, match="'user' is not a key of view 'slow'"):
        offline.ask(WhyRequest("slow", {"user": "ann"}))
    with pytest.raises(BadRequest, match="'noon' is not a timestamp"):
        offline.ask(WhyRequest("slow", {"page": "/a"}, window="noon"))
    assert offline.ask(WhyRequest("slow", {"page": "/b"})).events == 1


def test_a_name_that_cannot_be_asked_about_is_refused(traced: Traced, offline: Offline) -> None:
    with pytest.raises(NotFound, match="there is no view 'elsewhere'"):
        offline.ask(WhyRequest("elsewhere"))
    with pytest.raises(Unsupported) as read:
        offline.ask(WhyRequest("reread", {"page": "/a"}))
    assert (read.value.message, read.value.hint) == (
        "view 'reread' cannot be traced, because it reads other views",
        "trace a row of a view that it reads: slow.",
    )


def test_a_view_that_hides_a_key_has_no_row_that_could_be_named(
    traced: Traced, offline: Offline
) -> None:
    with pytest.raises(Unsupported) as caught:
        offline.ask(WhyRequest("unnamed"))
    assert (caught.value.message, caught.value.hint) == (
        "a row of 'unnamed' cannot be traced: its SELECT omits grouping columns",
        "add to its SELECT: page.",
    )


def test_what_only_spark_knows_is_said_in_a_sentence(traced: Traced, offline: Offline) -> None:
    _redefine(traced, "often", "page", "soundex_of_spark(page)")
    with pytest.raises(Unsupported) as caught:
        offline.ask(WhyRequest("often", {"page": "/a"}))
    assert caught.value.message == "DuckDB cannot evaluate the definition of view 'often'"
    assert "soundex_of_spark" in (caught.value.detail or "")
    _redefine(traced, "often", "soundex_of_spark(page)", "session_window(ts, '5 minutes')")
    with pytest.raises(Unsupported, match="cannot be traced: it has a session_window"):
        offline.ask(WhyRequest("often", {"page": "/a"}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"join": JoinPlan("o", "p", 0, 5)}, "it joins 'o' with 'p'"),
        (
            {"carry": CarryPlan("c", "", processor=ProcessorPlan("visits", (), ()))},
            "its rows are made by processor 'visits'",
        ),
        (
            {"carry": CarryPlan("c", "", match=MatchPlan(Threshold((), 3, 60), (), ()))},
            "its rows are found by a pattern or a threshold",
        ),
        ({"carry": CarryPlan("c", "")}, "it has running aggregates"),
    ],
)
def test_rows_whose_events_do_not_count_by_themselves_are_refused(
    traced: Traced, offline: Offline, change: dict[str, Any], reason: str
) -> None:
    _replan(traced, **change)
    for question in (WhyRequest, ReplayRequest):
        with pytest.raises(Unsupported) as caught:
            offline.ask(question("often", {"page": "/a"}))
        assert caught.value.message == (
            f"the events behind a row of 'often' cannot be traced: {reason}"
        )
        assert caught.value.hint


def test_what_is_not_compared_is_not_counted_as_compared(
    traced: Traced, offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> str:
        raise NotComparable("DuckDB does not support patterns")

    monkeypatch.setattr("headrace.audit.oracle.oracle_sql", refuse)
    fill(traced)
    (audit,) = offline.audit("often")
    assert (audit.compared, audit.note) == (0, "not compared: DuckDB does not support patterns")


def _replan(traced: Traced, **change: Any) -> None:
    """Change the plan of view 'often'."""
    with traced.store.write() as db:
        plan = msgspec.structs.replace(live_view(db, "often"), **change)
        sql = "UPDATE _views SET plan = ? WHERE name = 'often'"
        db.execute(sql, (msgspec.json.encode(plan),))


def _redefine(traced: Traced, view: str, old: str, new: str) -> None:
    with traced.store.write() as db:
        sql = "UPDATE _views SET plan = replace(plan, ?, ?) WHERE name = ?"
        before, after = f'"definition":"SELECT {old}', f'"definition":"SELECT {new}'
        db.execute(sql, (before, after, view))


def test_looking_takes_a_stated_time_at_most(traced: Traced, offline: Offline) -> None:
    fill(traced)
    settings = offline.project.settings
    object.__setattr__(settings.query, "seconds_max", 0.0)
    with pytest.raises(LimitReached, match="the search for the events timed out after 0 seconds"):
        offline.ask(WhyRequest("total"))


def test_a_view_that_is_being_built_is_not_ready(traced: Traced, offline: Offline) -> None:
    with traced.store.write() as db:
        db.execute("UPDATE _views SET state = 'building' WHERE name = 'total'")
    with pytest.raises(NotReady, match="view 'total' is being built"):
        offline.ask(WhyRequest("total"))
