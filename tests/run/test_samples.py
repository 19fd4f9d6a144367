"""Rates are made of the newest samples."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.time import MINUTE, SECOND
from headrace.run.observatory.samples import SAMPLES_KEPT, Sampler, Samples


def test_a_rate_is_over_the_samples_that_are_kept() -> None:
    samples = Samples()
    assert samples.rate("log:clicks") is None
    samples.add(0, {"log:clicks": 100})
    assert samples.rate("log:clicks") is None
    samples.add(2 * SECOND, {"log:clicks": 300, "speed:clicks": 7})
    assert samples.rate("log:clicks") == 100
    assert samples.rate("speed:clicks") is None
    assert samples.rate("view:nothing") is None


def test_what_stands_still_has_no_rate_soon_and_memory_is_bounded() -> None:
    samples = Samples()
    samples.add(0, {"a": 0})
    for second in range(1, 100):
        samples.add(second * SECOND, {"a": 1_000})
    assert samples.rate("a") == 0
    assert len(samples._kept) == SAMPLES_KEPT


def test_a_counter_that_begins_anew_is_no_negative_rate() -> None:
    samples = Samples()
    samples.add(0, {"a": 50})
    samples.add(SECOND, {"a": 0})
    assert samples.rate("a") == 0


@dataclass
class Clock:
    now_us: int = 10 * MINUTE

    def __call__(self) -> int:
        return self.now_us


def test_the_disk_is_measured_now_and_then() -> None:
    clock, measured = Clock(), list[int]()
    sampler = Sampler(lambda: {"a": clock.now_us // SECOND}, measured.append, clock)
    for _ in range(70):
        clock.now_us += SECOND
        sampler.turn()
    assert len(measured) == 2
    assert sampler.samples.rate("a") == 1
