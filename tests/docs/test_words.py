"""The pages are written in the words of the field, which a newcomer who knows Kafka, Flink and
Spark can guess. Tables are left out: what they quote from the code is compared elsewhere.
"""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_page_has_the_words_of_the_field(path: Path) -> None:
    text = prose(path.read_text("utf-8"))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    plain = re.sub(r"`[^`]*`", "", " ".join(lines))
    found = {
        match[0]: better
        for word, better in WORDS.items()
        for match in re.finditer(rf"\b(?:{word})\b", plain, re.IGNORECASE)
    }
    assert found == {}
