"""The location of a definition or expression in the user's files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """A place in a project file.

    >>> str(Origin("shop.sql", 3))
    'shop.sql:3'
    """

    path: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"
        )

    def below(self, line: int, column: int = 0) -> Origin:
        """The place `line` lines into the text that begins here (the first line is 1)."""
        return Origin(self.path, self.line + line - 1, column if line > 1 else 0)
