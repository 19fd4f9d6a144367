"""What is said when Spark's process has ended, by how it did."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from headrace.core.errors import EngineFailed
from headrace.spark.session import check_alive, connection_lost


class Process:
    """A process that has ended with this code, or has not."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def wait(self, seconds: float) -> int:
        if self.code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return self.code


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (3, "Spark ran out of memory, and its process exited"),
        (1, "the Spark process exited with code 1"),
        (-9, "the Spark process was killed by signal 9"),
    ],
)
def test_how_it_ended_and_what_it_was_doing_is_said(
    monkeypatch: pytest.MonkeyPatch, code: int, sentence: str
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=Process(code)))
    with pytest.raises(EngineFailed) as caught:
        check_alive(["a build of stream 'clicks'"])
    assert caught.value.message == sentence
    assert caught.value.detail == (
        "in progress: a build of stream 'clicks'; acknowledged events are in the log, and the "
        "next start resumes from there."
    )
    assert "headrace rule remove" in (caught.value.hint or "")


def test_a_process_that_lives_or_was_started_by_others_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for gateway in (None, SimpleNamespace(proc=None), SimpleNamespace(proc=Process(None))):
        monkeypatch.setattr(SparkContext, "_gateway", gateway)
        check_alive()


def test_a_connection_that_broke_is_a_sign_of_its_end_however_deep() -> None:
    outer = RuntimeError("the query failed")
    outer.__cause__ = Py4JNetworkError("Answer from Java side is empty")
    assert connection_lost(outer)
    assert connection_lost(ConnectionRefusedError(111, "Connection refused"))
    assert connection_lost(Py4JError("An error occurred while calling o833.getResult"))
    assert not connection_lost(ValueError("no"))
