"""A newcomer can type what the README says, from the top."""

from __future__ import annotations

import re

from .pages import blocks, page

ON_PATH = 'export PATH="$PWD/.venv/bin:$PATH"'


def test_what_is_needed_is_said_before_the_first_command() -> None:
    text = page("README.md")
    before = text[: text.index("```")]
    assert re.findall(r"Linux|Python 3\.11|`make`|Java 17|Node\.js", before) == [
        "Linux", "Python 3.11", "`make`", "Java 17", "Node.js",
    ]  # fmt: skip


def test_the_commands_are_put_on_the_path_before_the_first_is_used() -> None:
    lines = [
        line.partition("#")[0].strip()
        for block in blocks("sh")
        if block.page == "README.md"
        for line in block.text.splitlines()
    ]
    used = next(line for line in lines if line.startswith("headrace "))
    assert lines.index("make setup") < lines.index(ON_PATH) < lines.index(used)
