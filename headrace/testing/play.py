"""Plays a transcript on an engine and checks its expectations.

`play` sends the transcript's events and checks each expectation in its place. It does not depend on
the engine: one that batches, one that streams and one that crashes after each step are all an
`Engine`. A failed expectation raises `TranscriptFailed`, with every difference.
tests/transcripts/test_transcripts.py plays every transcript on every engine.
"""

from __future__ import annotations

from typing import Any, Protocol

from headrace.testing.compare import differences, same
from headrace.testing.transcript import (
    Counts,
    Expect,
    Lateness,
    Matches,
    Panes,
    Send,
    Step,
    Transcript,
    Wait,
)

Row = dict[str, Any]


class Engine(Protocol):
    """An engine that takes a transcript's events and answers its views."""

    def start(self, transcript: Transcript) -> None: ...

    def send(self, stream: str, records: list[bytes]) -> None: ...

    def answer(self, view: str) -> list[dict[str, Any]]: ...

    def late(self, view: str) -> list[dict[str, Any]]:
        """Of each window its `key` values, `on_time`, `late`, `late_by_max` and `late_by_mean`."""
        ...

    def counts(self) -> dict[str, int]:
        """How many events so far were `late`, `dead_letters` and `duplicates`."""
        ...

    def wait(self, us: int) -> None:
        """Advance the clock without events."""
        ...

    def panes(self) -> list[dict[str, Any]]:
        """The panes of the transcript's subscription since the last call: op, timing, pane, last
        and the row.
        """
        ...

    def watches(self) -> dict[str, tuple[list[dict[str, Any]], str | None]]:
        """All that each watch has found so far, and why it has ended, if it has."""
        ...

    def stop(self) -> None: ...


class TranscriptFailed(AssertionError):
    """The engine's answer differs from the transcript's."""


def play(transcript: Transcript, engine: Engine) -> None:
    """Play all steps; the engine is stopped whatever happens."""
    engine.start(transcript)
    try:
        for number, step in enumerate(transcript.steps, start=1):
            wrong = play_step(transcript, step, engine)
            if wrong:
                raise TranscriptFailed(_sentence(transcript, number, wrong))
    finally:
        engine.stop()


def play_step(transcript: Transcript, step: Step, engine: Engine) -> list[str]:
    """Do one step; the differences afterwards, in sentences."""
    if isinstance(step, Send):
        engine.send(step.stream, list(step.records))
    if isinstance(step, Expect):
        return _answer_differences(transcript, step, engine.answer(step.view))
    if isinstance(step, Lateness):
        return _lateness_differences(step, engine.late(step.view))
    if isinstance(step, Wait):
        engine.wait(step.us)
    if isinstance(step, Panes):
        return _pane_differences(transcript, step, engine.panes())
    if isinstance(step, Matches):
        return _match_differences(transcript, step, engine.watches())
    if isinstance(step, Counts):
        return _count_differences(step, engine.counts())
    return []


def _answer_differences(
    transcript: Transcript, step: Expect, answer: list[dict[str, Any]]
) -> list[str]:
    found = differences(step.rows, answer, transcript.approximate)
    if found or not step.in_order:
        return found
    pairs = zip(step.rows, answer, strict=True)
    places = [
        i
        for i, (a, b) in enumerate(pairs, start=1)
        if differences([a], [b], transcript.approximate)
    ]
    return [f"the rows are right but not in order, from row {places[0]} on"] if places else []


def _pane_differences(
    transcript: Transcript, step: Panes, actual: list[dict[str, Any]]
) -> list[str]:
    if len(step.panes) != len(actual):
        return [f"there should be {len(step.panes)} panes, but got: {actual}"]
    return [
        f"pane {number}: {sentence}"
        for number, (wanted, found) in enumerate(zip(step.panes, actual, strict=True), start=1)
        for sentence in _one_pane(wanted, found, transcript)
    ]


def _one_pane(wanted: Row, found: Row, transcript: Transcript) -> list[str]:
    """A whole relation is compared row by row, since it has no order of its own."""
    if ("rows" in wanted) != ("rows" in found):
        return ["one side is a whole relation and the other is not"]
    plain = [{n: v for n, v in pane.items() if n != "rows"} for pane in (wanted, found)]
    sentences = differences(plain[:1], plain[1:], transcript.approximate)
    rows = wanted.get("rows", []), found.get("rows", [])
    return sentences + differences(*rows, approximate=transcript.approximate)


def _match_differences(
    transcript: Transcript, step: Matches, found: dict[str, tuple[list[Row], str | None]]
) -> list[str]:
    wrong = []
    for watch, wanted in step.rows.items():
        rows, _ = found[watch]
        pairs = zip(wanted, rows, strict=False)
        ordered = len(wanted) == len(rows) and not any(
            differences([a], [b], transcript.approximate) for a, b in pairs
        )
        wrong += [] if ordered else [f"{watch} should have found {wanted}, but has {rows}"]
    ended = {watch: why for watch, (_, why) in found.items() if why is not None}
    if step.ended is not None and ended != step.ended:
        wrong.append(f"ended should be {step.ended} but is {ended}")
    return wrong


def _count_differences(step: Counts, counts: dict[str, int]) -> list[str]:
    return [
        f"{name} should be {wanted} but is {counts.get(name)}"
        for name, wanted in step.so_far.items()
        if not same(wanted, counts.get(name))
    ]


def _lateness_differences(step: Lateness, windows: list[dict[str, Any]]) -> list[str]:
    wrong, left = [], list(windows)
    for key, wanted in step.windows:
        found = next((window for window in left if window["key"] == key), None)
        if found is None:
            wrong.append(f"there is no window {key}")
            continue
        left.remove(found)
        wrong += [
            f"window {key}: {name} should be {value} but is {found[name]}"
            for name, value in wanted.items()
            if not same(value, found[name])
        ]
    others = [window for window in left if window["late"]]
    return wrong + [f"window {w['key']} has late events: {w['late']}" for w in others]


def _sentence(transcript: Transcript, number: int, wrong: list[str]) -> str:
    listed = "\n".join(f"  - {sentence}" for sentence in wrong)
    return f"'{transcript.name}' fails at step {number}:\n{listed}"
