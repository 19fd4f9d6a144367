"""An answer is sampled from the epoch that passed over events to the generation that has them."""

from __future__ import annotations

from dataclasses import replace

from headrace.core.position import Position
from headrace.core.shedding import Shedding
from headrace.serving import generations
from headrace.serving.answer import Sampled
from headrace.serving.shed_epochs import count_shed_events, read_shed_epochs

from .bench import CLICKS, Bench, Click
from .marks import on_every_database

pytestmark = on_every_database

HALF = Shedding("random", 0.5)


def send_half(bench: Bench, *clicks: Click) -> None:
    """An epoch of these events that has taken only the first half of them."""
    half = clicks[: len(clicks) // 2]
    epoch = bench.epoch(*clicks)
    rows = {v.id: bench.rows_of(v.plan, half, (0, 0)) for v in bench.store.versions("clicks")}
    counts = epoch.counts | {"events": len(half)}
    assert bench.store.commit_epoch(replace(epoch, rows=rows, counts=counts, shedding=HALF))
    bench.clicks += clicks


def total(bench: Bench) -> int:
    with bench.store.read() as db:
        return count_shed_events(db, "clicks")


def test_an_answer_says_which_share_of_the_events_after_the_boundary_it_has(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:2])
    assert bench.reader.view("total").as_of["clicks"].sampled is None
    send_half(bench, *CLICKS[2:6])
    answer = bench.reader.view("total")
    assert answer.rows[0]["n"] == 4
    assert answer.as_of["clicks"].sampled == Sampled(share=0.666667, shed=2)
    assert total(bench) == 2


def test_only_the_keys_of_a_sampled_answer_are_exact(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:2])
    assert bench.reader.view("hits").columns["n"].exact
    send_half(bench, *CLICKS[2:6])
    exact = {name: info.exact for name, info in bench.reader.view("hits").columns.items()}
    assert exact == {"page": True, "minute": True, "n": False, "slowest": False}
    assert not bench.reader.sql("SELECT n FROM hits").columns["n"].exact


def test_a_generation_that_has_absorbed_the_epoch_is_exact_again(bench: Bench) -> None:
    bench.build()
    send_half(bench, *CLICKS[:4])
    bench.build(full=False)
    answer = bench.reader.view("total")
    assert (answer.rows[0]["n"], answer.as_of["clicks"].sampled) == (4, None)
    assert answer.columns["n"].exact
    assert total(bench) == 2


def test_shed_epochs_are_kept_with_their_decision_newest_first(bench: Bench) -> None:
    bench.build()
    send_half(bench, *CLICKS[:4])
    bench.send(CLICKS[4])
    send_half(bench, *CLICKS[5:7])
    with bench.store.read() as db:
        found = list(read_shed_epochs(db, "clicks"))
        after = list(read_shed_epochs(db, "clicks", Position((3, 1))))
    assert [(str(shed.range.upper), shed.events) for shed in found] == [("4,3", 1), ("3,1", 2)]
    assert {shed.shedding for shed in found} == {HALF}
    assert after == found[:1]
    assert bench.store.shed_epochs("clicks") == found


def test_a_replayed_epoch_is_not_counted_twice(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS[:4])
    epoch = replace(epoch, counts=epoch.counts | {"events": 1}, shedding=HALF)
    assert bench.store.commit_epoch(epoch)
    assert not bench.store.commit_epoch(epoch)
    assert total(bench) == 3


def test_what_is_absorbed_and_old_is_forgotten_but_never_its_number(bench: Bench) -> None:
    bench.build()
    send_half(bench, *CLICKS[:2])
    send_half(bench, *CLICKS[2:4])
    with bench.store.write() as db:
        db.execute("DELETE FROM _epochs WHERE number < 2")
        generations._drop_shed(db, "clicks", Position((3, 1)))
        assert len(list(read_shed_epochs(db, "clicks"))) == 1
        assert count_shed_events(db, "clicks") == 2
