"""Requests out of the OpenAPI document, sent to a project that runs.

Schemathesis makes the values, fitting the document or not. Half of them are then aimed: names,
times and texts that the project knows take the place of words that it does not, because a random
word never comes further than "there is no such view". What is sent follows from the seed alone.
Nothing is raised on the way; `findings` has each answer that the document does not foresee.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import hypothesis
import msgspec
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.api.errors import ErrorBody
from headrace.api.events import EVENTS_MEDIA

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
# Conditions of 503 that docs/errors.md foresees in a project that runs: a view's first build, and
# what is not there for a moment. No other answer of 500 or more is expected.
FORESEEN = frozenset({"NotReady", "Unavailable", "Restarting"})
ACCEPTED = ("*/*", "text/csv", "application/vnd.apache.parquet", "nothing")
ROUND, PLAIN = 24, 4  # cases of a route in a row, and of one that takes nothing
SECONDS_MAX = 60
Operation = APIOperation[Any, Any, Any, Any]


@dataclass
class Fuzz:
    """Sends requests as each of `tokens`, and keeps what was answered."""

    url: str
    tokens: Sequence[str | None]
    words: Mapping[str, Sequence[Any]]  # what the project knows, by the name of a parameter
    keys: Sequence[Mapping[str, str]]  # values of key columns, which any parameter may be
    kept: frozenset[str]  # users and tokens without which the rest would be refused
    costly: Mapping[str, int] = field(default_factory=dict)  # cases of a route in a round, if fewer
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def run(self, cases: int, seed: int) -> None:
        """Send at least so many requests: rounds over all routes."""
        with requests.Session() as session:
            self._session = session
            document = session.get(f"{self.url}/openapi.json", timeout=SECONDS_MAX).json()
            schema = schemathesis.openapi.from_dict(document)
            operations = [found.ok() for found in schema.get_all_operations()]
            made = [(_name(one), _cases(one), self._many(one)) for one in operations]
            for number in count():
                for name, strategy, many in made:
                    if self.statuses.total() >= cases:
                        return
                    self._round(name, strategy, many, seed + number)

    def _many(self, operation: Operation) -> int:
        return self.costly.get(_name(operation), ROUND if _takes(operation) else PLAIN)

    def table(self) -> str:
        """How often each status was answered, by all routes and by each."""
        whole, by_route = Counter[int](), dict[str, dict[int, int]]()
        for (name, status), many in sorted(self.statuses.items()):
            whole[status] += many
            by_route.setdefault(name, {})[status] = many
        lines = {"all": dict(sorted(whole.items())), **by_route}
        return "\n".join(f"{name:24} {told}" for name, told in lines.items())

    def _round(self, name: str, made: st.SearchStrategy[Case], many: int, seed: int) -> None:
        """Some cases of one route."""

        @hypothesis.seed(seed)
        @settings(
            max_examples=many, database=None,
            phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(made, st.sampled_from(self.tokens), st.sampled_from(ACCEPTED), st.data())
        def one(case: Case, token: str | None, accept: str, data: st.DataObject) -> None:
            self._aim(case, data)
            if self._spares(case):
                bearer = {"Authorization": f"Bearer {token}"} if token else {}
                self._send(name, case, {"Accept": accept} | bearer)

        one()

    def _aim(self, case: Case, data: st.DataObject) -> None:
        """Put known words in the place of made ones, of half of the cases for all that is named."""
        whole = data.draw(st.booleans())
        for values in (case.path_parameters, case.query, case.body):
            if not isinstance(values, dict):
                continue
            for name in [name for name in values if name in self.words]:
                if whole or data.draw(st.booleans()):
                    values[name] = data.draw(st.sampled_from(self.words[name]))
        if whole and case.query:
            known = {name: value for name, value in case.query.items() if name in self.words}
            case.query = known | data.draw(st.sampled_from(self.keys))

    def _spares(self, case: Case) -> bool:
        """Whether this case leaves us the users and tokens that we ask with."""
        named = [*(case.path_parameters or {}).values()]
        if case.path.startswith("/v1/grants") and isinstance(case.body, dict):
            named.append(case.body.get("user"))
        return not self.kept.intersection(map(str, named))

    def _send(self, name: str, case: Case, headers: dict[str, str]) -> None:
        asked = case.as_transport_kwargs(base_url=self.url, headers=headers)
        try:
            with self._session.request(**asked, timeout=SECONDS_MAX, stream=True) as response:
                if response.headers.get("content-type", "").startswith(EVENTS_MEDIA):
                    next(response.iter_content(1 << 16), None)  # it does not end by itself
                    self.statuses[name, response.status_code] += 1
                    return
                _ = response.content
        except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL):
            return  # it could not be sent
        except (requests.RequestException, UnicodeError) as error:
            self._found(name, f"{type(error).__name__} {error}", asked)
            self.statuses[name, 0] += 1
            return
        self.statuses[name, response.status_code] += 1
        for wrong in _wrong(case, response):
            self._found(name, wrong, asked)

    def _found(self, name: str, wrong: str, asked: dict[str, Any]) -> None:
        self.findings.append(f"{name}: {wrong}\n{_told(asked)}")
        print(self.findings[-1], flush=True)


def _name(operation: Operation) -> str:
    return str(operation.definition.raw["operationId"])


def _takes(operation: Operation) -> bool:
    """Whether there is anything in a request to it that could be another."""
    return bool({"parameters", "requestBody"}.intersection(operation.definition.raw))


def _cases(operation: Operation) -> st.SearchStrategy[Case]:
    """Requests to one route that fit the document, and where it takes anything, that do not."""
    fitting = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if not _takes(operation):
        return fitting
    return fitting | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)


def _wrong(case: Case, response: requests.Response) -> Iterator[str]:
    """What is not as the document says."""
    told = f"{response.status_code} {response.text[:600]}"
    if response.status_code >= 400:
        try:
            error = msgspec.json.decode(response.content, type=ErrorBody)
        except msgspec.DecodeError as wrong:
            yield f"{told}\nis not of the shape of errors: {wrong}"
            return
        if response.status_code >= 500 and error.condition not in FORESEEN:
            yield f"unexpected {told}"
        if not error.message:
            yield f"{told}\nhas no sentence"
    try:
        case.validate_response(response, checks=CHECKS)
    except BaseExceptionGroup as group:
        yield f"{told}\n" + "\n".join(str(one) for one in group.exceptions)
    except AssertionError as failure:
        yield f"{told}\n{failure}"


def _told(asked: dict[str, Any]) -> str:
    shown = {k: v for k, v in asked.items() if k not in ("headers", "cookies") and v is not None}
    return f"    {shown} {dict(asked.get('headers') or {}).get('Content-Type', '')}"[:1500]
