"""The console of a real server whose project is canned: no Spark, and answers that no project has.

`Desk.say` lets routes answer what a test gives. What is heard live stays open until the server
ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Page, Route

from headrace.api.server import HttpServer
from headrace.define.settings import HttpSettings
from headrace.serving.subscriber import OpenSubscription, Subscriber, SubscriptionEvent
from tests.access.users import open_access
from tests.api.conftest import STATUS, TOPOLOGY, Shop


class Canned(Shop):
    """Is heard until the server ends."""

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        subscriber = Subscriber(None, news, lambda subscriber: None)
        status = msgspec.json.encode(STATUS)
        told = {"status": msgspec.Raw(status), "topology": TOPOLOGY}
        subscriber.offer(
            [SubscriptionEvent(topic, told[topic], "1") for topic in topics if topic in told]
        )
        return subscriber


@dataclass
class Desk:
    server: HttpServer
    token: str

    def say(self, page: Page, answers: Mapping[str, Any]) -> None:
        """Let routes answer this instead; a key is the path after /v1/."""
        for path, answer in answers.items():
            page.route(f"**/v1/{path}", _fulfil(answer))


def _fulfil(answer: Any) -> Callable[[Route], None]:
    def fulfil(route: Route) -> None:
        said = answer(route.request) if callable(answer) else answer
        body = said if isinstance(said, str) else json.dumps(said)
        route.fulfill(status=200, content_type="application/json", body=body)

    return fulfil


@contextmanager
def served(folder: Path) -> Iterator[Desk]:
    access, token = open_access(folder)
    server = HttpServer(Canned(), HttpSettings(port=0), access)
    server.start()
    try:
        yield Desk(server, token)
    finally:
        server.stop()
        access.close()
