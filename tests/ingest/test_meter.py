"""What was sent is counted by what became of it."""

from __future__ import annotations

import pytest

from headrace.core.meters import REGISTRY
from headrace.ingest.meter import IntakeMeter, size_of


def _numbers(result: str) -> list[float | None]:
    return [
        REGISTRY.get_sample_value(
            f"headrace_ingest_{unit}_total", {"stream": "metered", "result": result}
        )
        for unit in ("requests", "events", "bytes")
    ]


def test_each_result_is_counted_once_it_is_known() -> None:
    meter = IntakeMeter("metered")
    meter.refused([b"12", b"3"])
    done, mixed = meter.pending([(1, 4)]), meter.pending([(1, 1), (2, 3)])
    assert _numbers("accepted") == [0, 0, 0]
    done([None])
    mixed([OSError(), None])
    assert _numbers("accepted") == [2, 3, 7]
    assert _numbers("refused") == [1, 2, 3]
    assert _numbers("failed") == [1, 1, 1]


def test_the_size_of_a_request_is_its_records_and_their_bytes() -> None:
    assert size_of([b"12", b"3"]) == (2, 3)


@pytest.mark.parametrize("result", ["accepted", "refused", "failed"])
def test_every_result_is_there_from_the_start(result: str) -> None:
    IntakeMeter("metered")
    assert None not in _numbers(result)
