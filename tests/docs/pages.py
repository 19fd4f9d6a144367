"""The pages of the documentation, and the parts of them that the tests read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = (*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"^```(.*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its page, its first line's number, its language and mark, and its text."""

    page: str
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(*languages: str, mark: str | None = None) -> list[Block]:
    """The blocks of all pages: in these languages if any are named, with this mark if one is."""
    found = [block for path in PAGES for block in _blocks(path)]
    wanted = [b for b in found if not languages or b.language in languages]
    return [b for b in wanted if mark in (None, b.mark)]


def _blocks(path: Path) -> Iterator[Block]:
    name, lines, start, info = str(path.relative_to(ROOT)), [], 0, ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and not start:
            start, info, lines = number + 1, fence[1].strip(), []
        elif fence:
            language, _, mark = info.partition(" ")
            yield Block(name, start, language, mark, "\n".join(lines) + "\n")
            start = 0
        elif start:
            lines.append(line)
    assert not start, f"{name} has a block that does not end"


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page's definitions read: blocks that have a path for a mark."""
    for block in blocks("csv"):
        if block.page == page:
            (folder / block.mark).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.mark).write_text(block.text, "utf-8")


def prose(text: str) -> str:
    """The page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a page, each a list of rows without its head."""
    found: list[list[list[str]]] = []
    inside = False
    for line in prose(text).splitlines():
        row = line.startswith("|")
        if row and not inside:
            found.append([])
        if row:
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        inside = row
    return [rows[2:] for rows in found]


def table(name: str, first_head: str) -> list[list[str]]:
    """The rows of a page's table whose first head is this."""
    text = prose(page(name))
    heads = [
        number
        for number, line in enumerate(text.splitlines())
        if line.startswith(f"| {first_head} |")
    ]
    assert heads, f"{name} has no table of {first_head}"
    below = "\n".join(text.splitlines()[heads[0] :])
    return tables(below)[0]


def code(cell: str) -> str:
    """The first thing in backticks in a cell."""
    found = _CODE.search(cell)
    return found[1] if found else cell


def codes(text: str) -> list[str]:
    """All that stands in backticks."""
    return _CODE.findall(prose(text))


def sections(text: str) -> dict[str, str]:
    """The second-level sections of a page, by their headings."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def links(path: Path) -> list[str]:
    return _LINK.findall(prose(path.read_text("utf-8")))


def shell_lines(block: Block) -> list[str]:
    """The commands of a shell block, one a line, without comments."""
    joined = block.text.replace("\\\n", " ")
    lines = [re.sub(r"\s+#\s.*$", "", line).strip() for line in joined.splitlines()]
    return [part.strip() for line in lines if line for part in line.split(" && ")]
