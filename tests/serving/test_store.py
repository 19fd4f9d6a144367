"""The protocol `Store`, on every database: what each method promises its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.core.errors import Fenced, NotFound
from headrace.core.position import Position
from headrace.serving.store import Store

from .bench import CLICKS, KEPT, PLAN, Bench
from .databases import open_store
from .marks import on_every_database

pytestmark = on_every_database


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[], Bench]]:
    """Opens the one store of this test again and again, each time as a process would."""
    opened: list[Bench] = []

    def open_again() -> Bench:
        bench = Bench(tmp_path / "store")
        opened.append(bench)
        return bench

    yield open_again
    for bench in opened:
        bench.close()


def test_nothing_is_deployed_in_a_new_store(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path / "store")
    assert store.deployed() is None
    with pytest.raises(NotFound, match="there is no stream 'clicks'"):
        store.stream("clicks")
    assert store.versions("clicks") == []
    store.close()


def test_a_new_stream_begins_at_the_start_and_its_views_are_building(
    made: Callable[[], Bench],
) -> None:
    bench = made()
    store, state = bench.store, bench.store.stream("clicks")
    assert (state.position, state.boundary) == (Position((0, 0)), Position((0, 0)))
    assert (state.generation, state.reached.highs) == (0, (None, None))
    assert (state.committed_at, state.promoted_at, state.received_at) == (None, None, (None, None))
    assert (state.reached.watermark_us, state.reached) == (None, state.built)
    assert {(v.name, v.state) for v in store.versions("clicks")} == {(n, "building") for n in KEPT}
    assert store.deployed() == PLAN


def test_all_that_was_committed_is_there_for_the_next_process(made: Callable[[], Bench]) -> None:
    first = made()
    first.build()
    first.send(*CLICKS[:5])
    state, versions = first.store.stream("clicks"), first.store.versions("clicks")
    rows = {view: first.rows(view) for view in KEPT}
    first.close()
    second = made()
    assert second.store.stream("clicks") == state
    assert second.store.versions("clicks") == versions
    assert {view: second.rows(view) for view in KEPT} == rows


def test_the_position_moves_with_each_epoch_and_the_watermark_is_of_the_slowest_partition(
    made: Callable[[], Bench],
) -> None:
    bench = made()
    bench.send(*CLICKS[:4])
    state = bench.store.stream("clicks")
    assert state.position == Position((3, 1))
    assert state.boundary == Position((0, 0))
    assert state.reached.highs == (CLICKS[3].at_us, CLICKS[1].at_us)
    assert state.reached.watermark_us == CLICKS[1].at_us - 10_000_000
    assert state.committed_at == bench.clock.now_us


def test_a_promotion_moves_the_boundary_and_gives_the_next_number(
    made: Callable[[], Bench],
) -> None:
    bench = made()
    bench.send(*CLICKS[:4])
    bench.build()
    state = bench.store.stream("clicks")
    assert (state.boundary, state.generation) == (Position((3, 1)), 1)
    assert state.promoted_at == bench.clock.now_us
    assert {v.state for v in bench.store.versions("clicks")} == {"live"}
    bench.send(*CLICKS[4:])
    bench.build(full=False)
    assert bench.store.stream("clicks").generation == 2


WRITES: dict[str, Callable[[Bench], object]] = {
    "deploy": lambda bench: bench.store.deploy(PLAN),
    "commit_epoch": lambda bench: bench.send(CLICKS[0]),
    "close_group": lambda bench: bench.store.close_group("clicks"),
    "stage": lambda bench: bench.stage(bench.store.versions("clicks")[0], True, []),
    "promote": lambda bench: bench.store.promote("clicks", 0, bench.reached([]), 0, [], []),
}


@pytest.mark.parametrize("write", WRITES)
def test_every_write_of_a_replaced_writer_is_refused(made: Callable[[], Bench], write: str) -> None:
    old, new = made(), made()
    before = new.store.stream("clicks")
    with pytest.raises(Fenced):
        WRITES[write](old)
    assert new.store.stream("clicks") == before
    WRITES[write](new)


def test_reading_needs_no_token(made: Callable[[], Bench]) -> None:
    old, new = made(), made()
    new.build()
    new.send(*CLICKS)
    assert (
        old.rows("total")
        == new.rows("total")
        == [{"n": 8, "slowest": 99, "last": "2026-01-01T00:02:10Z"}]
    )
    assert old.store.stream("clicks") == new.store.stream("clicks")
