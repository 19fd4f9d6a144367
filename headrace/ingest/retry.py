"""A connector does not drop what it has read: it retries while the log is not available.

It retries on Unavailable (such as a full disk) with a growing back-off, until the records are
appended or it is stopped. A process that was replaced can never write again, so Fenced is not
retried. tests/ingest/test_tcp.py checks it with a disk that fills up.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import structlog

from headrace.core.errors import Fenced, Unavailable
from headrace.ingest.intake import Intake, Receipt

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 5.0
_log = structlog.get_logger(__name__)


def accept_with_retry(
    intake: Intake, records: Sequence[bytes], stop: threading.Event, marks: bytes = b""
) -> Receipt | None:
    """The receipt of these records; None if `stop` came first, and they were not acknowledged."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return intake.accept(records, marks)
        except Fenced:
            raise
        except Unavailable as error:
            stream = intake.definition.name
            _log.warning(
                "intake is waiting", stream=stream, records=len(records), reason=error.message
            )
        if stop.wait(wait_s):
            _log.warning(
                "stopped before records were accepted", stream=stream, records=len(records)
            )
            return None
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
