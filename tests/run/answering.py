"""A project of which a test has only some parts: questions about these are answered."""

from __future__ import annotations

from typing import Any

from headrace.api.get_request import GetRequest
from headrace.run.observatory.handlers import HANDLERS


class Answering:
    def ask(self, question: GetRequest[Any]) -> Any:
        return HANDLERS[type(question)](self, question)  # type: ignore[arg-type]
