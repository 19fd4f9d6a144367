"""An event counts in exactly the rows that have it behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.api.resources.events import EventRequest
from headrace.api.resources.rows import ViewRequest, WhyRequest
from headrace.run.offline import Offline

from .traced import DEFINITIONS, LIFTS, Traced, event


@pytest.fixture
def thirds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offline]:
    """A view by a double that the first engine computes with other last bits than the second."""
    sql = f"{DEFINITIONS}CREATE VIEW thirds AS SELECT ms / 3 AS third, count(*) AS n FROM clicks"
    monkeypatch.setattr("audit.traced.DEFINITIONS", f"{sql} GROUP BY ms / 3;")
    lift = lambda e: (e["ms"] / 3 * (1 + 1e-15),), lambda e: True
    monkeypatch.setitem(LIFTS, "thirds", lift)
    traced = Traced(tmp_path / "project")
    traced.send(*(event("/a", 5, ms=ms) for ms in (0, 10, 10, 11)))
    traced.epoch()
    traced.generation()
    service = traced.offline()
    yield service
    service.close()
    traced.close()


def test_a_row_is_found_by_a_double_with_other_last_bits(thirds: Offline) -> None:
    (row,) = [one for one in thirds.ask(ViewRequest("thirds")).rows if one["third"] > 3.5]
    assert row["third"] != 11 / 3
    for offset, n in enumerate((1, 2, 2, 1)):
        views = thirds.ask(EventRequest("clicks", 0, offset)).views
        (found,) = [one for one in views if one.view == "thirds"]
        assert found.row is not None
        assert (found.row["n"], found.key) == (n, {"third": found.row["third"]})


def test_rows_beyond_the_listed_ones_are_counted(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.audit.counted.ROWS_MAX", 0)
    views = offline.ask(EventRequest("clicks", 0, 0)).views
    assert [one.reason for one in views if one.view == "slow"] == ["0 of 1 rows are listed"]


@pytest.fixture
def offline(tmp_path: Path) -> Iterator[Offline]:
    traced = Traced(tmp_path / "project")
    traced.send(event("/a", 5), event("/b", 6, ms=3), event("/c", 65, ms=70))
    traced.epoch()
    traced.send(event("/a", 66), event("it's", 67))
    traced.epoch()
    service = traced.offline()
    traced.generation()
    yield service
    service.close()
    traced.close()


@pytest.mark.parametrize("offset", range(5))
def test_the_rows_of_an_event_have_it_behind_them(offline: Offline, offset: int) -> None:
    found = offline.ask(EventRequest("clicks", 0, offset))
    counted = {(one.view, str(one.key)) for one in found.views if one.key is not None}
    behind = set()
    for view in ("slow", "known", "quick_pages", "total"):
        for row in offline.ask(ViewRequest(view)).rows:
            keys = {name: row[name] for name in ("page",) if name in row}
            start = row["minute"]["start"] if "minute" in row else None
            why = offline.ask(WhyRequest(view, keys, window=start))
            if (0, offset) in {(seen.partition, seen.offset) for seen in why.listed}:
                behind.add((view, str(why.key)))
    assert {one for one in counted if one[0] not in {"often", "unnamed"}} == behind
    assert behind
