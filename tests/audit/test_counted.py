"""An event counts in exactly the rows that have it behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.api.resources.events import EventRequest
from headrace.api.resources.rows import ViewRequest, WhyRequest
from headrace.run.offline import Offline

from .traced import Traced, event


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
