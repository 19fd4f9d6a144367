"""The master knows which records took their ids, as the log did."""

from __future__ import annotations

import pytest

from headrace.core.errors import CorruptMaster
from headrace.core.event import OVERLONG, EventStatus
from headrace.core.position import Interval
from headrace.master.originals import originals

from .bench import Bench, click


def test_events_and_unreadable_ones_are_originals_and_duplicates_and_conflicts_are_not(
    bench: Bench,
) -> None:
    for step in range(3):
        bench.send(0, click(f"a{step}"), b"no json")
        bench.send(0, click("again"), status=EventStatus.DUPLICATE)
        bench.send(0, click("conflict"), status=EventStatus.DEAD_LETTER)
        bench.send(0, click("begun"), status=OVERLONG)
        bench.send(1, click("other"))
        bench.archive.step(100)
    found = list(originals(bench.table.path, 2, 0, Interval(1, 11)))
    records = sorted(record for batch, _ in found for record in batch)
    assert records == sorted([b"no json", click("a1"), b"no json", click("a2")])
    assert found[-1] == ([], 11)
    assert all(after == 1 for _, after in found[:-1])


@pytest.mark.parametrize(("name", "held"), [("none", 0), ("master", 2)])
def test_a_master_that_ends_before_the_log_begins_is_refused(
    bench: Bench, name: str, held: int
) -> None:
    bench.send(0, click("ann"), click("bob"))
    bench.archive.step(100)
    with pytest.raises(CorruptMaster) as caught:
        list(originals(bench.table.path.with_name(name), 2, 0, Interval(1, 5)))
    assert caught.value.message == (
        f"records are missing in partition 0 of '{name}': the master dataset ends at offset {held}"
        ", and the log starts at offset 5"
    )
