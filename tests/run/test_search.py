"""Events are found in the log and in the master, by what they say, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audit.traced import Traced, event

from headrace.api.resources.events import EventRecord, EventsRequest
from headrace.core.errors import BadRequest, NotFound
from headrace.core.event import EventStatus
from headrace.run.observatory.records import SHOWN_MAX
from headrace.run.observatory.search import search
from headrace.run.offline import Offline


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Offline]:
    """Six records in the master, and five more in the log, a second apart."""
    traced = Traced(tmp_path_factory.mktemp("search") / "project")
    traced.send(event("/a", 5, user="ann", event_id="e1"))
    traced.send(event("/b", 6, ms=70, user="bob", event_id="e2"), partition=1)
    traced.send(event("/a", 65, user="ann", event_id="e3"))
    traced.send(event("/b", 66, ms=None, user="it's", event_id="e4"), partition=1)
    traced.send(event("/a", 5, user="ann", event_id="e1"), status=EventStatus.DUPLICATE)
    traced.send(b"not \xff json")
    traced.epoch()
    traced.generation()
    traced.send(event("/c", 2, user="cid", event_id="e5"))
    traced.send(event("/a", 130, user="dan", event_id="e6", agent="curl"), partition=1)
    traced.send(event("/a", 131, user="x" * SHOWN_MAX, event_id="e7"), partition=1)
    traced.send(event("/a", 6, user="eve", event_id="e8"))
    traced.send(b'{"ts": "half past six"}')
    service = traced.offline()
    yield service
    service.close()
    traced.close()


def places(found: list[EventRecord]) -> list[tuple[int, int]]:
    return [(one.partition, one.offset) for one in found]


def found(offline: Offline, **wanted: object) -> list[tuple[int, int]]:
    return places(search(offline, EventsRequest("clicks", **wanted)).events)  # type: ignore[arg-type]


def bounded(offline: Offline, scan_max: int) -> None:
    """Let a search look at so many records."""
    query = replace(offline.project.settings.query, scan_max=scan_max)
    settings = replace(offline.project.settings, query=query)
    offline.project = replace(offline.project, settings=settings)


ALL = [
    (0, 6), (0, 5), (1, 3), (1, 2), (0, 4), (0, 3), (0, 2), (1, 1), (0, 1), (1, 0), (0, 0)
]  # fmt: skip


def test_the_newest_come_first_from_the_log_and_then_from_the_master(offline: Offline) -> None:
    whole = search(offline, EventsRequest("Clicks"))
    assert places(whole.events) == ALL
    assert (whole.next, whole.scanned, whole.total) == (None, 11, 11)
    page = search(offline, EventsRequest("clicks", limit=1, partition=1))
    assert (page.scanned, page.total) == (1, 4)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_pages_have_every_record_once(offline: Offline, limit: int) -> None:
    seen, before = list[tuple[int, int]](), None
    while True:
        page = search(offline, EventsRequest("clicks", limit=limit, before=before))
        seen += places(page.events)
        before = page.next
        if before is None:
            break
    assert seen == ALL


def test_a_scan_is_bounded_and_goes_on_where_it_ended(offline: Offline) -> None:
    project = offline.project
    bounded(offline, 4)
    try:
        seen, before, looked = list[tuple[int, int]](), None, 0
        while True:
            page = search(offline, EventsRequest("clicks", before=before, fields=["page:/a"]))
            assert page.scanned <= 4
            seen, before, looked = seen + places(page.events), page.next, looked + page.scanned
            if before is None:
                break
        assert (sorted(seen), looked) == ([(0, 0), (0, 1), (0, 2), (0, 5), (1, 2), (1, 3)], 11)
    finally:
        offline.project = project


CONDITIONS = {
    "by partition": ({"partition": 1}, [(1, 3), (1, 2), (1, 1), (1, 0)]),
    "by place": ({"partition": 0, "offset": 1}, [(0, 1)]),
    "by a place that is not there": ({"partition": 0, "offset": 99}, []),
    "by an id that is not a column, with its duplicate": ({"id": "e1"}, [(0, 2), (0, 0)]),
    "by a column": ({"fields": ["USER:it's"]}, [(1, 1)]),
    "by a number": ({"fields": ["ms:70"]}, [(1, 0)]),
    "by a field that is not declared": ({"fields": ["agent:curl"]}, [(1, 2)]),
    "by two fields": ({"fields": ["page:/a", "user:dan"]}, [(1, 2)]),
    "by the time": ({"fields": ["ts:2026-01-01T00:01:05Z"]}, [(0, 1)]),
    "by a range of times": (
        {"since": "2026-01-01T00:01:05Z", "until": "2026-01-01T00:02:11Z"},
        [(1, 3), (1, 2), (1, 1), (0, 1)][1:],
    ),
    "by status": ({"status": "dead_letter"}, [(0, 6), (0, 3)]),
    "by status and id": ({"status": "duplicate", "id": "e1"}, [(0, 2)]),
    "by position": ({"before": "2,1"}, [(0, 1), (1, 0), (0, 0)]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions(offline: Offline, name: str) -> None:
    wanted, expected = CONDITIONS[name]
    assert found(offline, **wanted) == expected  # type: ignore[arg-type]


def test_a_record_tells_all_that_is_known_of_it(offline: Offline) -> None:
    (one,) = search(offline, EventsRequest("clicks", partition=0, offset=4)).events
    assert (one.status, one.event_time, one.id) == ("event", "2026-01-01T00:00:02Z", "e5")
    # Ten seconds less than the newest time before it.
    assert (one.late, one.lateness_ms) == (True, 53_000.0)
    assert one.body is not None
    assert (one.body["page"], one.body["ms"], one.body["n"]) == ("/c", 10, None)
    assert one.raw.startswith('{"page": "/c"')
    (letter,) = search(offline, EventsRequest("clicks", partition=0, offset=3)).events
    assert (letter.status, letter.body, letter.raw) == ("dead_letter", None, "not \\xff json")
    assert letter.reason is not None
    assert (letter.late, letter.event_time) == (None, None)


def test_a_long_record_is_cut_in_a_list(offline: Offline) -> None:
    (one,) = search(offline, EventsRequest("clicks", id="e7")).events
    assert (one.cut, one.body, len(one.raw)) == (True, None, SHOWN_MAX)


REFUSED = {
    "there is no status 'gone'": {"status": "gone"},
    "'1,2,3' is not a position of 'clicks'": {"before": "1,2,3"},
    "'x' is not a position of 'clicks'": {"before": "x"},
    "'soon' is not a timestamp": {"since": "soon"},
    "stream 'clicks' has no key, so it cannot be searched by key": {"key": "ann"},
    "'ten' is not a valid BIGINT, the type of 'ms'": {"fields": ["ms:ten"]},
    "'99999999999999999999' is not a valid BIGINT": {"fields": ["ms:" + "9" * 20]},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_asked_is_refused_in_words(offline: Offline, sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence.replace("(", r"\(")):
        found(offline, **REFUSED[sentence])


def test_unknown_streams_and_partitions_are_not_found(offline: Offline) -> None:
    with pytest.raises(NotFound, match="there is no stream 'clik'"):
        search(offline, EventsRequest("clik"))
    with pytest.raises(NotFound, match="stream 'clicks' has no partition 2"):
        found(offline, partition=2)


def test_nothing_is_made_by_searching(tmp_path: Path) -> None:
    traced = Traced(tmp_path / "project")
    traced.send(event("/a", 5))
    service = traced.offline()
    assert found(service) == [(0, 0)]
    assert not traced.layout.master("clicks").exists()
    service.close()
    traced.close()


def test_lateness_is_that_of_the_whole_log_or_not_told(tmp_path: Path) -> None:
    traced = Traced(tmp_path / "project")
    traced.send(event("/a", 100), event("/a", 5))
    service = traced.offline()
    (late,) = search(service, EventsRequest("clicks", partition=0, offset=1)).events
    assert (late.late, late.lateness_ms) == (True, 85_000.0)
    bounded(service, 1)
    (unknown,) = search(service, EventsRequest("clicks", partition=0, offset=1)).events
    assert (unknown.late, unknown.lateness_ms) == (None, None)
    service.close()
    traced.close()


def test_a_number_beyond_2_to_the_53_is_not_taken_for_its_neighbour(tmp_path: Path) -> None:
    traced = Traced(tmp_path / "project")
    for offset, ms in enumerate((2**53, 2**53 + 1)):
        traced.send(event("/a", offset, ms=ms, user="ann", event_id=f"e{ms}"))
    traced.epoch()
    service = traced.offline()
    assert found(service, fields=[f"ms:{2**53 + 1}"]) == [(0, 1)]
    service.close()
    traced.close()


def test_a_computed_column_is_searched_and_shown_where_duckdb_can_compute_it(
    offline: Offline,
) -> None:
    assert found(offline, fields=["twice:140"]) == [(1, 0)]
    assert found(offline, fields=["tool:curl"]) == [(1, 2)]
    (shown,) = search(offline, EventsRequest("clicks", fields=["tool:curl"])).events
    assert shown.body is not None
    assert (shown.body["twice"], shown.body["tool"]) == (20, "curl")
    assert "sound" not in shown.body
    with pytest.raises(BadRequest) as caught:
        search(offline, EventsRequest("clicks", fields=["Sound:A000"]))
    assert caught.value.message == (
        "events cannot be searched by 'sound': only Spark can compute this column"
    )
    assert caught.value.hint == "query the stream with SQL instead."
