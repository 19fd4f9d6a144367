"""Links, paths and make targets that the pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT, links, prose

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
_PATH = re.compile(r"(?<![\w/.])((?:headrace|tests|docs|bench|examples)/[\w./-]*\w)")


@every_page
def test_relative_links_lead_to_a_file(path: Path) -> None:
    local = [link for link in links(path) if not link.startswith(("http:", "https:", "#"))]
    gone = [link for link in local if not (path.parent / link.partition("#")[0]).exists()]
    assert gone == []


@every_page
def test_paths_that_are_named_exist(path: Path) -> None:
    named = set(_PATH.findall(path.read_text("utf-8")))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_tests_that_modules_name_exist() -> None:
    gone = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / "headrace").rglob("*.py")
        for name in re.findall(r"\btests/[\w/]+\.py\b", path.read_text("utf-8"))
        if not (ROOT / name).exists()
    }
    assert gone == set()


@every_page
def test_make_targets_that_are_named_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    text = path.read_text("utf-8")
    named = re.findall(r"(?:`|^\s*)make ([a-z]+)\b", text, re.MULTILINE)
    assert set(named) <= targets


@every_page
def test_pages_are_of_one_voice(path: Path) -> None:
    text = prose(path.read_text("utf-8")).lower()
    for word in ("todo", "to be done", "coming soon", "powerful", "seamless", "blazing"):
        assert word not in text
    assert not [line for line in path.read_text("utf-8").splitlines() if line != line.rstrip()]
