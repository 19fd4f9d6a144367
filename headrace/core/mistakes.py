"""Collects several mistakes of a user and raises them together.

    mistakes = Mistakes()
    for part in parts:
        with mistakes.noted():
            check(part)
    mistakes.end()

The first is raised at the end, and has the others with it. An error that is not a mistake of the
user, such as a missing Java, is raised at once. tests/core/test_mistakes.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.core.errors import HeadraceError, Unavailable


class Mistakes:
    def __init__(self) -> None:
        self.found: list[HeadraceError] = []
        self.wrong: set[str] = set()  # the names of the parts

    @contextmanager
    def noted(self, name: str = "") -> Iterator[None]:
        """Note what is wrong with a part, and continue after it."""
        try:
            yield
        except Unavailable:
            raise
        except HeadraceError as error:
            known = {(each.message, each.origin) for each in self.found}
            more = (error, *error.others)
            self.found += [each for each in more if (each.message, each.origin) not in known]
            error.others = ()
            self.wrong.add(name)

    def end(self) -> None:
        """Raise the first mistake, if there is one."""
        if self.found:
            first, *others = self.found
            first.others = tuple(others)
            raise first
