"""A producer is slowed while speed is behind, and goes on when it is not; no record is lost."""

from __future__ import annotations

import threading

import pytest

from headrace.core.errors import Overloaded
from headrace.define.definitions import PaceDefinition
from headrace.ingest.guards import CHECK_US
from headrace.ingest.intake import Intake
from headrace.ingest.retry import accept_with_retry
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import Bench, settings, stream


class Speed:
    """Says how far behind it is, and how often it was asked."""

    def __init__(self, lag: int = 0) -> None:
        self.lag, self.asked = lag, 0

    def __call__(self) -> int:
        self.asked += 1
        return self.lag


def intake_of(bench: Bench, speed: Speed, pace: PaceDefinition) -> Intake:
    bench.topic = EmbeddedWriter.open(bench.folder / "topic", 1, segment_bytes_max=1 << 20)
    return Intake(stream(pace=pace), bench.topic, settings=settings(), clock=bench.clock, lag=speed)


def test_above_the_lag_nothing_is_accepted_and_below_it_again(bench: Bench) -> None:
    speed = Speed(10)
    intake = intake_of(bench, speed, PaceDefinition(lag_events_max=10))
    intake.accept([b"1"])
    speed.lag = 11
    bench.clock.now_us += CHECK_US
    with pytest.raises(Overloaded) as caught:
        intake.accept([b"2"])
    assert caught.value.message == (
        "the speed layer of stream 'clicks' is 11 events behind, and lag_events_max is 10"
    )
    assert caught.value.http_status == 429
    assert bench.records() == [b"1"]
    speed.lag = 3
    bench.clock.now_us += CHECK_US
    intake.accept([b"2"])
    assert bench.records() == [b"1", b"2"]


def test_what_is_taken_between_two_questions_counts(bench: Bench) -> None:
    speed = Speed()
    intake = intake_of(bench, speed, PaceDefinition(lag_events_max=3))
    intake.accept([b"1", b"2", b"3"])
    intake.accept([b"4"])
    with pytest.raises(Overloaded):
        intake.accept([b"5"])
    assert speed.asked == 1


@pytest.mark.parametrize(
    "pace", [PaceDefinition(), PaceDefinition(overload="shed random", lag_events_max=1)]
)
def test_a_stream_without_a_limit_or_that_sheds_is_never_slowed(
    bench: Bench, pace: PaceDefinition
) -> None:
    speed = Speed(1_000_000)
    assert intake_of(bench, speed, pace).accept([b"1"]).accepted == 1
    assert speed.asked == 0


def test_a_connector_waits_until_there_is_room(bench: Bench) -> None:
    speed = Speed(11)
    intake = intake_of(bench, speed, PaceDefinition(lag_events_max=10))

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            speed.lag = 0
            bench.clock.now_us += CHECK_US
            return False

    receipt = accept_with_retry(intake, [b"1"], Stop())
    assert receipt is not None
    assert receipt.accepted == 1
