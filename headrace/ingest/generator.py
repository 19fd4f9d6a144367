"""Synthetic events, with the faults of real ones: late, repeated, malformed.

    CREATE STREAM clicks (…) WITH (source = 'generator', rate = '500', url.values = '/home,/cart');

The events depend only on the definition, `rng` and the clock. Each share of faults is met in the
long run; a repeated event is the same bytes. tests/ingest/test_generator.py checks the shares, and
that a seed determines the events.
"""

from __future__ import annotations

import threading
from random import Random

from headrace.core.time import SECOND, Clock
from headrace.define.definitions import StreamDefinition
from headrace.ingest.event_factory import Event, EventFactory
from headrace.ingest.generator_options import GeneratorOptions, read_generator_options
from headrace.ingest.intake import Intake
from headrace.ingest.malformed import encoder, malformed
from headrace.ingest.retry import accept_with_retry

_GROUP_MAX = 5_000
_TICK_S = 0.1
_RECENT_MAX = 1_000  # a repetition is of one of the last so many events
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def sample(definition: StreamDefinition, now_us: int) -> str:
    """A record of this second that the stream takes, with an id that no other record has."""
    on_time = GeneratorOptions(out_of_order=0.0)
    inventor = EventFactory(definition, Random(0), _word(now_us), on_time)
    [event] = inventor.events(1, now_us // SECOND * SECOND)
    return encoder(definition)(event).decode()


class Generator:
    """Events as a producer would send them, in groups; `rng` alone decides which, and ids continue
    from group to group.
    """

    def __init__(self, definition: StreamDefinition, rng: Random, *, run: str) -> None:
        # Options of another source say nothing here, so that any stream can be generated in a test.
        mine = definition.source == "generator"
        self.options = read_generator_options(definition) if mine else GeneratorOptions()
        self._definition, self._rng = definition, rng
        self._inventor = EventFactory(definition, rng, run, self.options)
        self._encode = encoder(definition)
        self._recent: list[bytes] = []
        self._sound = self._broken = 0

    def take(self, n: int, now_us: int) -> list[bytes]:
        """The next `n` events, the last of them at `now_us`."""
        return [self._with_faults(event) for event in self._inventor.events(n, now_us)]

    def _with_faults(self, event: Event) -> bytes:
        chance = self._rng.random()
        if chance < self.options.duplicates and self._recent:
            return self._rng.choice(self._recent)
        if self.options.duplicates <= chance < self.options.duplicates + self.options.malformed:
            self._broken += 1
            return malformed(event, self._definition, self._broken - 1)
        return self._remembered(self._encode(event))

    def _remembered(self, record: bytes) -> bytes:
        if len(self._recent) < _RECENT_MAX:
            self._recent.append(record)
        else:
            self._recent[self._sound % _RECENT_MAX] = record
        self._sound += 1
        return record


class GeneratorConnector:
    """Sends generated events at the declared rate until it is stopped, or until `count`."""

    def __init__(
        self, definition: StreamDefinition, intake: Intake, *, rng: Random, clock: Clock
    ) -> None:
        self._intake, self._clock = intake, clock
        self._generator = Generator(definition, rng, run=_word(clock()))
        self._rate, self._count = self._generator.options.rate, self._generator.options.count

    def run(self, stop: threading.Event) -> None:
        sent, owed, looked_us = 0, 0.0, self._clock()
        while not stop.is_set() and (sent < self._count or not self._count):
            now = self._clock()
            # Events that a stall of more than a second delayed are dropped: they would come as a
            # burst.
            owed = min(owed + max(0, now - looked_us) / SECOND * self._rate, max(1.0, self._rate))
            looked_us = now
            n = min(int(owed), _GROUP_MAX, self._count - sent if self._count else _GROUP_MAX)
            if n and accept_with_retry(self._intake, self._generator.take(n, now), stop) is None:
                return
            sent, owed = sent + n, owed - n
            if owed < _GROUP_MAX:
                stop.wait(_TICK_S)


def _word(number: int) -> str:
    """A number in base 36, which is short in an id."""
    word = _DIGITS[number % 36]
    while number := number // 36:
        word = _DIGITS[number % 36] + word
    return word
