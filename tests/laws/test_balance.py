"""Law 2, the balance: at every probe, exact to the event,

    accepted = events + duplicates + dead letters + still in the log.

Good events, repeated ids, conflicting ids and events that nobody can read arrive while the archive
takes steps of any size; the balance is probed after each act, also with an end of the log that is
old by then.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from engines import Compiled, Parts, compile_sql

from headrace.core.position import Position
from headrace.master.balance import balance

DEFINITIONS = """
CREATE STREAM clicks (user STRING NOT NULL, ms BIGINT) WITH (id = 'event_id', key = 'user');
CREATE VIEW users AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
"""


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("balance"), DEFINITIONS, partitions=2)


def _record(rng: random.Random, number: int) -> tuple[str, bytes]:
    """What becomes of a record, and the record."""
    fate = rng.choice(["events", "events", "duplicates", "conflict", "unread"])
    known = {"event_id": 0, "user": "first", "ms": 0}
    if fate == "duplicates":
        return fate, json.dumps(known).encode()
    if fate == "conflict":
        return "dead_letters", json.dumps(known | {"ms": number}).encode()
    if fate == "unread":
        return "dead_letters", rng.choice(
            [b"{", b"[]", b'{"user": null}', b'{"user": "a", "ms": "1"}']
        )
    return fate, json.dumps({"event_id": number, "user": rng.choice("abc")}).encode()


def _probe(parts: Parts, end: Position | None = None) -> dict[str, int]:
    found = balance(parts.archives["clicks"].table.newest(), end or parts.topics["clicks"].end())
    parts_of_it = found["events"] + found["duplicates"] + found["dead_letters"] + found["in_log"]
    assert found["accepted"] == parts_of_it
    assert min(found.values()) >= 0
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_dropped_silently(compiled: Compiled, tmp_path: Path, seed: int) -> None:
    rng, parts = random.Random(seed), Parts(compiled, tmp_path)
    fates = {"events": 1, "duplicates": 0, "dead_letters": 0}
    parts.intake("clicks").accept([b'{"event_id": 0, "user": "first", "ms": 0}'])
    for act in range(6):
        sent = [_record(rng, 10 * act + n + 1) for n in range(rng.randrange(1, 9))]
        for fate, _ in sent:
            fates[fate] += 1
        parts.intake("clicks").accept([record for _, record in sent])
        assert _probe(parts)["accepted"] == sum(fates.values())
        before = parts.topics["clicks"].end()
        parts.archives["clicks"].step(rng.choice([1, 3, 100]))
        assert _probe(parts, before)["accepted"] == sum(fates.values())
    parts.archive("clicks")
    assert _probe(parts) == fates | {"accepted": sum(fates.values()), "in_log": 0}
    parts.close()


def test_an_old_end_of_the_log_still_balances(compiled: Compiled, tmp_path: Path) -> None:
    parts = Parts(compiled, tmp_path)
    old = parts.topics["clicks"].end()
    parts.intake("clicks").accept([b'{"event_id": 1, "user": "a"}', b"?"])
    parts.archive("clicks")
    assert _probe(parts, old) == {
        "accepted": 2,
        "events": 1,
        "duplicates": 0,
        "dead_letters": 1,
        "in_log": 0,
    }
    parts.close()


def test_speed_counts_the_same_fates_as_the_archive(compiled: Compiled, tmp_path: Path) -> None:
    rng, parts = random.Random(3), Parts(compiled, tmp_path)
    parts.intake("clicks").accept([b'{"event_id": 0, "user": "first", "ms": 0}'])
    parts.intake("clicks").accept([_record(rng, n)[1] for n in range(1, 40)])
    epoch = parts.epoch("clicks")
    assert epoch is not None
    parts.archive("clicks")
    counted = {name: epoch.counts[name] for name in ("events", "duplicates", "dead_letters")}
    assert _probe(parts) == counted | {"accepted": 40, "in_log": 0}
    parts.close()
