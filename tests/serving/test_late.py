"""Lateness of windows over epochs and generations: all numbers add up, and nothing is absorbed
twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadRequest, NotFound
from headrace.core.time import SECOND
from headrace.serving.late import LateAnswer

from .bench import DEFINITIONS, VIEWS, Bench, Click, definitions, plan_of
from .marks import on_drawn_database

pytestmark = on_drawn_database

ON_TIME = (Click("/a", "ann", 5), Click("/b", "bob", 6, partition=1), Click("/a", "ann", 130))
LATE = (
    Click("/a", "bob", 10, late_us=110 * SECOND),
    Click("/b", "bob", 7, partition=1),
    Click("/a", "ann", 70, late_us=50 * SECOND),
    Click("/a", "cid", 30, late_us=90 * SECOND),
)


def told(answer: LateAnswer) -> dict[str, tuple[Any, ...]]:
    """Of each key: on time, late, late by at most and on average, absorbed, by whom, waiting."""
    return {
        f"{w.key['page']} {w.key['minute']['start'][11:16]}": (
            w.on_time, w.late, w.late_by_max_ms, w.late_by_mean_ms, w.absorbed, w.absorbed_by,
            w.waiting,
        )
        for w in answer.windows
    }  # fmt: skip


def test_late_events_wait_in_speed_until_a_generation_absorbs_them(bench: Bench) -> None:
    bench.build()
    bench.send(*ON_TIME)
    bench.build(full=False)
    bench.send(*LATE[:2])
    assert told(bench.reader.late("hits")) == {
        "/a 00:00": (1, 1, 110_000.0, 110_000.0, 0, None, 1),
        "/b 00:00": (2, 0, None, None, 0, None, 0),
        "/a 00:02": (1, 0, None, None, 0, None, 0),
    }
    bench.build(full=False)
    bench.send(*LATE[2:])
    assert told(bench.reader.late("hits")) == {
        "/a 00:00": (1, 2, 110_000.0, 100_000.0, 1, 3, 1),
        "/a 00:01": (0, 1, 50_000.0, 50_000.0, 0, None, 1),
        "/b 00:00": (2, 0, None, None, 0, None, 0),
        "/a 00:02": (1, 0, None, None, 0, None, 0),
    }
    bench.build(full=False)
    found = told(bench.reader.late("hits"))
    assert found["/a 00:00"] == (1, 2, 110_000.0, 100_000.0, 2, 4, 0)
    assert found["/a 00:01"] == (0, 1, 50_000.0, 50_000.0, 1, 4, 0)


def test_a_generation_without_late_events_of_a_window_is_not_named_for_it(bench: Bench) -> None:
    bench.send(*ON_TIME, *LATE)
    bench.build()
    bench.send(Click("/a", "dan", 11))
    bench.build(full=False)
    assert told(bench.reader.late("hits"))["/a 00:00"] == (2, 2, 110_000.0, 100_000.0, 2, 1, 0)


def test_a_build_of_all_has_absorbed_all(bench: Bench) -> None:
    bench.send(*ON_TIME, *LATE[:2])
    bench.build()
    bench.send(*LATE[2:])
    assert bench.build(full=True, audit=True)[0].differences == 0
    found = told(bench.reader.late("hits"))
    assert found["/a 00:00"] == (1, 2, 110_000.0, 100_000.0, 2, 2, 0)
    assert found["/a 00:01"] == (0, 1, 50_000.0, 50_000.0, 1, 2, 0)


def test_the_audit_before_a_promotion_sees_a_lateness_that_is_wrong(bench: Bench) -> None:
    bench.build()
    bench.send(*ON_TIME)
    bench.clicks[0] = Click("/a", "ann", 5, late_us=1)
    audits = {audit.view: audit.differences for audit in bench.build(full=False, audit=True)}
    assert audits == {"hits": 1, "users": 0, "total": 0, "top": 0}


def test_lateness_is_asked_by_key_and_window_and_the_newest_window_comes_first(
    bench: Bench,
) -> None:
    bench.build()
    bench.send(*ON_TIME, *LATE)
    late = bench.reader.late
    assert list(told(late("hits", {"page": "/a"}))) == ["/a 00:02", "/a 00:01", "/a 00:00"]
    since, until = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
    assert list(told(late("hits", since=since, until=until))) == ["/a 00:01"]
    cut = late("hits", limit=1)
    assert list(told(cut)) == ["/a 00:02"]
    assert cut.as_of["clicks"].generation == 1
    with pytest.raises(BadRequest, match="'n' is not a key of view 'hits'"):
        late("hits", {"n": "1"})


def test_a_key_that_the_answer_does_not_show_is_told(tmp_path: Path) -> None:
    hits = VIEWS["hits"].replace("page, window(ts, '1 minute') AS minute, ", "", 1)
    plan = plan_of(definitions({"hits": hits}))
    bench = Bench(tmp_path / "serving.db", plan)
    bench.build()
    bench.send(*ON_TIME)
    (first, *_) = bench.reader.late("hits").windows
    assert first.key == {
        "key_0": "/a",
        "window": {"start": "2026-01-01T00:02:00Z", "end": "2026-01-01T00:03:00Z"},
    }
    bench.close()


@pytest.mark.parametrize(
    ("view", "detail"),
    [("total", "it has no time window."), ("pages", "it reads other views: hits.")],
)
def test_a_view_that_cannot_know_says_why(bench: Bench, view: str, detail: str) -> None:
    bench.build()
    with pytest.raises(BadRequest) as caught:
        bench.reader.late(view)
    assert caught.value.message == f"view '{view}' does not record lateness"
    assert caught.value.detail == detail


def test_without_a_watermark_nothing_is_late_and_nothing_is_kept(tmp_path: Path) -> None:
    sql = DEFINITIONS.replace(",\n  WATERMARK ts DELAY OF INTERVAL 10 SECONDS", "")
    view = plan_of(sql).view("hits")
    assert view is not None
    assert not view.has_lateness
    assert "_lateness" not in view.map_sql


def test_an_unknown_view_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound, match="there is no view 'hitz'"):
        bench.reader.late("hitz")
