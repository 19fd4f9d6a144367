"""The pages, and the docstrings and comments of rooms, are written in the words of the field, which
a newcomer who knows Kafka, Flink and Spark can guess. Tables are left out: what they quote from the
code is compared elsewhere.
"""

from __future__ import annotations

import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from .pages import NAMES, PAGES, ROOT, prose

# Another word than the field's, and the field's.
WORDS = {
    r"heard|hears?|hearers?|hearing": "subscribe, receive",
    r"told|tells?|telling": "report, show, send, notify",
    r"anew": "again",
    r"go on|goes on|going on|gone on": "continue, resume",
    r"moments?": "timestamp, time",
    r"glance|looks? at|looked at|a look": "read, check",
    r"stretch|stretches": "range",
    r"speaks? (?:for|of)": "cover, name",
    r"silent|silence": "idle, time-out",
    r"pass(?:ed|es)? over": "skip, ignore",
    r"set aside": "ignore",
    r"deeds?": "action",
    r"goes round in a circle": "circular",
    r"lonely|for ever|came about": "",
}
WRITTEN = [path for path in PAGES if path.name not in NAMES or path.name == "README.md"]
WRITTEN.append(ROOT / "CONTRIBUTING.md")
ROOMS = (
    "access", "api", "audit", "batch", "carry", "certified", "cli", "client", "compile", "console",
    "core", "define", "destination", "ingest", "kernel", "log", "master", "pattern", "run",
    "server", "serving", "spark", "speed", "testing",
)  # fmt: skip


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_page_has_the_words_of_the_field(path: Path) -> None:
    text = prose(path.read_text("utf-8"))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    plain = re.sub(r"`[^`]*`", "", " ".join(lines))
    assert found_words(plain) == {}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_the_words_of_the_field(room: str) -> None:
    paths = sorted((ROOT / "headrace" / room).rglob("*.py"))
    found = {str(path): found_words(" ".join(sentences(path))) for path in paths}
    assert {path: words for path, words in found.items() if words} == {}


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict[str, list[str]](list)
    for path in sorted((ROOT / "headrace").rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text("utf-8"), re.MULTILINE):
            found[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def sentences(path: Path) -> Iterator[str]:
    """The docstrings and comments of a module, without what stands in backticks."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            text = token.type == tokenize.STRING and token.string.startswith('"""')
            docstring = text and token.line.lstrip().startswith('"""')  # and no SQL of a constant
            if token.type == tokenize.COMMENT or docstring:
                yield re.sub(r"`[^`]*`", "", " ".join(token.string.replace("#", "").split()))


def found_words(text: str) -> dict[str, str]:
    """The words to avoid in a text, each with a better one."""
    return {
        match[0]: better
        for word, better in WORDS.items()
        for match in re.finditer(rf"\b(?:{word})\b", text, re.IGNORECASE)
    }
