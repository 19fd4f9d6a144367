"""The folder of a domain, and the names of jobs in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadRequest
from headrace.server.home import Home, check_name, find_home


@pytest.mark.parametrize("name", ["a", "web-shop", "x_1", "a" * 63])
def test_these_are_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "Shop", "1a", "-a", "a/b", "..", "a..b", "a b", "a\n", "ä", "a" * 64, "a\0"]
)
def test_these_are_none_and_never_become_a_folder(name: str) -> None:
    with pytest.raises(BadRequest) as raised:
        Home(Path("home")).job(name)
    assert raised.value.message.endswith("is not a valid job name")
    assert (
        raised.value.hint
        == "use a lowercase letter, then up to 62 lowercase letters, digits, - and _."
    )


def test_the_home_is_the_one_given_then_of_the_environment_then_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADRACE_HOME", "/srv/jobs")
    assert find_home(Path("here")) == Path("here")
    assert find_home(None) == Path("/srv/jobs")
    monkeypatch.delenv("HEADRACE_HOME")
    assert find_home(None) == Path.home() / ".headrace"
