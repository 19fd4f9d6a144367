"""Answers of Spark's analyser that are known from an earlier compilation, which need no Spark.

An answer depends on the analyser, on the call, and on the relations that were registered before it.
It is known by a hash over all of these, so one that is found is the one that would be given again.
The first call that is not known starts the analyser, which first gets the relations of the calls
before, and from then on all calls. tests/compile/test_recorded_analyser.py counts its calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from headrace.compile.analyser import Analyser
from headrace.core.origin import Origin

Answer = list[list[str]] | bool | None  # as JSON has it
T = TypeVar("T")


class RecordedAnalyser:
    """An analyser in front of another one. `about` says which that is, with its settings; `start`
    makes it. `answers` has those of this compilation.
    """

    def __init__(self, about: str, known: Mapping[str, Answer], start: Callable[[], Analyser]):
        self._state, self._known, self._start = about, known, start
        self._analyser: Analyser | None = None
        self._registered: list[Callable[[Analyser], object]] = []
        self.answers: dict[str, Answer] = {}

    def relation(self, name: str, ddl: str) -> None:
        def register(analyser: Analyser) -> None:
            analyser.relation(name, ddl)

        self._ask(["relation", name, ddl], register, registers=True)

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        def columns(analyser: Analyser) -> Answer:
            return [list(column) for column in analyser.analyse(sql, origin, name)]

        found = self._ask(["analyse", sql, name], columns, registers=name is not None)
        assert isinstance(found, list)
        return [(column, type) for column, type in found]

    def equal(self, sql: str) -> bool:
        return bool(self._ask(["equal", sql], lambda analyser: analyser.equal(sql)))

    def _ask(
        self, call: list[str | None], ask: Callable[[Analyser], Answer], *, registers: bool = False
    ) -> Answer:
        key = hashlib.sha256(json.dumps([self._state, *call]).encode()).hexdigest()[:32]
        if self._analyser is None and key in self._known:
            answer = self._known[key]
        else:
            # An answer that is an error is not recorded, and registers nothing.
            answer = ask(self._started())
        self.answers[key] = answer
        if registers:
            self._registered.append(ask)
            self._state = key
        return answer

    def _started(self) -> Analyser:
        if self._analyser is None:
            self._analyser = self._start()
            for register in self._registered:
                register(self._analyser)
        return self._analyser
