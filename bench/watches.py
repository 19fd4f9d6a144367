"""Ten thousand watches of one shape beside one: what an epoch and its look cost.

Both sides see the same events, cut into the same epochs. The one watch has matches; the others
wait for a price that has not come yet, because a match costs the same whoever asked for it. What
is measured is all that speed does with an epoch after decoding: the join, the commit, and raising
the matches.
"""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path
from typing import Any

from rich.console import Console

WATCHES, EPOCHS, WARM = 10_000, 5, 2
EVENTS_EACH = 50_000
DEFINITIONS = """
CREATE STREAM clicks (item STRING, megapixel INT, price DOUBLE, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (partitions = '1');
CREATE VIEW items AS SELECT item, count(*) AS n, min(price) AS cheapest FROM clicks GROUP BY item;
"""
SELECT = "SELECT * FROM clicks WHERE megapixel >= {} AND price < {}"


def measure(folder: Path, console: Console) -> dict[str, float]:
    """Seconds an epoch with one watch and with many, and their ratio."""
    folder.mkdir(parents=True, exist_ok=True)
    events = _events(folder)
    one = _Side(folder / "one", events, [(10, 12.0)])
    rng = random.Random(7)
    many = [(rng.randint(10, 20), 5 * rng.random()) for _ in range(WATCHES - 1)]
    all_ = _Side(folder / "many", events, [(10, 12.0), *many])
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(WARM + EPOCHS):
        for side, taken in zip((one, all_), seconds, strict=True):
            spent = side.epoch(number)
            if number >= WARM:
                taken.append(spent)
    single, all_of = (statistics.median(taken) for taken in seconds)
    found = {
        "one_s": single, "many_s": all_of, "ratio": all_of / single, "watches": float(WATCHES),
        "matches_one": float(one.matches()), "matches_many": float(all_.matches()),
    }  # fmt: skip
    console.print(
        f"watches: {WATCHES:,} of one shape cost {found['ratio']:.2f} x one "
        f"({all_of:.2f} s and {single:.2f} s an epoch of {EVENTS_EACH:,} events; "
        f"{found['matches_many']:,.0f} and {found['matches_one']:,.0f} matches)"
    )
    return found


def _events(folder: Path) -> Path:
    from bench.epochs import HIDDEN, write_typed

    path = folder / "events"
    moment = "make_timestamptz(1767225600000000 + i * 1000)"
    rows = f"""
        SELECT 'item ' || (i % 100) AS item, (i * 7919 % 25)::INTEGER AS megapixel,
               5 + (i * 104729 % 1000000) / 100.0 AS price, {moment} AS ts,
               {HIDDEN.format(moment=moment)}
        FROM range({EVENTS_EACH * (WARM + EPOCHS)}) r(i)
    """
    write_typed(path, rows, EVENTS_EACH)
    return path


class _Side:
    """A store and a session with these watches."""

    def __init__(self, folder: Path, events: Path, constants: list[tuple[int, float]]) -> None:
        from bench.epochs import Epochs
        from headrace.run.watch_constants import begin_watches, write_constants
        from headrace.serving import watches
        from headrace.serving.match_raiser import MatchRaiser
        from headrace.spark.relations import register

        folder.mkdir(parents=True)
        first = SELECT.format(*constants[0])
        text = f"{DEFINITIONS} CREATE WATCH w AS {first} UNTIL '2100-01-01';"
        self.epochs = Epochs(folder, text, events, EVENTS_EACH)
        plan = self.plan = self.epochs.plan
        (shared,) = plan.watches
        import msgspec

        with self.epochs.store.db.write() as db:
            for number, values in enumerate(constants):
                made = msgspec.structs.replace(
                    shared, name=f"w{number}", constants=tuple(map(float, values))
                )
                watches.add(db, made, True, "bench", 0, None)
        begin_watches(self.epochs.store, plan, {plan.shapes[0].name})
        write_constants(folder, self.epochs.store, plan)
        register(self.epochs.spark, plan.tables, (), folder)
        self.raiser: Any = MatchRaiser(self.epochs.store.db)

    def epoch(self, number: int) -> float:
        from headrace.spark.relations import reload

        for table in self.plan.tables:  # both sides share a session
            reload(self.epochs.spark, table, self.epochs.folder)
        began = time.monotonic()
        self.epochs.epoch(number)
        self.raiser.evaluate(self.plan.shapes[0])
        return time.monotonic() - began

    def matches(self) -> int:
        with self.epochs.store.db.read() as db:
            return int(db.execute("SELECT count(*) FROM _alerts").fetchone()[0])
