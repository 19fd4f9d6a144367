"""Pauses double, healthy times are forgotten, and after so many deaths a job is given up."""

from __future__ import annotations

from pathlib import Path

from headrace.core.time import SECOND
from headrace.server.database import DomainDatabase
from headrace.server.deaths import (
    Death,
    failure_after,
    in_a_row,
    note_death,
    pause_us,
    read_deaths,
)
from headrace.server.settings import SuperviseSettings

SETTINGS = SuperviseSettings()


def ill(at_s: int) -> Death:
    return Death(at_s * SECOND, False, "it was killed by SIGKILL")


def test_the_pause_doubles_from_one_second_to_sixty() -> None:
    pauses = [pause_us(count, SETTINGS) // SECOND for count in range(1, 10)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert pause_us(10**6, SETTINGS) == 60 * SECOND


def test_a_healthy_run_before_a_death_makes_it_the_first() -> None:
    well = Death(5 * SECOND, True, "")
    deaths = [ill(1), ill(2), well, ill(6)]
    assert in_a_row(deaths, 7 * SECOND, SETTINGS.window_us) == [well, ill(6)]


def test_a_death_counts_within_the_window_only() -> None:
    assert in_a_row([ill(1), ill(50)], 60 * SECOND, 20 * SECOND) == [ill(50)]
    assert in_a_row([], 0, 1) == []


def test_it_is_given_up_with_how_often_and_why_and_where_to_look() -> None:
    deaths = [ill(second) for second in range(8)]
    assert failure_after(deaths[:7], SETTINGS, "run.log") is None
    assert failure_after(deaths, SETTINGS, "run.log") == (
        "the process died 8 times in 7 s, most recently because it was killed by SIGKILL; "
        "its log is run.log"
    )
    once = SuperviseSettings(deaths_max=1)
    assert str(failure_after(deaths[:1], once, "x")).startswith(
        "the process died once, most recently because"
    )


def test_deaths_are_kept_and_of_many_the_newest(tmp_path: Path) -> None:
    database = DomainDatabase(tmp_path / "domain.db")
    with database.write() as db:
        for second in range(150):
            note_death(db, "shop", ill(second))
        note_death(db, "bank", ill(1))
    with database.read() as db:
        assert read_deaths(db, "shop") == [ill(second) for second in range(50, 150)]
        assert read_deaths(db, "bank") == [ill(1)]
