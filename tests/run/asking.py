"""Requests to projects that run, each with the token that lies beside its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

_TOKENS: dict[str, str] = {}


def meet(url: str, folder: Path) -> str:
    """From now on requests to this address have the token of the project in the folder."""
    _TOKENS[urlsplit(url).netloc] = (folder / ".headrace" / "run.token").read_text()
    return url


def known(url: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {_TOKENS[urlsplit(url).netloc]}"}


def get(url: str, **rest: Any) -> httpx.Response:
    return httpx.get(url, headers=known(url), **rest)


def post(url: str, **rest: Any) -> httpx.Response:
    return httpx.post(url, headers=known(url), **rest)
