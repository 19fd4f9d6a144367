"""What is read of past epochs and generations is what was committed and promoted."""

from __future__ import annotations

from headrace.serving.history import (
    count_epochs,
    newest_audit,
    read_epochs,
    read_generations,
    read_late,
)

from .bench import CLICKS, Bench
from .marks import on_every_database

pytestmark = on_every_database


def test_epochs_are_read_newest_first_with_what_they_held(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:2])
    bench.send(*CLICKS[2:5])
    with bench.store.read() as db:
        newest, older = read_epochs(db, "clicks")
        assert (newest.events, older.events) == (3, 2)
        assert newest.range.lower == older.range.upper
        assert list(read_epochs(db, limit=1)) == [newest]
        assert list(read_epochs(db, "nothing")) == []
        assert count_epochs(db, newest.committed_at) >= 1
        assert read_late(db, "clicks") == newest.late + older.late


def test_a_generation_is_read_with_its_boundary_and_what_its_audit_found(bench: Bench) -> None:
    bench.send(*CLICKS[:3])
    bench.build(audit=True)
    boundary = bench.store.stream("clicks").boundary
    with bench.store.read() as db:
        newest = next(read_generations(db, "clicks"))
        assert newest.boundary == boundary
        found = newest_audit(db, "clicks", "hits")
        assert found is not None
        assert found[0] in newest.audits
        assert newest_audit(db, "clicks", "nothing") is None
