"""Counts the records sent to one stream, by result: accepted, refused at once, or failed while they
were written. tests/ingest/test_meter.py sends one of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from headrace.core import meters


class IntakeMeter:
    """The numbers of one stream; looked up once, because a busy stream counts often."""

    def __init__(self, stream: str) -> None:
        numbers = (meters.INGEST_REQUESTS, meters.INGEST_EVENTS, meters.INGEST_BYTES)
        self._by_result = {
            result: [number.labels(stream, result) for number in numbers]
            for result in (meters.ACCEPTED, meters.REFUSED, meters.FAILED)
        }

    def refused(self, records: Sequence[bytes]) -> None:
        self._count(meters.REFUSED, len(records), sum(map(len, records)))

    def follow(self, records: Sequence[bytes], receipt: Future[Any]) -> None:
        """Count the records when their result is known."""
        # Futures refer to each other in circles, which live on until they are collected. So what
        # waits here holds two numbers, and not all records of a request.
        self.follow_many(len(records), sum(map(len, records)), receipt)

    def follow_many(self, many: int, size: int, receipt: Future[Any]) -> None:
        """The same for so many records, of so many bytes."""
        receipt.add_done_callback(
            lambda done: self._count(
                meters.FAILED if done.exception() else meters.ACCEPTED, many, size
            )
        )

    def _count(self, result: str, many: int, size: int) -> None:
        requests, events, volume = self._by_result[result]
        requests.inc()
        events.inc(many)
        volume.inc(size)
