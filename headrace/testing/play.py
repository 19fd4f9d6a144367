"""Play a transcript on an engine: whatever the engine, the story must come true.

`play` sends what the transcript sends and checks each expectation where it stands. It knows
nothing of how an engine works: one that batches, one that streams and one that crashes after each
step are all an `Engine`. A story that does not come true raises `StoryFailed`, with every
difference.
tests/transcripts/test_transcripts.py plays every transcript on every engine.
"""

from __future__ import annotations

from typing import Any, Protocol

from headrace.testing.compare import differences, same
from headrace.testing.transcript import Counts, Expect, Lateness, Send, Step, Transcript


class Engine(Protocol):
    """What can take a story's events and be asked about its views."""

    def start(self, transcript: Transcript) -> None: ...

    def send(self, stream: str, records: list[bytes]) -> None: ...

    def answer(self, view: str) -> list[dict[str, Any]]: ...

    def late(self, view: str) -> list[dict[str, Any]]:
        """Of each window its `key` values, `on_time`, `late`, `late_by_max` and `late_by_mean`."""
        ...

    def counts(self) -> dict[str, int]:
        """How many events so far were `late`, `dead_letters` and `duplicates`."""
        ...

    def stop(self) -> None: ...


class StoryFailed(AssertionError):
    """The engine's answer is not the story's."""


def play(transcript: Transcript, engine: Engine) -> None:
    """Play all steps; the engine is stopped whatever happens."""
    engine.start(transcript)
    try:
        for number, step in enumerate(transcript.steps, start=1):
            wrong = play_step(transcript, step, engine)
            if wrong:
                raise StoryFailed(_sentence(transcript, number, wrong))
    finally:
        engine.stop()


def play_step(transcript: Transcript, step: Step, engine: Engine) -> list[str]:
    """Do one step; what is wrong afterwards, in sentences."""
    if isinstance(step, Send):
        engine.send(step.stream, list(step.records))
    if isinstance(step, Expect):
        return _answer_differences(transcript, step, engine.answer(step.view))
    if isinstance(step, Lateness):
        return _lateness_differences(step, engine.late(step.view))
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
    return f"'{transcript.name}' does not come true at step {number}:\n{listed}"
