"""Counts the records sent to one stream, by result: accepted, refused at once, or failed while they
were written. tests/ingest/test_meter.py sends one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.core import meters

RequestSize = tuple[int, int]  # records, and their bytes


class IntakeMeter:
    """The numbers of one stream; looked up once, because a busy stream counts often."""

    def __init__(self, stream: str) -> None:
        numbers = (meters.INGEST_REQUESTS, meters.INGEST_EVENTS, meters.INGEST_BYTES)
        self._by_result = {
            result: [number.labels(stream, result) for number in numbers]
            for result in (meters.ACCEPTED, meters.REFUSED, meters.FAILED)
        }

    def refused(self, records: Sequence[bytes]) -> None:
        self._count(meters.REFUSED, [size_of(records)])

    def pending(self, sizes: Sequence[RequestSize]) -> Callable[[Sequence[object]], None]:
        """What counts requests of these sizes when their outcomes are known, of which errors are
        failures.
        """

        def count(outcomes: Sequence[object]) -> None:
            failed = [isinstance(outcome, BaseException) for outcome in outcomes]
            if not any(failed):
                self._count(meters.ACCEPTED, sizes)
                return
            for size, bad in zip(sizes, failed, strict=True):
                self._count(meters.FAILED if bad else meters.ACCEPTED, [size])

        return count

    def _count(self, result: str, sizes: Sequence[RequestSize]) -> None:
        requests, events, volume = self._by_result[result]
        requests.inc(len(sizes))
        events.inc(sum(many for many, _ in sizes))
        volume.inc(sum(size for _, size in sizes))


def size_of(records: Sequence[bytes]) -> RequestSize:
    return len(records), sum(map(len, records))
