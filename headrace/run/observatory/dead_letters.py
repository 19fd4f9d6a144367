"""Dead letters, the newest first, from the master and the log. tests/run/test_offline.py reads
them.
"""

from __future__ import annotations

from headrace.api.resources.dead_letters import DeadLetter, DeadLetters, DeadLettersRequest
from headrace.master.balance import read_dead_letters
from headrace.master.decoding import decoder_of
from headrace.run.observatory.observed_project import ObservedProject


def dead_letters_of(service: ObservedProject, request: DeadLettersRequest) -> DeadLetters:
    plan = service.stream_plan(request.stream)
    found = read_dead_letters(
        service.master(plan), decoder_of(plan), service.log_reader(plan), request.limit
    )
    newest = [
        DeadLetter(
            row["_partition"],  # type: ignore[arg-type]
            row["_offset"],  # type: ignore[arg-type]
            row["_arrived_at"].isoformat().replace("+00:00", "Z"),  # type: ignore[attr-defined]
            str(row["_reason"]),
            row["_raw"].decode("utf-8", "backslashreplace"),  # type: ignore[attr-defined]
        )
        for row in found.newest
    ]
    return DeadLetters(newest, found.total)
