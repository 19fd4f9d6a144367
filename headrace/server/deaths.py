"""Back-off and limit of restarts after the process of a job has died.

Consecutive deaths are counted: those within the window, after the last healthy run. The n-th is
followed by a pause of 2^(n-1) times the first one, up to a maximum; after `deaths_max` of them the
job has failed. They are stored in the database, so a new server continues the count.
tests/server/test_deaths.py checks the pauses and each reset.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.core.time import SECOND
from headrace.server.settings import SuperviseSettings

_KEPT = 100


@dataclass(frozen=True, slots=True)
class Death:
    """An unexpected exit of a job's process; `healthy` says how it was before."""

    at_us: int
    healthy: bool
    why: str


def in_a_row(deaths: Sequence[Death], now_us: int, window_us: int) -> list[Death]:
    """The consecutive deaths, of all in their order.

    >>> ill, well = Death(5, False, ""), Death(7, True, "")
    >>> len(in_a_row([ill, ill, well, ill], 9, 10)), len(in_a_row([ill, ill], 20, 10))
    (2, 0)
    """
    recent = [death for death in deaths if now_us - death.at_us < window_us]
    healthy = [place for place, death in enumerate(recent) if death.healthy]
    return recent[healthy[-1] :] if healthy else recent


def pause_us(count: int, settings: SuperviseSettings) -> int:
    """The pause after this number of consecutive deaths."""
    # The exponent has a limit, so that the number stays small.
    return min(settings.pause_us << min(max(count - 1, 0), 30), settings.pause_max_us)


def failure_after(deaths: Sequence[Death], settings: SuperviseSettings, log: str) -> str | None:
    """Why a job has failed after these consecutive deaths; None if it has not."""
    if len(deaths) < settings.deaths_max:
        return None
    seconds = (deaths[-1].at_us - deaths[0].at_us) / SECOND
    times = "once" if len(deaths) == 1 else f"{len(deaths)} times in {seconds:.0f} s"
    return f"the process died {times}, most recently because {deaths[-1].why}; its log is {log}"


def note_death(db: sqlite3.Connection, job: str, death: Death) -> None:
    """Store a death, and delete all but the newest ones."""
    db.execute(
        "INSERT INTO deaths (job, at, healthy, why) VALUES (?, ?, ?, ?)",
        (job, death.at_us, death.healthy, death.why),
    )
    db.execute(
        "DELETE FROM deaths WHERE job = ?1 AND number <= "
        "(SELECT number FROM deaths WHERE job = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
        (job, _KEPT),
    )


def read_deaths(db: sqlite3.Connection, job: str) -> list[Death]:
    rows = db.execute("SELECT at, healthy, why FROM deaths WHERE job = ? ORDER BY number", (job,))
    return [Death(at, bool(healthy), why) for at, healthy, why in rows]
