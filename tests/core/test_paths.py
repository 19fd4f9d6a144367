"""Hidden folders are in no error, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.core.errors import EngineFailed, sentence_of
from headrace.core.paths import hide_paths, without_paths

SHOP = Path("/srv/teams/shop-of-ada")


@pytest.fixture(autouse=True)
def _hidden() -> None:
    hide_paths(SHOP, SHOP / ".headrace")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"the log at {SHOP}/.headrace/log/clicks is full", "the log at …/log/clicks is full"),
        (f"'{SHOP}/headrace.toml': it is not there", "'…/headrace.toml': it is not there"),
        (f"Path does not exist: file:{SHOP}/a.json", "Path does not exist: …/a.json"),
        (f"file://{SHOP}/a.json.", "…/a.json."),
        (f"it lies in {SHOP}", "it lies in …"),
        (f"[Errno 2] {SHOP}/a:{SHOP}/b", "[Errno 2] …/a:…/b"),
        (f"{os.__file__}: no such thing", None),
        ("there is no route /v1/nothing", "there is no route /v1/nothing"),
        ("https://shop.example/srv/teams/shop-of-ada/x", "https://shop.example/srv/teams/shop-of-ada/x"),
        (f"{SHOP}s/other is another", f"{SHOP}s/other is another"),
        (f"/backup{SHOP}/x", f"/backup{SHOP}/x"),
        ("no view has url = '/srv/teams'", "no view has url = '/srv/teams'"),
    ],
)  # fmt: skip
def test_a_hidden_folder_is_left_out(text: str, shown: str | None) -> None:
    if shown is None:
        assert os.path.dirname(os.__file__) not in without_paths(text)
    else:
        assert without_paths(text) == shown


def test_no_error_names_it() -> None:
    error = EngineFailed(f"no file {SHOP}/a", detail=f"in {SHOP}", hint=f"look into {SHOP}/b")
    assert str(SHOP) not in f"{error} {error.as_dict()} {error.args}"
    assert str(SHOP) not in sentence_of(OSError(2, "No such file", str(SHOP / "a")))
    assert sentence_of(error) == "no file …/a"
