"""What the server gives out of the console, and what it says when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from headrace.api.server import HttpServer
from headrace.console import NOT_BUILT, STATIC, load
from headrace.define.settings import HttpSettings
from tests.access.users import open_access


class Nobody:
    """A service that is never asked."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One who has no token: the page is there before anybody has signed in."""
    access, _ = open_access(tmp_path_factory.mktemp("people"))
    server = HttpServer(Nobody(), HttpSettings(port=0), access)  # type: ignore[arg-type]
    server.start()
    with httpx.Client(base_url=server.url, trust_env=False) as made:
        yield made
    server.stop()
    access.close()


def test_the_page_is_asked_for_each_time_and_names_only_files_of_its_own(
    client: httpx.Client,
) -> None:
    response = client.get("/")
    assert response.headers["cache-control"] == "no-cache"
    assert "style=" not in response.text
    assert "<style" not in response.text
    assert "http://" not in response.text
    assert "https://" not in response.text
    assert response.text.count("<script") == response.text.count('<script type="module"') == 1


def test_an_asset_is_kept_for_ever_and_says_what_it_is(client: httpx.Client) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}
    for path in (STATIC / "assets").iterdir():
        response = client.get(f"/assets/{path.name}")
        assert response.content == path.read_bytes()
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-type"].startswith(kinds.get(path.suffix, "image/"))


@pytest.mark.parametrize("name", ["index.html", "..%2Findex.html", "%2Fetc%2Fpasswd", "absent.js"])
def test_nothing_else_is_an_asset(client: httpx.Client, name: str) -> None:
    response = client.get(f"/assets/{name}")
    assert response.status_code == 404


def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.page == NOT_BUILT
    assert b"run <code>make console</code>" in found.page
    assert found.assets == {}
